# SPDX-License-Identifier: Apache-2.0
"""Which further options of ssh an inventory may give for a campaign: those that say how a host is reached.

None of them starts a program or loads a library. What else a host needs (ProxyCommand, say) is
for the user's own ~/.ssh/config, which ssh reads as ever.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

WITH_VALUE = {"-J": "ProxyJump", "-p": "Port", "-i": "IdentityFile", "-l": "User", "-b": "BindAddress"}
ALONE = {"-4", "-6", "-C", "-q"}
HOST = r"[A-Za-z0-9_][A-Za-z0-9_.:@,\[\]/-]*"
WORD = r"[A-Za-z0-9_+^][A-Za-z0-9_.:@,+*^/-]*"
FILE = r"[^\x00-\x1f|]+"
OPTIONS = {
    "addressfamily": WORD, "bindaddress": WORD, "bindinterface": WORD, "certificatefile": FILE, "checkhostip": WORD,
    "ciphers": WORD, "compression": WORD, "connecttimeout": WORD, "connectionattempts": WORD, "controlmaster": WORD,
    "controlpath": FILE, "controlpersist": WORD, "globalknownhostsfile": FILE, "hostkeyalgorithms": WORD,
    "hostkeyalias": WORD, "hostname": WORD, "identitiesonly": WORD, "identityfile": FILE, "ipqos": WORD,
    "kexalgorithms": WORD, "loglevel": WORD, "macs": WORD, "port": WORD, "preferredauthentications": WORD,
    "proxyjump": HOST, "pubkeyacceptedalgorithms": WORD, "pubkeyauthentication": WORD, "rekeylimit": WORD,
    "serveralivecountmax": WORD, "serveraliveinterval": WORD, "stricthostkeychecking": WORD, "tcpkeepalive": WORD,
    "user": WORD, "userknownhostsfile": FILE,
}  # fmt: skip
"""By its name in small letters, the values that an option may have."""


def check(words: Sequence[str]) -> None:
    """Raise ValueError for an option that is not allowed."""
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word in ALONE:
            continue
        if word in WITH_VALUE:
            _check(WITH_VALUE[word], _next(word, rest))
        elif word.startswith("-o"):
            text = word[2:] or _next(word, rest)
            name, equals, value = text.partition("=")
            if not equals:
                raise ValueError(f"{word} {text!r}: write -o NAME=VALUE")
            _check(name, value)
        elif word[:2] in WITH_VALUE:
            _check(WITH_VALUE[word[:2]], word[2:])
        else:
            raise ValueError(_refusal(word))


def _next(word: str, rest: list[str]) -> str:
    if not rest:
        raise ValueError(f"{word}: its value is missing")
    return rest.pop(0)


def _check(name: str, value: str) -> None:
    pattern = OPTIONS.get(name.lower())
    if pattern is None:
        raise ValueError(_refusal(name))
    unquoted = value[1:-1] if len(value) > 1 and value[0] == value[-1] == '"' else value
    if not re.fullmatch(pattern, unquoted):
        raise ValueError(f"{name}={value}: not a value of this option")


def _refusal(option: str) -> str:
    return (
        f"{option}: not one of the options of ssh that a campaign takes from ansible_ssh_common_args "
        f"({' '.join([*WITH_VALUE, *sorted(ALONE)])} and -o with how a host is reached, such as ProxyJump or "
        "UserKnownHostsFile); others belong into ~/.ssh/config"
    )
