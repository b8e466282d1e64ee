# SPDX-License-Identifier: Apache-2.0
"""The schema of experiment files, version 1. docs/experiment-files.md explains it with examples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from base import quantities
from base.nearest import nearest
from schema import patterns
from schema.base import (
    Cca,
    KernelSeries,
    Model,
    Name,
    NodeName,
    ParamName,
    Scalar,
    Size,
    StartValues,
    SysctlName,
    SysctlValue,
    Time,
    checked,
    with_short_cca,
)
from schema.claims import Claim, Guard
from schema.drawn import Drawn
from schema.keep import check as check_keep
from schema.names import host_kinds
from schema.published import Published
from schema.repeats import DECIDED, MOST, Repeats
from schema.traffic import Starts, Traffic

FORMAT = 1

if TYPE_CHECKING:
    HostKind = str
else:
    HostKind = Literal[tuple(host_kinds())]


class Topology(Model):
    """A topology by name, with its parameters (texts with units), and what is different on single links.

    links: `a-b` for both directions of a link, `a>b` for one; the words are those of docs/links.md
    """

    name: str
    params: dict[str, str | int | list[dict[str, str]]] = {}
    links: dict[Annotated[str, Field(pattern=patterns.LINK)], dict[str, str]] = {}


def _ack_wait(text: str) -> None:
    if not 0 < quantities.delay_ns(text) <= MOST_ACK_WAIT_NS:
        raise ValueError(f"{text!r}: an ACK waits for more than 0 and at most 500 ms (RFC 1122)")


MOST_ACK_WAIT_NS = 500_000_000


class HostRules(Model):
    """What is set on a host before a run."""

    sysctls: dict[SysctlName, SysctlValue] = {}
    ack: Literal["delayed", "every", "second"] | None = None
    ack_wait: Annotated[str, checked(_ack_wait)] | None = None
    mss: Annotated[int, Field(ge=88, le=8960)] | None = None
    bursts: Literal["linux", "none"] | None = None
    initial_window: Annotated[int, Field(ge=1, le=1000)] | None = None
    ecn: Literal["off", "passive", "on", "accurate"] | None = None

    @model_validator(mode="after")
    def _one_ecn(self) -> HostRules:
        if self.ecn is not None and ECN_SYSCTL in self.sysctls:
            raise ValueError(f"ecn and the sysctl {ECN_SYSCTL} say the same; leave one of them out")
        return self


ECN_SYSCTL = "net.ipv4.tcp_ecn"
NO_OVERHEAD, AUTO_OVERHEAD = "none", "auto"
MOST_OVERHEAD_NS = 10_000_000_000


def _overhead(text: str) -> None:
    if text in (AUTO_OVERHEAD, NO_OVERHEAD):
        return
    try:
        ns = quantities.delay_ns(text)
    except ValueError as error:
        raise ValueError(f"{error}; or auto, or none") from error
    if not 0 < ns <= MOST_OVERHEAD_NS:
        raise ValueError(f"{text!r}: write a time above 0 and at most 10 s per packet, auto, or none")


class Hosts(HostRules):
    """Rules for all hosts, and exceptions by name under `only`.

    overhead: the longest time that a host in virtual time takes for a packet; auto is a full packet's at the bottleneck,
        None as `none` is nothing
    """

    overhead: Annotated[str, checked(_overhead)] | None = AUTO_OVERHEAD
    only: dict[NodeName, HostRules] = {}

    @model_validator(mode="after")
    def _somebody_waits(self) -> Hosts:
        acks = {name: rule.ack or self.ack for name, rule in self.only.items()}
        idle = [f"{name}: " for name, rule in self.only.items() if rule.ack_wait and acks[name] != "second"]
        if self.ack_wait and "second" not in (self.ack, *acks.values()):
            idle.append("")
        if idle:
            raise ValueError(
                f"{idle[0]}ack_wait is how long ACKs wait with `ack: second`; write that too, or leave ack_wait out"
            )
        return self


class Flow(StartValues):
    """One flow; ends at `stop`, after `size`, or with the experiment.

    exactly: it starts at `start` to the nanosecond, also where other flows do
    """

    name: Name | None = None
    cca: Cca
    source: NodeName = Field(alias="from")
    destination: NodeName = Field(alias="to")
    start: Time = "0s"
    stop: Time | None = None
    size: Size | None = None
    app: Literal["iperf3", "file"] = "iperf3"
    parallel: Annotated[int, Field(ge=1, le=128)] = 1
    exactly: bool | None = None

    @model_validator(mode="before")
    @classmethod
    def _short_cca(cls, data: Any) -> Any:
        return with_short_cca(data)

    @model_validator(mode="after")
    def _one_end(self) -> Flow:
        if self.stop is not None and self.size is not None:
            raise ValueError("a flow ends at `stop` or after `size`, not both; leave one out")
        if self.app == "file" and (self.size is None or self.parallel != 1):
            raise ValueError("app: file sends `size` over one connection; give a size and leave parallel out")
        if self.stop is not None and quantities.delay_ns(self.stop) <= quantities.delay_ns(self.start):
            raise ValueError(f"stop {self.stop} is not after start {self.start}")
        return self


class Captures(Model):
    """Where packets are captured: `ends` (every flow's source and destination), or a list of `node>peer`.

    keep: whether the files stay once they have been read: of every run, of those that are not valid, of none, or while
    a run's are no larger than a budget together.
    compress: what stays is compressed (Zstandard), a fifth or so of its size.
    Both are no part of what decides a run.
    """

    at: Literal["ends", "none"] | list[Annotated[str, Field(pattern=patterns.WAY)]] = "ends"
    snap: Size | Literal["all"] = "96B"
    keep: Annotated[str, checked(check_keep)] | None = None
    compress: bool = False


SHORTEST_INTERVAL_NS = 100_000
"""Ten times as often as any experiment of the project asks; a sample takes some ten microseconds by itself."""


def _interval(text: str) -> None:
    if quantities.delay_ns(text) < SHORTEST_INTERVAL_NS:
        raise ValueError(f"{text!r}: samples are taken each 100us at most; write a longer interval, or off")


Interval = Annotated[str, checked(_interval)]


class Samplers(Model):
    """What is sampled besides packets; `off` for none.

    An interval is at least 100us, and a run has at most 30 million samples of a kind.
    """

    tcp_probe: bool = True
    sockets: Interval | Literal["off"] = "100ms"
    queues: Interval | Literal["off"] = "10ms"


class Virtual(Model):
    """What only the virtual host knows.

    batch_receivers: let the kernel read for the receiving applications and wake them once per batch; the packets are
    the same, the run is several times faster (docs/virtual-time.md)
    recorded_by: who captures packets, samples queues and sockets, and records each ACK: the guest's kernel (not set), or
    tcpdump, the agent and the trace event tcp:tcp_probe; the records are the same
    links: how packets cross a link: with one event each where that can be (not set), or through the chain of shaper,
    hand-over and wire that hosts in real time have; the packets are the same
    """

    batch_receivers: bool = True
    recorded_by: Literal["kernel", "programs"] | None = None
    links: Literal["events", "chain"] | None = None


class Sweep(Model):
    """Variations of the experiment: every parameter names the places that it sets.

    factorial: all combinations of the values; list: further combinations, one by one, or, where factorial has only some of
    the parameters, combinations of the others, each of which goes with each of factorial's
    drawn: parameters whose values are drawn; each of these paths goes with each combination of the others
    """

    parameters: dict[ParamName, str | list[str]]
    factorial: dict[ParamName, Annotated[list[Scalar], Field(min_length=1)]] = {}
    combinations: Annotated[list[dict[ParamName, Scalar]], Field(alias="list")] = []
    drawn: Drawn | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Sweep:
        drawn = set(self.drawn.around) if self.drawn else set()
        for name in [*self.factorial, *(key for entry in self.combinations for key in entry), *drawn]:
            if name not in self.parameters:
                raise ValueError(f"{name!r} has values but no place; {nearest(name, self.parameters)}")
        twice = drawn & {*self.factorial, *(key for entry in self.combinations for key in entry)}
        if twice:
            raise ValueError(f"{', '.join(sorted(twice))}: drawn, and given values as well")
        for entry in self.combinations:
            missing = set(self.parameters) - set(entry) - drawn - (set(self.factorial) if self.crossed else set())
            if missing:
                raise ValueError(f"an entry of list has no value for {', '.join(sorted(missing))}")
            if self.crossed and set(entry) & set(self.factorial):
                again = ", ".join(sorted(set(entry) & set(self.factorial)))
                raise ValueError(f"{again}: in factorial, which lacks others, and in an entry of list as well")
        if not self.factorial and not self.combinations and set(self.parameters) != drawn:
            raise ValueError("a sweep needs factorial, list or drawn")
        if self.factorial and not self.combinations and set(self.factorial) | drawn != set(self.parameters):
            missing = set(self.parameters) - set(self.factorial) - drawn
            raise ValueError(f"factorial has no values for {', '.join(sorted(missing))}")
        return self

    @property
    def crossed(self) -> bool:
        """Whether each entry of list goes with each combination of factorial, which lacks its parameters."""
        drawn = set(self.drawn.around) if self.drawn else set()
        return bool(self.factorial and self.combinations) and set(self.factorial) | drawn != set(self.parameters)

    def paths(self) -> list[dict[str, Scalar]]:
        """What is drawn, path by path; one path without parameters where nothing is."""
        return self.drawn.paths() if self.drawn else [{}]


class Expectation(Guard):
    """The older word for a guard, which may name a source. A paper's claim is better said by `claims`, which knows seeds."""

    source: str | None = None


MAX_DURATION_NS = 30 * 24 * 3600 * 10**9
"""30 days of a run's own clock: more is a slip of the keyboard, and its captures fit no disk."""


class Criterion(Model):
    """What a document asks of a congestion control that the file evaluates (docs/evaluation.md).

    document: RFC 9743, or the draft whose test cases for BBR say enough for an experiment
    section: its heading
    level: its word for how much is asked, `described` where it only describes
    asks: what, in words of one's own
    """

    document: Literal["RFC 9743", "draft-ietf-ccwg-bbr"] = "RFC 9743"
    section: Annotated[str, Field(min_length=1, max_length=100)]
    level: Literal["MUST", "SHOULD", "should", "ought", "described"]
    asks: Annotated[str, Field(min_length=1, max_length=300)]


class Experiment(Model):
    """One experiment file."""

    warpbed: Literal[1]
    name: Name
    title: str
    question: str = ""
    source: str = ""
    criterion: Criterion | None = None
    host: HostKind = "virtual"
    kernel: KernelSeries = "default"
    ip: Literal[4, 6] | None = None
    duration: Time
    warmup: Time = "0s"
    topology: Topology
    hosts: Hosts = Hosts()
    flows: Annotated[list[Flow], Field(max_length=1000)] = []
    traffic: Annotated[list[Traffic], Field(max_length=1000)] = []
    starts: Annotated[list[Starts], Field(max_length=1000)] = []
    captures: Captures = Captures()
    samplers: Samplers = Samplers()
    virtual: Virtual = Virtual()
    sweep: Sweep | None = None
    repeats: Annotated[int, Field(ge=1, le=MOST)] | Repeats = 1
    seeds: Annotated[list[Annotated[int, Field(ge=0, lt=2**63)]], Field(min_length=1)] | None = None
    metrics: list[str] = []
    claims: Annotated[list[Claim], Field(max_length=1000)] = []
    guards: list[Guard] = []
    expectations: list[Expectation] = []
    published: list[Published] = []

    @field_validator("ip")
    @classmethod
    def _usual(cls, version: int | None) -> int | None:
        """4 is what is so without the word: both are the same runs."""
        return None if version == 4 else version

    @model_validator(mode="after")
    def _times(self) -> Experiment:
        end = quantities.delay_ns(self.duration)
        if end == 0:
            raise ValueError("duration must be above 0s")
        if end > MAX_DURATION_NS:
            raise ValueError(f"duration {self.duration} is longer than {quantities.format_time(MAX_DURATION_NS)}")
        if quantities.delay_ns(self.warmup) >= end:
            raise ValueError(f"warmup {self.warmup} is not before the end, {self.duration}")
        for entry in [*self.flows, *self.traffic]:
            for what, text in (("start", entry.start), ("stop", entry.stop)):
                if text is not None and quantities.delay_ns(text) > end - (what == "start"):
                    raise ValueError(f"{entry.name or entry.source}: {what} {text} is after the end, {self.duration}")
        return self

    @model_validator(mode="after")
    def _seeds(self) -> Experiment:
        if self.seeds is not None and self.repeats != 1 and len(self.seeds) != self.most_repeats:
            raise ValueError(f"{self.most_repeats} repeats but {len(self.seeds)} seeds; leave one out")
        if isinstance(self.repeats, Repeats) and self.repeats.until == DECIDED and not self.claims:
            raise ValueError("repeats until claims are decided, and there are no `claims`")
        if self.seeds is not None and len(set(self.seeds)) != len(self.seeds):
            raise ValueError("seeds must differ: a run with the same seed gives the same packets")
        return self

    @property
    def looks(self) -> int:
        """How often claims may be judged before they are decided."""
        return self.repeats.looks if isinstance(self.repeats, Repeats) else 1

    @property
    def most_repeats(self) -> int:
        """Runs per combination, at most."""
        return self.repeats.most if isinstance(self.repeats, Repeats) else self.repeats

    def all_seeds(self) -> list[int]:
        """Seeds of the repeats: those given, else 1, 2, …"""
        return list(self.seeds) if self.seeds is not None else list(range(1, self.most_repeats + 1))
