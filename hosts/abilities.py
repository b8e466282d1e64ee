# SPDX-License-Identifier: Apache-2.0
"""Kernel features that a network needs, and those that a configuration has, so that `check` rejects what would be ignored silently."""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from base.paths import ROOT
from kernels import series as kernel_series
from kernels.conditions import lines_for
from network.direction import Direction
from network.model import Network
from network.red_netlink import weight_log
from network.tc import RED_BITS, netem_words, own_modules, own_work, paced_by_own

QUEUE_OPTIONS = {
    "red": "CONFIG_NET_SCH_RED",
    "codel": "CONFIG_NET_SCH_CODEL",
    "fq_codel": "CONFIG_NET_SCH_FQ_CODEL",
    "pie": "CONFIG_NET_SCH_PIE",
    "cake": "CONFIG_NET_SCH_CAKE",
    "dualpi2": "CONFIG_NET_SCH_DUALPI2",
    "policer": "CONFIG_NET_ACT_POLICE",
}
WIRE_OPTIONS = ("CONFIG_VETH", "CONFIG_NET_SCH_INGRESS", "CONFIG_NET_CLS_MATCHALL", "CONFIG_NET_ACT_MIRRED")


def missing(network: Network, config: Mapping[str, str], modules: Collection[str]) -> list[str]:
    """What the kernel cannot do of what the network asks, as sentences.

    config: the kernel's configuration, CONFIG_X → y or m
    modules: those of the project's own kernel modules that can be loaded into it
    """
    lacking = {direction: list(_lacks(direction, config, modules)) for direction in set(network.directions())}
    if not any(lacking.values()):
        return []
    lacks: dict[str, None] = {}
    for link in network.links:
        for name, direction in ((f"{link.a}>{link.b}", link.forward), (f"{link.b}>{link.a}", link.backward)):
            lacks.update(dict.fromkeys(f"{name}: {what}" for what in lacking[direction]))
    return list(lacks)


def _lacks(direction: Direction, config: Mapping[str, str], modules: Collection[str]) -> Iterator[str]:
    """What the kernel cannot do of what one direction asks."""
    needs = _needs(direction)
    for option, why in needs.options:
        if config.get(option) not in ("y", "m"):
            yield f"{why} needs a kernel with {option}"
    for module in needs.modules:
        if module not in modules:
            what = own_work(module, direction)
            yield f"{what} needs the module {module}, which this host's kernel does not have"
    yield from needs.red_limits


@dataclass(frozen=True)
class _Needs:
    """Of one direction: options with what needs them, modules of the project, and what no kernel can do of its RED."""

    options: tuple[tuple[str, str], ...]
    modules: tuple[str, ...]
    red_limits: tuple[str, ...]


@functools.lru_cache(maxsize=4096)
def _needs(direction: Direction) -> _Needs:
    """Remembered, since a sweep over a large network asks for the same few directions a hundred thousand times."""
    return _Needs(tuple(_options(direction)), tuple(own_modules([direction])), tuple(_red_limits(direction)))


def _options(direction: Direction) -> Iterator[tuple[str, str]]:
    if direction.has_wire:
        for option in WIRE_OPTIONS:
            yield option, "an emulated link"
    if netem_words(direction):
        yield "CONFIG_NET_SCH_NETEM", "delay or loss"
    if direction.polices:
        yield "CONFIG_NET_SCH_PRIO", "queue policer"
        yield "CONFIG_NET_CLS_MATCHALL", "queue policer"
    elif direction.rate_bps is not None and not paced_by_own(direction):
        yield "CONFIG_NET_SCH_TBF", "a rate"
    if direction.queue.kind in QUEUE_OPTIONS:
        yield QUEUE_OPTIONS[direction.queue.kind], f"queue {direction.queue.kind}"


def _red_limits(direction: Direction) -> Iterator[str]:
    """The kernel's RED averages in fixed point: threshold × weight must fit into 32 bits (red_check_params)."""
    queue = direction.queue
    if queue.kind != "red":
        return
    assert queue.max_bytes is not None
    log = weight_log(queue)
    if queue.max_bytes.bit_length() + log >= RED_BITS:
        largest = (1 << (RED_BITS - 1 - log)) - 1
        yield (
            f"the kernel's RED cannot average up to max={queue.max_bytes} bytes with a weight of 2^-{log}; "
            f"at most {largest} bytes, or a larger weight, or smaller packets; red_packets has no such bound"
        )


def virtual_config(series: str = kernel_series.DEFAULT) -> dict[str, str]:
    """The configuration that the virtual host's kernel of a series is built with: what is asked of all, less what needs a later one."""
    folder = ROOT / "kernels/configs"
    needed = {line.partition("=")[0] for line in _lines(folder / "um.required")}
    there = {line.word.partition("=")[0] for line in lines_for(folder / "um.required", series)}
    config = _parse((folder / "um.config").read_text())
    return {option: value for option, value in config.items() if option not in needed - there}


def _lines(path: Path) -> list[str]:
    return [text for text in path.read_text().splitlines() if text.startswith("CONFIG_")]


def project_modules() -> list[str]:
    """The project's own modules, all of which the kernel build makes."""
    return [path.stem for path in sorted((ROOT / "kernels/modules").glob("warp_*.c"))]


def _parse(text: str) -> dict[str, str]:
    return dict(re.findall(r"^(CONFIG_\w+)=(.*)$", text, re.MULTILINE))
