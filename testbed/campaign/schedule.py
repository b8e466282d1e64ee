# SPDX-License-Identifier: Apache-2.0
"""Which transfers a campaign is made of, and in which order: a pure function of its file."""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass

from base import quantities
from testbed.campaign.model import Campaign

NOT_IN_HASH = {
    "title",
    "question",
    "source",
    "published",
    "runs",
    "lasts",
    "every",
    "pause",
    "attempts",
    "patience",
    "clock",
    "receivers",
    "algorithms",
    "bpf",
    "sizes",
    "seed",
}
"""Parts of a file that change nothing in the packets of one transfer (whose receiver, algorithm with its object, size and seed are in
its name or hash by themselves)."""


@dataclass(frozen=True)
class Transfer:
    """One transfer. run and place count from 1; place is where the shuffle has put it within its run."""

    run: int
    place: int
    receiver: str
    cca: str
    size: str
    seed: int
    id: str

    @property
    def size_bytes(self) -> int:
        return quantities.size_bytes(self.size)

    @property
    def params(self) -> dict[str, str | int | float | bool]:
        """What results are grouped by."""
        return {"receiver": self.receiver, "cca": self.cca, "size": self.size, "run": self.run}


def run_of(
    campaign: Campaign, number: int, host: str, build: str = "", objects: Mapping[str, str] | None = None
) -> list[Transfer]:
    """All transfers of a run in their order.

    host: kind of host, "virtual" or "wan"; build: key of the guest's kernel where there is one
    objects: SHA-256 of the algorithms that are BPF objects
    """
    sums = objects or {}
    combinations = [
        (receiver, cca, size)
        for receiver in campaign.receivers
        for cca in campaign.algorithms
        for size in campaign.sizes
    ]
    random.Random(f"{campaign.seed}/{number}").shuffle(combinations)  # noqa: S311 — to be drawn again, not to be secret
    return [
        _transfer(campaign, number, place, combination, [host, build, *filter(None, [sums.get(combination[1])])])
        for place, combination in enumerate(combinations, start=1)
    ]


def _transfer(
    campaign: Campaign, number: int, place: int, combination: tuple[str, str, str], made_with: list[str]
) -> Transfer:
    """made_with: host, build, and the algorithm's object where it is one"""
    receiver, cca, size = combination
    # does not depend on the place: another order of the file's lists gives the same packets
    text = f"{campaign.seed}/{number}/{receiver}/{cca}/{size}"
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "big")
    decisive = campaign.model_dump(mode="json", by_alias=True, exclude=NOT_IN_HASH)
    del decisive["limits"]["rate_at_most"]  # it ends transfers, and changes none that ends by itself
    decisive["receiver"] = campaign.receivers[receiver].model_dump(mode="json", by_alias=True, exclude={"title"})
    digest = hashlib.sha256(json.dumps([decisive, seed, *made_with], sort_keys=True).encode()).hexdigest()[:8]
    parts = [f"r{number:04d}", receiver, cca, re.sub(r"[^A-Za-z0-9.]+", "_", size), digest]
    return Transfer(number, place, receiver, cca, size, seed, "-".join(parts))
