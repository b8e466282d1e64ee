# SPDX-License-Identifier: Apache-2.0
"""`ip: 6`: addresses, what a file may ask for with it, and that files without it are the runs that they were."""

from __future__ import annotations

import re
from ipaddress import ip_address, ip_network
from pathlib import Path

import pytest

from base.errors import SpecError
from network import ipv6
from network.model import Link, Network, Node, address_plan
from plan.model import from_json
from testbed.experiments import prepare
from testbed.runs import decisive
from tests import lab


def asked(folder: Path, flows: str, ip: str = "ip: 6\n", pairs: int = 2) -> str:
    head = lab.SMALL.partition("flows:")[0].replace("duration: 5s\n", f"duration: 5s\n{ip}")
    return head.replace("rate: 20mbit", f"pairs: {pairs}, rate: 20mbit") + flows


TWO = "flows:\n  - {cca: cubic, from: s1, to: d1}\n  - {cca: bbr, from: s2, to: d2}\n"

TRANSFERS = "  - {kind: transfers, cca: liss, from: s1, to: d1, size: 10KB, gap: 1s}\n"


def test_an_address_is_the_ipv4_one_behind_a_unique_local_prefix() -> None:
    """RFC 4193: fd00::/8 and a global identifier of 40 bits, the same /48 for all; 10.0.0.14 is 0a00:000e."""
    assert ipv6.of("10.0.0.14") == "fd57:4152:5042::a00:e"
    assert ip_address(ipv6.of("10.255.255.254")) in ip_network("fd57:4152:5042::/48")
    assert ip_address(ipv6.of("10.0.0.1")).is_private
    assert ipv6.network_of("10.0.0.4/30") == "fd57:4152:5042::a00:4/126" and ipv6.network_of("default") == "default"
    assert all(ipv6.to_v4(ipv6.of(address)) == address for address in ("10.0.0.1", "10.17.3.254"))


def test_flows_use_the_version_that_the_network_says() -> None:
    nodes, links = (Node("a"), Node("b")), (Link("a", "b"),)
    assert address_plan(Network(nodes, links))["b"].address == "10.0.0.2"
    six = address_plan(Network(nodes, links, ip=6))["b"]
    assert six.address == "fd57:4152:5042::a00:2"
    assert six.interfaces[0].address == "10.0.0.2"  # calibration measures frames, with these


def test_4_is_what_is_so_without_the_word(tmp_path: Path) -> None:
    files = [
        lab.write(tmp_path, asked(tmp_path, TWO, ip), f"{i}.yml") for i, ip in enumerate(("", "ip: 4\n", "ip: 6\n"))
    ]
    runs = [prepare(file).runs[0] for file in files]
    without, four, six = (run.run_id("virtual", "k") for run in runs)
    assert without == four != six
    assert "ip" not in decisive(runs[0].spec()) and decisive(runs[2].spec())["ip"] == 6


def test_a_sweep_compares_both(tmp_path: Path) -> None:
    sweep = "sweep: {parameters: {ip: ip}, factorial: {ip: [4, 6]}}\n"
    plans = prepare(lab.write(tmp_path, asked(tmp_path, TWO, "") + sweep)).plans
    assert [plan.network.ip for plan in plans] == [4, 6]
    assert from_json(plans[1].to_json()) == plans[1]


def test_a_plan_of_before_is_one_of_ipv4(tmp_path: Path) -> None:
    (plan,) = prepare(lab.write(tmp_path, asked(tmp_path, TWO, ""))).plans
    assert from_json(re.sub(r'"ip": 4,?\s*', "", plan.to_json())) == plan


def test_captures_keep_as_much_behind_the_longer_header(tmp_path: Path) -> None:
    """96 bytes hold Ethernet, IPv4 and the longest TCP header: 14 + 20 + 60 = 94. With IPv6 these are 114."""
    for ip, bytes_kept in (("", 96), ("ip: 6\n", 116)):
        (plan,) = prepare(lab.write(tmp_path, asked(tmp_path, TWO, ip))).plans
        assert {capture.snap_bytes for capture in plan.captures} == {bytes_kept}


