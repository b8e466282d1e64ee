# SPDX-License-Identifier: Apache-2.0
"""Networks that cannot be: refused with file, line and remedy before anything starts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from base.errors import SpecError
from hosts.abilities import missing, project_modules, virtual_config
from network.direction import Direction
from network.link_words import direction
from network.model import Link, Network, Node
from testbed.experiments import prepare
from tests import lab

LINKS = "  links:\n    r1>r2: {WORDS}\nflows:"

PARAMS = {
    "a rate that the clock cannot pace": ("rate: 20mbit", "rate: 40gbit", "at most 24gbit"),
    "a delay that jitter makes negative": ("delay: 9ms", "delay: 9ms jitter=3ms",
        "would be negative; ask for a delay of at least 12 ms"),
    "a wrong word": ("delay: 9ms", "delay: 9ms jiter=3ms", "did you mean jitter?"),
    "an unknown distribution": ("delay: 9ms", "delay: 9ms jitter=1ms distribution=norml", "did you mean normal?"),
    "steps with a gap at the start": ("rate: 20mbit", "rate: steps 1s=20mbit", "steps begin at 0s"),
    "steps that fall": ("rate: 20mbit", "rate: steps 0s=1mbit 2s=3mbit 1s=2mbit", "times must ascend"),
    "an outage without an end": ("rate: 20mbit", "rate: steps 0s=1mbit 2s=0bit", "add a step that ends the outage"),
    "a repeat inside the steps": ("delay: 9ms", "delay: steps 0s=9ms 5s=3ms repeat=4s", "repeat must be after"),
    "a trace that is not there": ("rate: 20mbit", "rate: trace none.trace", "no such trace"),
    "an unknown loss model": ("buffer: 40p", "buffer: 40p, loss: gilbert p=1%", "did you mean gilbert-elliott?"),
    "a burst that never ends": ("buffer: 40p", "buffer: 40p, loss: markov p13=1% p31=0%", "a burst has to end"),
    "a burst without its rates": ("buffer: 40p", "buffer: 40p, loss: gilbert-elliott p=1%",
        "needs p= (good to bad) and r="),
    "more than all": ("buffer: 40p", "buffer: 40p, loss: markov p13=60% p14=50%", "at most 100%"),
    "too many bit errors": ("buffer: 40p", "buffer: 40p, loss: bit-errors 0.5", "0 to 0.01"),
    "a policer that should hold packets": ("buffer: 40p", "buffer: 40p, queue: policer", "in bytes such as 64KB"),
    "a policer without room for a frame": ("buffer: 40p", "buffer: 1000B, queue: policer", "from one full frame"),
    "a policer that should mark": ("buffer: 40p", "buffer: 64KB, queue: policer ecn", "marks nothing"),
    "a policer whose rate changes": (
        "rate: 20mbit, delay: 9ms, buffer: 40p", "rate: steps 0s=1mbit 2s=2mbit, buffer: 64KB, queue: policer",
        "has one rate"),
    "dualpi2 without marks": ("buffer: 40p", "buffer: 40p, queue: dualpi2", "write `dualpi2 ecn`"),
    "dualpi2 in bytes": ("buffer: 40p", "buffer: 64KB, queue: dualpi2 ecn", "counts packets"),
    "aggregation with jitter": ("delay: 9ms", "delay: 9ms jitter=1ms aggregate=2ms", "constant delay, without jitter"),
    "aggregation that is too fine": ("delay: 9ms", "delay: 9ms aggregate=500ns", "from 1us to 1s"),
    "an unknown queue": ("buffer: 40p", "buffer: 40p, queue: codle", "did you mean codel?"),
    "ECN without a queue that marks": ("buffer: 40p", "buffer: 40p, queue: droptail ecn", "cannot mark"),
    "bytes where the queue counts packets": ("buffer: 40p", "buffer: 64KB, queue: codel", "counts packets"),
    "packets where the queue counts bytes": ("buffer: 40p", "buffer: 40p, queue: cake ecn", "counts bytes"),
    "thresholds the wrong way round": ("buffer: 40p", "buffer: 40p, queue: red min=20p max=10p", "not below"),
    "a RED that the kernel cannot average": (
        "buffer: 40p", "buffer: 40p, queue: red min=5p max=9000p weight=0.0005", "at most 1048575 bytes"),
    "a number instead of a text": ("buffer: 40p", "buffer: 40", "a text with a unit"),
    "access links one by one, but not all": ("access_delay: 500us", "access_delay: 1ms 2ms", "2 values for 1 links"),
    "an access link that is none": ("access_delay: 500us", "access_delay: -1ms", "access_delay: '-1ms' is not a time"),
    "reordering without delay": ("delay: 9ms", "delay: 0ms, reorder: 1%", "needs a constant delay"),
}  # fmt: skip


def problem(tmp_path: Path, text: str) -> str:
    with pytest.raises(SpecError) as caught:
        prepare(lab.write(tmp_path, text))
    return str(caught.value)


@pytest.mark.parametrize("case", PARAMS)
def test_bad_words_are_reported_at_their_line(tmp_path: Path, case: str) -> None:
    old, new, expected = PARAMS[case]
    assert old in lab.SMALL
    message = problem(tmp_path, lab.SMALL.replace(old, new))
    line = 5 if "needs a kernel" in message or "cannot average" in message else 7
    assert f"experiment.yml:{line}: topology" in message
    assert expected in message


def test_check_ends_with_2_and_says_the_remedy(tmp_path: Path) -> None:
    file = lab.write(tmp_path, lab.SMALL.replace("delay: 9ms", "delay: 9ms jitter=3ms"))
    assert "experiment.yml:7: topology.params.delay" in lab.inside("check", file, code=2)


@pytest.mark.parametrize(
    ("words", "line", "expected"),
    [
        ("{r1>r3: {loss: 1%}}", 8, "there is no link r1>r3; did you mean r1>r2?"),
        ("{r1>r2: {los: 1%}}", 8, "did you mean loss?"),
        ("{r1>r2: {loss: 1}}", 8, "a text is needed"),
        ("{r1-r2: {queue: red}}", 8, "needs min= and max="),
        ("{'r1;x': {loss: 1%}}", 8, "must be"),
    ],
)
def test_bad_exceptions_for_links_are_reported_at_their_line(
    tmp_path: Path, words: str, line: int, expected: str
) -> None:
    message = problem(tmp_path, lab.SMALL.replace("flows:", f"  links: {words}\nflows:"))
    assert f"experiment.yml:{line}: topology.links" in message
    assert expected in message


def test_exceptions_change_one_direction_or_both(tmp_path: Path) -> None:
    text = lab.SMALL.replace("flows:", "  links: {r2>r1: {rate: 5mbit, buffer: 9p}, s1-r1: {delay: 3ms}}\nflows:")
    network = prepare(lab.write(tmp_path, text)).plans[0].network
    middle = next(link for link in network.links if link.a == "r1")
    assert (middle.forward.rate_bps, middle.backward.rate_bps) == (20_000_000, 5_000_000)
    assert middle.backward.delay_ns == middle.forward.delay_ns == 9_000_000
    assert network.links[0].forward.delay_ns == network.links[0].backward.delay_ns == 3_000_000


CHAIN = """\
warpbed: 1
name: chain
title: A chain
duration: 5s
topology:
  name: chain
  params:
    links:
      - {rate: 1gbit, delay: 1ms}
      - {rate: 10mbit, delay: 5ms, buffer: 20p}
