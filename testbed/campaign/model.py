# SPDX-License-Identifier: Apache-2.0
"""The schema of campaign files, version 1. docs/wan.md explains it with the NCTU measurement of Ho 2008 s6.2."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from base import quantities
from base.nearest import nearest
from schema.base import Cca, KernelSeries, Model, Name, Scalar, Size, Time, check_algorithm
from schema.claims import Claim, Order, Sides
from schema.load import Document, read, validate_as
from schema.model import HostRules, Topology


def _rate(text: str) -> str:
    quantities.rate_bps(text)
    return text


Rate = Annotated[str, AfterValidator(_rate)]
RUNS_AT_MOST = 100_000
LARGEST_BYTES = 10**12


class Profile(Model):
    """How the virtual host stands in for the way to a receiver: a topology, and the nodes at its ends."""

    topology: Topology
    source: Annotated[str, Field(alias="from")] = "s1"
    destination: Annotated[str, Field(alias="to")] = "d1"


class Receiver(Model):
    """Where transfers go. Its key is the inventory's name of the host; `virtual` is needed on the virtual host only."""

    title: str = ""
    virtual: Profile | None = None


class Limits(Model):
    """What the campaign may load other people's networks with.

    rate: kept by the kernel's pacing, which changes how every algorithm sends
    rate_at_most: changes nothing of how an algorithm sends, and ends a transfer that sends more in a second
    Between real hosts a volume or rate_at_most that is not set has a default (testbed.campaign.limits).
    """

    rate: Rate | None = None
    rate_at_most: Rate | None = None
    volume: Size | None = None
    volume_per_day: Size | None = None


class Captures(Model):
    """Captures at both ends: bytes kept of each packet, and the size at which a capture file is not continued."""

    snap: Size | Literal["all"] = "96B"
    budget: Size = "200MB"


class Clock(Model):
    """Largest difference between the clocks of the two ends; a transfer beyond it is judged suspect."""

    offset_at_most: Time = "50ms"


class Campaign(Model):
    """One campaign file.

    Each run is every algorithm × size × receiver once, in an order drawn from the seed; `pause` lies between two transfers,
    and a run begins at the next multiple of `every` after the one before. No run begins once the campaign has `lasted`.

    bpf: of algorithms that are BPF programs of the user's own, the object or source beside the file; between real hosts only
    """

    warpbed: Literal[1]
    campaign: Name
    title: str
    question: str = ""
    source: str = ""
    sender: Name
    receivers: Annotated[dict[Name, Receiver], Field(min_length=1, max_length=100)]
    algorithms: Annotated[list[str], Field(min_length=1, max_length=50)]
    bpf: Annotated[
        dict[str, Annotated[str, Field(min_length=1, max_length=500)]], Field(max_length=50, default_factory=dict)
    ]
    sizes: Annotated[list[Size], Field(min_length=1, max_length=100)]
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 1
    pause: Time = "8min"
    every: Time = "1h"
    lasts: Time = "168h"
    runs: Annotated[int, Field(ge=1, le=RUNS_AT_MOST)] | None = None
    transfer_at_most: Time = "30min"
    attempts: Annotated[int, Field(ge=1, le=100)] = 3
    patience: Time = "1h"
    hosts: HostRules = HostRules()
    limits: Limits = Limits()
    captures: Captures = Captures()
    clock: Clock = Clock()
    sockets: Time = "100ms"
    traceroute: bool = True
    kernel: KernelSeries = "default"
    published: dict[Name, dict[str, dict[str, Annotated[float, Field(gt=0)]]]] = Field(default_factory=dict)
    claims: list[Claim] = Field(default_factory=list)

    @model_validator(mode="after")
    def _consistent(self) -> Campaign:
        for name in self.algorithms:
            check_algorithm(name, self.bpf.get(name))
        for name in self.bpf:
            if name not in self.algorithms:
                raise ValueError(
                    f"bpf: {name!r} is none of the campaign's algorithms; {nearest(name, self.algorithms)}"
                )
        for what in ("algorithms", "sizes"):
            if len(set(getattr(self, what))) != len(getattr(self, what)):
                raise ValueError(f"{what}: one of them occurs twice")
        for size in self.sizes:
            if not 1 <= quantities.size_bytes(size) <= LARGEST_BYTES:
                raise ValueError(f"size {size}: allowed are 1B to {LARGEST_BYTES // 10**9}GB")
        if self.sender in self.receivers:
            raise ValueError(f"{self.sender} is the sender and cannot receive")
        for receiver, by_size in self.published.items():
            if receiver not in self.receivers:
                raise ValueError(f"published: no receiver {receiver!r}; {nearest(receiver, self.receivers)}")
            for size, by_cca in by_size.items():
                if size not in self.sizes:
                    raise ValueError(f"published.{receiver}: no size {size!r}; {nearest(size, self.sizes)}")
                for cca in by_cca:
                    if cca not in self.algorithms:
                        raise ValueError(
                            f"published.{receiver}.{size}: no algorithm {cca!r}; {nearest(cca, self.algorithms)}"
                        )
        return self

    @model_validator(mode="after")
    def _positive(self) -> Campaign:
        for what in ("lasts", "transfer_at_most", "sockets"):
            if quantities.delay_ns(getattr(self, what)) == 0:
                raise ValueError(f"{what} must be above 0s")
        if quantities.size_bytes(self.captures.budget) < 10_000:
            raise ValueError(f"captures.budget {self.captures.budget}: at least 10KB")
        return self

    @model_validator(mode="after")
    def _own_claims(self) -> Campaign:
        """They are about the seconds of transfers, by receiver, size and algorithm."""
        known = {"receiver": list(self.receivers), "size": self.sizes, "cca": self.algorithms}
        for i, claim in enumerate(self.claims):
            if claim.metrics != ("completion_s",):
                raise ValueError(
                    f"claims.{i}: a campaign's claims are about completion_s, not {', '.join(claim.metrics)}"
                )
            for name, value in _named(claim):
                if name not in known:
                    raise ValueError(f"claims.{i}: {name!r} is no parameter of a campaign; {nearest(name, known)}")
                if value is not None and str(value) not in known[name]:
                    raise ValueError(f"claims.{i}: {name} is never {value}; {nearest(str(value), known[name])}")
        return self

    def cca(self, name: str) -> Cca:
        """An algorithm as an experiment file says it."""
        return Cca(name=name, bpf=self.bpf.get(name))

    @property
    def size_of_run_bytes(self) -> int:
        """Payload of one run."""
        return sum(quantities.size_bytes(size) for size in self.sizes) * len(self.algorithms) * len(self.receivers)


def _named(claim: Claim) -> Iterator[tuple[str, Scalar | None]]:
    """The parameters that a claim names, with their values."""
    yield from claim.where.items()
    yield from ((name, None) for name in claim.parameters)
    relation = claim.relation
    if isinstance(relation, Sides):
        yield from (*relation.first.where.items(), *relation.second.where.items())
    if isinstance(relation, Order) and relation.of is not None:
        yield from ((relation.of, value) for value in relation.values or ())


def load(path: Path) -> tuple[Campaign, Document]:
    """The campaign of a file.

    Raises SpecError with all problems, UsageError where there is no such file.
    """
    document = read(path)
    assert isinstance(document.data, dict)
    return validate_as(Campaign, document.data, document), document
