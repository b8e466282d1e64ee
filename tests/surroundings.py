# SPDX-License-Identifier: Apache-2.0
"""No test depends on the terminal, the language, the time zone or the shell of whoever starts it.

Kept is what says where things are and how to reach them: PATH, HOME, caches, proxies, certificates, package mirrors; and CI, for
which pytest prints whole differences.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, MutableMapping

_NAMES = """
CLICOLOR CLICOLOR_FORCE COLORTERM COLUMNS FORCE_COLOR LINES NO_COLOR PAGER PY_COLORS TERM TTY_COMPATIBLE TTY_INTERACTIVE
BASH_ENV CDPATH ENV IFS POSIXLY_CORRECT
LANG LANGUAGE
ARCH AR AS CC CFLAGS CPP CPPFLAGS CROSS_COMPILE CXX CXXFLAGS KAFLAGS KCFLAGS KCPPFLAGS LD LDFLAGS LLVM MAKEFLAGS MFLAGS
RUSTFLAGS CARGO_ENCODED_RUSTFLAGS CARGO_TARGET_DIR
GIT_ALTERNATE_OBJECT_DIRECTORIES GIT_COMMON_DIR GIT_CONFIG GIT_DIR GIT_INDEX_FILE GIT_OBJECT_DIRECTORY GIT_PREFIX GIT_WORK_TREE
PGDATABASE PGHOST PGHOSTADDR PGOPTIONS PGPASSFILE PGPASSWORD PGPORT PGSERVICE PGSSLMODE PGUSER
PYTHONHASHSEED PYTHONINSPECT PYTHONIOENCODING PYTHONOPTIMIZE PYTHONSTARTUP PYTHONUNBUFFERED PYTHONUTF8 PYTHONWARNINGS
PYTHONDONTWRITEBYTECODE PYTHONPYCACHEPREFIX
SSH_AUTH_SOCK SSH_ASKPASS SSH_CLIENT SSH_CONNECTION SSH_TTY SUDO_COMMAND SUDO_GID SUDO_UID SUDO_USER
XDG_CONFIG_HOME XDG_STATE_HOME
WARPBED_DATABASE WARPBED_LAB WARPBED_STATE WARPBED_STATUS WARPBED_STOP_AT_EOF WARPBED_TERMINAL
"""
REMOVED = frozenset(_NAMES.split())
OF_ANSIBLE = frozenset({"ANSIBLE_CONFIG", "ANSIBLE_HOME"})
"""The settings that `./warpbed` itself makes; all others are the caller's."""
SET = {"LC_ALL": "C.UTF-8", "TZ": "UTC"}


def callers_own(name: str) -> bool:
    """Whether a variable is a matter of taste or state of the caller."""
    return name in REMOVED or name.startswith("LC_") or (name.startswith("ANSIBLE_") and name not in OF_ANSIBLE)


def steady(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment that tests have, whatever the caller's is."""
    return {**{name: value for name, value in environment.items() if not callers_own(name)}, **SET}


def settle(environment: MutableMapping[str, str]) -> None:
    """Make a process's own environment steady."""
    wanted = steady(environment)
    for name in environment.keys() - wanted.keys():
        del environment[name]
    environment.update(wanted)
    time.tzset()
    # tests start a thousand Pythons, each of which would compile this checkout's modules again
    sys.dont_write_bytecode = False
