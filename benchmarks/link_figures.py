# SPDX-License-Identifier: Apache-2.0
"""The figures of docs/links.md: what words of links and flows do to one flow. Each needs a few runs of seconds.

    ./warpbed exec python -m benchmarks.link_figures [NAME ...] [--results DIR]

Writes docs/images/link-NAME.svg. What is drawn are the records of runs on the virtual host, the same on every machine; runs that
are in the results folder (default: results/) are not made again.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from analysis import records
from analysis.palette import COLOURS
from analysis.results import Run, load_experiment
from base.paths import ROOT
from benchmarks.command import executed
from collectors.pcap import analyze

INCHES = (6.4, 3.0)
IMAGES = ROOT / "docs/images"
POINTS = 800
"""Of a line: more are not seen, and make the file larger."""

Drawing = Callable[[Axes, Mapping[str, Run]], None]


@dataclass(frozen=True)
class Word:
    """What is run and drawn for one word.

    topology: parameters of the dumbbell; rest: further lines of the file; cases: label → values in the places of a sweep
    """

    topology: str
    places: Mapping[str, str]
    cases: Mapping[str, Sequence[str | int]]
    draw: Drawing
    rest: str = ""
    duration: str = "10s"


def columns(run: Run, kind: str, *names: str) -> tuple[NDArray[np.float64], ...]:
    """Columns of the flow's records, those rows where none of them is missing."""
    record = records.collect(run.path / "records" / f"{kind}.parquet", ["flow"], list(names))[("f1",)]
    values = [np.asarray(record[name], dtype=float) for name in names]
    whole = ~np.any([np.isnan(value) for value in values], axis=0)
    return tuple(value[whole] for value in values)


