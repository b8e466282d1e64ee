# SPDX-License-Identifier: Apache-2.0
"""A process that can open no file but those it was given (Landlock, linux/landlock.h): no root, namespace or mount is needed."""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Iterable
from pathlib import Path

from base.linux import PR_SET_NO_NEW_PRIVS, checked, libc

SYS_CREATE_RULESET, SYS_ADD_RULE, SYS_RESTRICT_SELF = 444, 445, 446
"""Of every architecture."""
ASK_VERSION = 1
PATH_BENEATH = 1
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR, TRUNCATE = 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 14
ALL = (1 << 13) - 1
"""All that the first version knows: the above and each way to make or remove a file."""
OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE
KNOWS_TRUNCATE = 3


def version() -> int:
    """Of this kernel's Landlock; 0 where it has none (Linux before 5.13, or without CONFIG_SECURITY_LANDLOCK)."""
    return max(0, int(libc.syscall(SYS_CREATE_RULESET, None, 0, ASK_VERSION)))


def restrict(readable: Iterable[Path], writable: Iterable[Path]) -> None:
    """From here on this process and what it executes open only files that are these or lie below these folders; those that are
    not there are left out. For `preexec_fn` of subprocess.

    readable: to be read and executed; writable: folders, to be written and read
    """
    handled = ALL | (TRUNCATE if version() >= KNOWS_TRUNCATE else 0)
    rules = libc.syscall(SYS_CREATE_RULESET, struct.pack("=Q", handled), 8, 0)
    checked(rules < 0, "landlock_create_ruleset")
    for paths, access in ((readable, EXECUTE | READ_FILE | READ_DIR), (writable, handled)):
        for path in paths:
            try:
                opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
            except FileNotFoundError:
                continue
            allowed = access if stat.S_ISDIR(os.fstat(opened).st_mode) else access & OF_FILES
            rule = struct.pack("=Qi", allowed, opened)
            checked(libc.syscall(SYS_ADD_RULE, rules, PATH_BENEATH, rule, 0), f"landlock_add_rule {path}")
            os.close(opened)
    checked(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    checked(libc.syscall(SYS_RESTRICT_SELF, rules, 0), "landlock_restrict_self")
    os.close(rules)