def test_a_size_is_packets_of_the_smaller_payload(tmp_path: Path) -> None:
    """64 KiB are 45 packets of 1448 bytes, and 45 of 1428; 10 × 1448 bytes are ten and one less whole ones."""
    for ip, packets in (("", 10), ("ip: 6\n", 10), ("ip: 6\n", 9)):
        size = 1428 * 10 if packets == 10 else 1428 * 10 - 1
        text = asked(tmp_path, f"flows:\n  - {{cca: reno, from: s1, to: d1, initial_window: {size}B}}\n", ip)
        (plan,) = prepare(lab.write(tmp_path, text)).plans
        (start,) = plan.hosts["s1"].starts
        assert start.initial_window == (packets if ip else 1428 * 10 // 1448)


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        (
            "flows:\n  - {cca: cubic, from: s1, to: d1}\n  - {cca: bbr, from: s1, to: d1}\n",
            r"flows\.1: connections from s1 to d1 begin in another way than those of flows\.0; with ip: 6 all",
        ),
        (
            "flows:\n  - {cca: cubic, from: s1, to: d1}\n  - {cca: cubic, from: s1, to: d1, initial_window: 2}\n",
            r"flows\.1: connections from s1 to d1 begin in another way",
        ),
        (
            "flows:\n  - {cca: dctcp, from: s1, to: d1}\n  - {cca: reno, from: d1, to: s1}\n",
            r"connections from d1 to s1 begin in another way",
        ),
        (
            f"flows:\n  - {{cca: cubic, from: s1, to: d1}}\ntraffic:\n{TRANSFERS.replace('liss', 'reno')}",
            r"traffic\.0: connections from s1 to d1 begin in another way than those of flows\.0",
        ),
        (
            "flows:\n  - {cca: cubic, from: d1, to: s1}\ntraffic:\n  - {kind: web, cca: reno, from: d1, to: s1}\n",
            r"traffic\.0: connections from d1 to s1 begin in another way",
        ),
        ("flows:\n  - {cca: liss, from: s1, to: d1}\n", r"flows\.0\.cca: connections of liss share what they learn"),
        (
            "flows:\n  - {cca: cubic, from: s1, to: d1}\ntraffic:\n  - {kind: cbr, from: s1, to: d1, rate: 1mbit, packet: 50B}\n",
            r"traffic\.0\.packet: 50B: with ip: 6 a packet has at least 66 bytes",
        ),
        ("flows:\n  - {cca: cubic, from: s1, to: d1}\n", None),
        ("flows:\n  - {cca: cubic, from: s1, to: d1}\n  - {cca: cubic, from: s1, to: d1}\n", None),
        ("flows:\n  - {cca: cubic, from: s1, to: d1}\n  - {cca: bbr, from: s1, to: d2}\n", None),
        (f"traffic:\n{TRANSFERS}", None),
        (
            f"traffic:\n{TRANSFERS}  - {{kind: on_off, cca: reno, from: s1, to: d1}}\n",
            None,
        ),
    ],
)
def test_what_needs_rules_for_ports_is_refused_and_the_rest_is_not(
    tmp_path: Path, entries: str, said: str | None
) -> None:
    """Two algorithms between one pair of nodes need rules for ports; the programs of on_off and transfers set theirs by themselves."""
    six, four = (
        lab.write(tmp_path, asked(tmp_path, entries, ip), name)
        for ip, name in (("ip: 6\n", "six.yml"), ("", "four.yml"))
    )
    assert prepare(four).errors == []
    if said is None:
        assert prepare(six).errors == []
        return
    try:
        errors = " ".join(map(str, prepare(six).errors))
    except SpecError as error:
        errors = str(error)
    assert re.search(said, errors), errors