flows:
  - {cca: cubic, from: s1, to: d1}
"""


@pytest.mark.parametrize(
    ("old", "new", "line", "expected"),
    [
        ("rate: 10mbit", "rate: 10mbyte", 10, "is not a rate"),
        ("rate: 10mbit", "rte: 10mbit", 10, "did you mean rate?"),
        ("delay: 1ms", "delay: 1", 9, "a text is needed"),
        ("to: d1", "to: r7", 12, "no node 'r7'"),
    ],
)
def test_bad_links_of_a_chain_are_reported_at_their_line(
    tmp_path: Path, old: str, new: str, line: int, expected: str
) -> None:
    message = problem(tmp_path, CHAIN.replace(old, new))
    assert f"experiment.yml:{line}:" in message
    assert expected in message


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("1\n5\n3\n", "t.trace:3: 3 after 5"),
        ("1\n70000\n", "t.trace:2: a gap of 69999 ms"),
        ("1\nx\n", "t.trace:2: 'x' is not a whole number"),
        ("1\n-2\n", "t.trace:2: '-2' is not"),
        ("", "at least one time"),
        ("0\n", "at least one time"),
    ],
)
def test_bad_traces_are_reported_by_their_own_line(tmp_path: Path, content: str, expected: str) -> None:
    (tmp_path / "t.trace").write_text(content)
    message = problem(tmp_path, lab.SMALL.replace("rate: 20mbit", "rate: trace t.trace"))
    assert "experiment.yml:7: topology.params.rate" in message
    assert expected in message


@pytest.mark.parametrize(
    "name", ["/etc/passwd", "../secret.trace", "sub/../../secret.trace", "link.trace", "linked/secret.trace"]
)
def test_a_trace_outside_of_the_files_folder_is_refused_and_not_read(tmp_path: Path, name: str) -> None:
    """An experiment file from elsewhere cannot make a user's other files into error messages or results."""
    folder = tmp_path / "experiment"
    (folder / "sub").mkdir(parents=True)
    (tmp_path / "secret.trace").write_text("a secret\n")
    (folder / "link.trace").symlink_to(tmp_path / "secret.trace")
    (folder / "linked").symlink_to(tmp_path)
    message = problem(folder, lab.SMALL.replace("rate: 20mbit", f"rate: trace {name}"))
    assert "experiment.yml:7: topology.params.rate" in message
    assert "outside of the experiment file's folder" in message and "put the trace into it" in message
    assert "a secret" not in message and "root:" not in message


