# SPDX-License-Identifier: Apache-2.0
"""Print which interfaces of a machine a run must never touch: those that SSH comes in by, and all that carry them.

    python3 -I control.py [interface …]

Runs there as the user that SSH logs in as, before sudo, which drops SSH_CONNECTION. Interfaces on its command line are
added (lab_control of the inventory): the only way where nobody comes in by SSH, or through a tunnel, whose carrier no
one can see. Prints {"protected": {interface: why}}; where the control interface is not known, it says so and fails.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

SYS_NET = Path("/sys/class/net")
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
HIDES_ITS_CARRIER = frozenset(
    {
        *(
            "amt",
            "bareudp",
            "erspan",
            "geneve",
            "gre",
            "gretap",
            "gtp",
            "ip6erspan",
            "ip6gre",
            "ip6gretap",
            "ip6tnl",
            "ipip",
        ),
        *(
            "ip_vti",
            "ip6_vti",
            "l2tpeth",
            "openvswitch",
            "ovpn",
            "ovpn-dco",
            "ppp",
            "sit",
            "tun",
            "vti",
            "vti6",
            "vxlan",
        ),
        *("wireguard", "xfrm"),
    }
)
"""Kinds of links whose packets leave by another interface that the link does not name (ip -details link, info_kind; or DEVTYPE)."""
REMEDY = "set lab_control in the inventory to the interface that SSH comes in by, or to a list with all that carry it"


class UnknownError(Exception):
    """Nobody knows which interface must not be touched."""


def ip(*arguments: str) -> list[dict[str, Any]]:
    """What `ip` answers, as objects; none where it fails."""
    try:
        answer = subprocess.run(
            ["ip", "-json", *arguments], capture_output=True, text=True, timeout=30, env={**os.environ, "PATH": PATH}
        )
        entries = json.loads(answer.stdout or "[]") if answer.returncode == 0 else []
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return []
    return [entry for entry in entries if entry]


def of_connection(connection: str) -> list[str]:
    """Interfaces of an SSH connection (sshd's SSH_CONNECTION): the one with the address that it came to, and the one that its
    answers leave by."""
    fields = connection.split()
    if len(fields) != 4:
        return []
    peer, own = (fields[i].partition("%")[0].removeprefix("::ffff:") for i in (0, 2))
    names = [
        str(entry["ifname"])
        for entry in ip("address")
        if any(info.get("local") == own for info in entry.get("addr_info", []))
    ]
    routes = ip("route", "get", peer, "from", own) or ip("route", "get", peer)
    return names + [str(route["dev"]) for route in routes if "dev" in route]


def carriers(name: str) -> list[str]:
    """The interfaces right below one: a VLAN's or macvlan's parent, the ports of a bridge or bond; and what it is a port of."""
    folder = SYS_NET / name
    below = sorted(entry.name.removeprefix("lower_") for entry in folder.glob("lower_*"))
    above = [os.path.basename(os.readlink(folder / "master"))] if (folder / "master").is_symlink() else []
    return below + above


def hiding_kind(name: str) -> str:
    """Which kind of link an interface is whose carrier cannot be seen; empty where it can."""
    if name == "lo":
        return "loopback, which SSH through another SSH comes in by"
    kinds = [
        str(entry.get("linkinfo", {}).get("info_kind", "") or {"ppp": "ppp"}.get(str(entry.get("link_type")), ""))
        for entry in ip("-details", "link", "show", "dev", name)
    ]
    try:
        lines = (SYS_NET / name / "uevent").read_text().splitlines()
    except OSError:
        lines = []
    kinds += [line.removeprefix("DEVTYPE=") for line in lines if line.startswith("DEVTYPE=")]
    return next((kind for kind in kinds if kind in HIDES_ITS_CARRIER), "")


def protected(declared: list[str], connection: str) -> dict[str, str]:
    """Interface → why it must not be touched. Raises UnknownError."""
    reasons = {}
    for name in declared:
        if not (SYS_NET / name).exists():
            raise UnknownError(f"lab_control: no interface {name}; there are {', '.join(sorted(os.listdir(SYS_NET)))}")
        reasons[name] = "is a control interface (lab_control)"
    for name in of_connection(connection):
        reasons.setdefault(name, "is the control interface")
    if not reasons:
        raise UnknownError(f"the interface that SSH comes in by is not known; {REMEDY}")
    todo = list(reasons)
    while todo:
        name = todo.pop()
        if not declared and (kind := hiding_kind(name)):
            way = (
                f"{name} ({kind})"
                if reasons[name] == "is the control interface"
                else f"what {name} ({kind}) is part of"
            )
            raise UnknownError(f"SSH comes in by {way}, and what carries it is not known; {REMEDY}")
        fresh = [carrier for carrier in carriers(name) if carrier not in reasons]
        reasons.update(dict.fromkeys(fresh, f"carries the control interface ({name})"))
        todo += fresh
    for family in ("-4", "-6"):
        for route in ip(family, "route", "show", "default"):
            hops = [route, *route.get("nexthops", [])]
            for name in (str(hop["dev"]) for hop in hops if "dev" in hop):
                reasons.setdefault(name, "carries the default route")
    return reasons


def main(declared: list[str]) -> int:
    try:
        print(json.dumps({"protected": protected(declared, os.environ.get("SSH_CONNECTION", ""))}))
    except UnknownError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