def thin(*values: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    """Every n-th value, so that at most POINTS are left."""
    step = -(-len(values[0]) // POINTS)
    return [value[::step] for value in values]


def dualpi2(axis: Axes, runs: Mapping[str, Run]) -> None:
    for (label, run), colour in zip(runs.items(), COLOURS, strict=False):
        t_s, rtt_us = columns(run, "acks", "t_s", "rtt_us")
        axis.plot(*thin(t_s, rtt_us / 1e3), color=colour, label=label, linewidth=0.8)
    axis.set(xlabel="time, s", ylabel="RTT, ms")


def policer(axis: Axes, runs: Mapping[str, Run]) -> None:
    """The line is the token bucket's, as payload: a full frame has 1514 bytes, 1448 of them payload."""
    for (label, run), colour in zip(runs.items(), COLOURS, strict=False):
        t_s, width_s, delivered = columns(run, "intervals", "t_s", "width_s", "delivered_bytes")
        axis.plot(t_s + width_s, np.cumsum(delivered) / 1e6, color=colour, label=label, linewidth=1.2)
    t = np.array([0.0, 3.0])
    for bucket, dash in ((50e3, "--"), (500e3, ":")):
        most = (bucket + 10e6 / 8 * t) * 1448 / 1514 / 1e6
        axis.plot(
            t, most, color="black", linestyle=dash, linewidth=0.8, label=f"bucket {bucket / 1e3:.0f}KB + 10 Mbit/s"
        )
    axis.set(xlabel="time, s", ylabel="delivered, MB", xlim=(0, 3), ylim=(0, 4.2))


def aggregate(axis: Axes, runs: Mapping[str, Run]) -> None:
    for (label, run), colour in zip(runs.items(), COLOURS, strict=False):
        (t_s,) = columns(run, "acks", "t_s")
        gaps = np.sort(np.diff(t_s[t_s > 3])) * 1e3
        share = np.arange(1, len(gaps) + 1) / len(gaps)
        axis.plot(*thin(np.maximum(gaps, 1e-3), share), color=colour, label=label, linewidth=1.2)
    axis.set(
        xlabel="time between two ACKs at the sender, ms", ylabel="share that is shorter", xscale="log", ylim=(0, 1)
    )


def ecn(axis: Axes, runs: Mapping[str, Run]) -> None:
    for (label, run), colour in zip(runs.items(), COLOURS, strict=False):
        t_s, cwnd = columns(run, "sockets", "t_s", "cwnd_packets")
        (sent_again,) = columns(run, "flows", "retransmitted_packets")
        name = f"{label}: {sent_again[0]:.0f} packets sent again"
        axis.plot(*thin(t_s, cwnd), color=colour, label=name, linewidth=0.9)
    axis.set(xlabel="time, s", ylabel="window, packets")


def jitter(axis: Axes, runs: Mapping[str, Run]) -> None:
    """Shares of round-trip times, and how many packets reached the receiver behind one that was sent later."""
    for (label, run), colour in zip(runs.items(), COLOURS, strict=False):
        (rtt_us,) = columns(run, "acks", "rtt_us")
        rtt_ms = np.sort(rtt_us) / 1e3
        share = np.arange(1, len(rtt_ms) + 1) / len(rtt_ms)
        name = f"{label}: {overtaken(run)} out of order"
        axis.plot(*thin(rtt_ms, share), color=colour, label=name, linewidth=1.2)
    axis.set(xlabel="RTT, ms", ylabel="share that is shorter", ylim=(0, 1))


def overtaken(run: Run) -> int:
    """Packets that the receiver's capture shows out of order."""
    with tempfile.TemporaryDirectory(prefix="warpbed-figures-") as folder:
        analyze(run.path / "raw/d1-eth0.pcap", Path(folder), threads=1)
        counts = records.rows(Path(folder) / "flows.parquet")
        return sum(flow["out_of_order_packets"] for flow in counts)


def ip(axis: Axes, runs: Mapping[str, Run]) -> None:
    """What the longer header takes. The line is the rate times 20 of 1514 bytes, from the first data on."""
    totals = {}
    for label, run in runs.items():
        t_s, width_s, delivered = columns(run, "intervals", "t_s", "width_s", "delivered_bytes")
        totals[label] = np.interp(np.arange(0, 10.05, 0.1), t_s + width_s, np.cumsum(delivered))
    t = np.arange(0, 10.05, 0.1)
    less = (totals["ip: 4"] - totals["ip: 6"]) / 1e3
    axis.plot(t, less, color=COLOURS[0], label="delivered with ip: 4, less what is with ip: 6", linewidth=1.2)
    axis.plot(
        t, 10e6 / 8e3 * 20 / 1514 * t, color="black", linestyle="--", linewidth=0.8, label="10 Mbit/s · 20 / 1514"
    )
    axis.set(xlabel="time, s", ylabel="difference, kB")


WORDS = {
    "dualpi2": Word(
        "rate: 20mbit, delay: 18ms, buffer: 250p, access_delay: 1ms",
        {"cca": "flows.*.cca", "queue": "topology.params.queue"},
        {
            "CUBIC, droptail": ("cubic", "droptail"),
            "CUBIC, dualpi2": ("cubic", "dualpi2 ecn"),
            "DCTCP, dualpi2 any": ("dctcp", "dualpi2 any ecn"),
        },
        dualpi2,
    ),
    "policer": Word(
        "rate: 10mbit, delay: 18ms, buffer: 50KB, queue: policer, access_delay: 1ms",
        {"bucket": "topology.params.buffer"},
        {"CUBIC, bucket 50KB": ("50KB",), "CUBIC, bucket 500KB": ("500KB",)},
        policer,
        duration="4s",
    ),
    "aggregate": Word(
        "rate: 20mbit, delay: 18ms, buffer: 100p, access_delay: 1ms",
        {"delay": "topology.links.r2>r1.delay"},
        {"delay: 18ms": ("18ms",), "delay: 18ms aggregate=5ms": ("18ms aggregate=5ms",)},
        aggregate,
        rest="  links: {r2>r1: {delay: 18ms}}\n",
    ),
    "ecn": Word(
        "rate: 10mbit, delay: 18ms, buffer: 200p, queue: codel ecn, access_delay: 1ms",
        {"ecn": "hosts.ecn"},
        {"ecn: off": ("off",), "ecn: on": ("on",), "ecn: accurate": ("accurate",)},
        ecn,
        rest="hosts: {ecn: 'on'}\n",
    ),
    "jitter": Word(
        "rate: 20mbit, delay: 30ms, buffer: 30p, access_delay: 1ms",
        {"delay": "topology.params.delay"},
        {
            "delay: 30ms": ("30ms",),
            "jitter=5ms order=keep": ("30ms jitter=5ms distribution=normal order=keep",),
            "jitter=5ms order=any": ("30ms jitter=5ms distribution=normal order=any",),
        },
        jitter,
    ),
    "ip": Word(
        "rate: 10mbit, delay: 18ms, buffer: 66p, access_delay: 1ms",
        {"ip": "ip"},
        {"ip: 4": (4,), "ip: 6": (6,)},
        ip,
    ),
}


def text_of(name: str) -> str:
    """The experiment file of a word's figure."""
    word = WORDS[name]
    cases = "".join(
        "    - {" + ", ".join(f"{place}: {value!r}" for place, value in zip(word.places, case, strict=True)) + "}\n"
        for case in word.cases.values()
    )
    places = ", ".join(f"{key}: {place}" for key, place in word.places.items())
    return (
        f"warpbed: 1\nname: link-{name}\ntitle: What {name} does to one flow\nduration: {word.duration}\n"
        f"topology:\n  name: dumbbell\n  params: {{{word.topology}}}\n{word.rest}"
        "flows: [{name: f1, cca: cubic, from: s1, to: d1}]\nmetrics: [utilization]\n"
        f"sweep:\n  parameters: {{{places}}}\n  list:\n{cases}"
    )


def made(name: str, results: Path) -> dict[str, Run]:
    """The runs of a word's figure by label; those that are missing are made."""
    with tempfile.TemporaryDirectory(prefix="warpbed-figures-") as folder:
        file = Path(folder) / f"{name}.yml"
        file.write_text(text_of(name))
        executed(file, results, "--jobs", "1")
    word, runs = WORDS[name], load_experiment(results / f"link-{name}")
    by_label: dict[str, Run] = {}
    for label, case in word.cases.items():
        wanted: dict[str, Any] = dict(zip(word.places, case, strict=True))
        fitting = [run for run in runs if run.complete and run.params == wanted]
        by_label[label] = max(fitting, key=lambda run: run.timing.get("ended", 0))
    return by_label


def drawn(name: str, runs: Mapping[str, Run], folder: Path) -> Path:
    """Draw a word's figure; returns the file."""
    figure = Figure(figsize=INCHES, layout="constrained")
    axis = figure.subplots()
    WORDS[name].draw(axis, runs)
    if axis.get_xscale() != "log":
        axis.set_xlim(left=0)
    axis.set_ylim(bottom=0)
    axis.grid(linewidth=0.3)
    axis.legend(fontsize=7, loc="best")
    target = folder / f"link-{name}.svg"
    figure.savefig(target, format="svg", metadata={"Date": None})
    return target


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(WORDS)} (default: all)")
    parser.add_argument("--results", type=Path, default=ROOT / "results")
    options = parser.parse_args()
    for name in options.names or WORDS:
        print(drawn(name, made(name, options.results.resolve()), IMAGES))
    return 0


if __name__ == "__main__":
    sys.exit(main())