def test_traces_below_the_files_folder_and_links_within_it_are_read(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/t.trace").write_text("1\n2\n3\n")
    (tmp_path / "link.trace").symlink_to("sub/t.trace")
    for name in ("sub/t.trace", "link.trace", "sub/../sub/t.trace"):
        assert prepare(lab.write(tmp_path, lab.SMALL.replace("rate: 20mbit", f"rate: trace {name}"))).plans


@pytest.mark.parametrize("kind", ["a folder", "a pipe", "a link to itself", "a device", "too long a name"])
def test_what_is_no_file_is_refused_and_not_waited_for(tmp_path: Path, kind: str) -> None:
    name = "t" * 300 if kind == "too long a name" else "t.trace"
    match kind:
        case "a folder":
            (tmp_path / name).mkdir()
        case "a pipe":
            os.mkfifo(tmp_path / name)
        case "a link to itself":
            (tmp_path / name).symlink_to(name)
        case "a device":
            (tmp_path / name).symlink_to("/dev/zero")
    message = problem(tmp_path, lab.SMALL.replace("rate: 20mbit", f"rate: trace {name}"))
    assert "experiment.yml:7: topology.params.rate" in message


def test_a_runs_id_depends_on_what_is_in_its_trace(tmp_path: Path) -> None:
    ids = set()
    for content in ("1\n2\n3\n", "1\n2\n4\n"):
        (tmp_path / "t.trace").write_text(content)
        prepared = prepare(lab.write(tmp_path, lab.SMALL.replace("rate: 20mbit", "rate: trace t.trace")))
        ids.add(prepared.runs[0].run_id("virtual", "k"))
    assert len(ids) == 2


def test_a_disconnected_network_names_what_cannot_be_reached() -> None:
    nodes = tuple(Node(name) for name in ("a", "b", "c"))
    (problem,) = Network(nodes, (Link("a", "b"),)).problems()
    assert problem == "no path from a to c; add a link between the two parts"


def test_impossible_addresses_are_refused() -> None:
    nodes = (Node("a"), Node("b"))
    links = (Link("a", "b", Direction(), Direction()),) * ((1 << 16) + 1)
    assert any("at most 65536 have addresses" in problem for problem in Network(nodes, links).problems())
    assert any("its own node" in problem for problem in Network(nodes, (Link("a", "b"), Link("a", "a"))).problems())


@pytest.mark.parametrize(
    ("words", "option"),
    [
        ({"rate": "10mbit", "queue": "cake ecn"}, "CONFIG_NET_SCH_CAKE"),
        ({"rate": "10mbit", "queue": "pie"}, "CONFIG_NET_SCH_PIE"),
        ({"delay": "10ms"}, "CONFIG_NET_SCH_NETEM"),
        ({"delay": "10ms"}, "CONFIG_NET_ACT_MIRRED"),
        ({"rate": "10mbit"}, "CONFIG_NET_SCH_TBF"),
        ({"rate": "10mbit", "queue": "dualpi2 ecn"}, "CONFIG_NET_SCH_DUALPI2"),
        ({"rate": "10mbit", "buffer": "64KB", "queue": "policer"}, "CONFIG_NET_ACT_POLICE"),
        ({"rate": "10mbit", "buffer": "64KB", "queue": "policer"}, "CONFIG_NET_SCH_PRIO"),
    ],
)
def test_what_a_kernel_cannot_do_is_named(words: dict[str, str], option: str) -> None:
    link = Link("a", "b", direction(words), direction(words))
    network = Network((Node("a"), Node("b")), (link,))
    whole = virtual_config()
    assert missing(network, whole, project_modules()) == []
    without = {key: value for key, value in whole.items() if key != option}
    lacks = missing(network, without, project_modules())
    assert len(lacks) == 2 and all(option in text for text in lacks)


def test_modules_that_a_kernel_lacks_are_named() -> None:
    link = Link("a", "b", direction({"rate": "steps 0s=1mbit 1s=2mbit"}), direction({"loss": "bit-errors 1e-6"}))
    lacks = missing(Network((Node("a"), Node("b")), (link,)), virtual_config(), [])
    assert ["warp_rate" in lacks[0], "warp_wire" in lacks[1]] == [True, True]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kernel: '6.12'\nhosts: {ecn: accurate}\n", "experiment.yml:11: hosts.ecn: kernel 6.12 has no Accurate ECN"),
        ("kernel: '6.1'\nhosts: {only: {d1: {ecn: accurate}}}\n", "hosts.only.d1.ecn: kernel 6.1 has no Accurate ECN"),
        ("hosts: {ecn: sometimes}\n", "'off', 'passive', 'on' or 'accurate'"),
        ("hosts: {ecn: on, sysctls: {net.ipv4.tcp_ecn: 1}}\n", "say the same; leave one of them out"),
    ],
)
def test_ecn_that_cannot_be_is_refused(tmp_path: Path, text: str, message: str) -> None:
    assert message in problem(tmp_path, lab.SMALL + text.replace("ecn: on,", "ecn: 'on',"))


def test_dualpi2_is_refused_where_the_kernel_is_older(tmp_path: Path) -> None:
    text = lab.SMALL.replace("buffer: 40p", "buffer: 40p, queue: dualpi2 ecn")
    assert "CONFIG_NET_SCH_DUALPI2" in problem(tmp_path, text + "kernel: '6.12'\n")
    assert prepare(lab.write(tmp_path, text)).errors == []


def test_dctcp_without_marks_and_a_tiny_bucket_are_pointed_out(tmp_path: Path) -> None:
    def rules(text: str) -> set[str]:
        return {finding.rule for finding in prepare(lab.write(tmp_path, text)).findings}

    dctcp = lab.SMALL.replace("cca: cubic", "cca: dctcp")
    assert "dctcp-marks" in rules(dctcp)
    assert "dctcp-marks" not in rules(dctcp.replace("buffer: 40p", "buffer: 40p, queue: dualpi2 any ecn"))
    policer = lab.SMALL.replace("buffer: 40p", "buffer: 2KB, queue: policer")
    assert "small-bucket" in rules(policer)
    assert "small-bucket" not in rules(policer.replace("2KB", "3028B"))


def test_a_sweep_over_the_host_is_refused(tmp_path: Path) -> None:
    """All runs would be made on the file's host, and be called by the others' names."""
    text = f"{lab.SMALL}sweep: {{parameters: {{x: host}}, factorial: {{x: [virtual, local]}}}}\n"
    assert "host is the same for all runs of a file; write a file for each" in problem(tmp_path, text)
