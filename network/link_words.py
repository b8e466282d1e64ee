# SPDX-License-Identifier: Apache-2.0
"""The words in which every topology's links are described: rate, delay, buffer, loss, queue and so on, as texts.

docs/links.md explains them. Each text is a quantity (50mbit, 48ms, 250p, 1%) or the name of a model with words after
it (`gilbert-elliott p=1% r=30%`, `steps 0s=20ms 15s=27ms repeat=30s`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from base.errors import ParameterError
from base.nearest import nearest
from base.quantities import buffer_size, delay_ns, rate_bps, ratio, size_bytes
from network import traces
from network.direction import MOST_DELAY_NS, Buffer, Direction
from network.frames import FULL_FRAME_BYTES
from network.impairments import (
    DROPTAIL,
    JITTER_REACH,
    FourState,
    GilbertElliott,
    Jitter,
    Queue,
    RateTrace,
    Steps,
    bit_error_rate,
)

MOST_STEPS = 1_000_000
MOST_BPS = 24 * 10**9

QUEUES = {
    "droptail": (),
    "red": ("min", "max", "p", "weight", "packet"),
    "red_packets": ("min", "max", "p", "weight", "packet"),
    "codel": ("target", "interval"),
    "fq_codel": ("target", "interval"),
    "pie": ("target", "interval"),
    "cake": ("interval",),
    "dualpi2": ("target", "interval", "step"),
    "policer": (),
}
"""Kinds of queue management and their words."""
QUEUE_FLAGS = {"red": ("adaptive",), "red_packets": ("gentle",), "dualpi2": ("any",)}
"""Words without a value beside `ecn`."""
MOST_RED_PACKETS = 1 << 24
MOST_BUCKET_BYTES = 1 << 28
MOST_AGGREGATE_NS = 10**9


@dataclass(frozen=True)
class LinkTexts:
    """The link that a topology is about, each way, in words (docs/links.md).

    rate: 50mbit | none | steps 0s=10mbit 5s=2mbit repeat=10s | trace FILE | synthetic mean=12mbit …
    delay: 48ms | 48ms jitter=5ms distribution=normal order=any | 48ms aggregate=5ms | steps 0s=20ms 15s=27ms
    buffer: 250p | 64KB
    loss: 1% | gilbert-elliott p=1% r=30% | markov p13=1% p31=50% | bit-errors 1e-6 | steps 0s=0% 5s=2%
    queue: droptail | red min=… | red_packets min=… | codel | fq_codel | pie | cake | dualpi2, with the word ecn; policer
    reorder, duplicate, corrupt: shares of the packets
    """

    rate: str = "50mbit"
    delay: str = "48ms"
    buffer: str = "250p"
    loss: str = "0%"
    queue: str = "droptail"
    reorder: str = "0%"
    duplicate: str = "0%"
    corrupt: str = "0%"

    def direction(self, **changed: str) -> Direction:
        """The link as a direction, with some of its texts exchanged.

        Raises ParameterError with the name of the text that is wrong.
        """
        return direction({**{name: getattr(self, name) for name in WORDS}, **changed})


def rate_and_delay(rate_text: str, delay_text: str, names: Mapping[str, str], buffer_text: str = "") -> Direction:
    """A link that has a rate, a delay and perhaps a buffer only, such as the access links of a topology.

    names: what the parameters are called, for errors that name them: "rate" → "access_rate"
    """
    has_buffer = buffer_text and rate_text != "none"
    texts = {"rate": rate_text, "delay": delay_text, **({"buffer": buffer_text} if has_buffer else {})}
    try:
        return direction(texts)
    except ParameterError as error:
        raise ParameterError(tuple(names.get(str(part), part) for part in error.name), error.text) from error


def per_item(text: str, count: int, name: str) -> list[str]:
    """One text for each of several links: the same for all, or one each with blanks between them."""
    parts = text.split()
    if len(parts) == 1:
        return parts * count
    if len(parts) != count:
        raise ParameterError(name, f"{len(parts)} values for {count} links; write one for all or one for each")
    return parts


_FIELDS = {
    "rate": ("rate_bps", "varying_rate"),
    "delay": ("delay_ns", "varying_delay", "jitter", "aggregate_ns"),
    "buffer": ("buffer",),
    "loss": ("loss", "varying_loss", "burst_loss", "bit_errors"),
    "queue": ("queue",),
    "reorder": ("reorder",),
    "duplicate": ("duplicate",),
    "corrupt": ("corrupt",),
}
"""The words, and which fields of a Direction each of them decides."""
WORDS = tuple(_FIELDS)
_IDEAL = {name: getattr(Direction(), name) for names in _FIELDS.values() for name in names}


def direction(texts: Mapping[str, str]) -> Direction:
    """A direction from texts by their names in WORDS; what is not there is an ideal wire.

    Raises ParameterError with the name of the text that is wrong.
    """
    return changed(Direction(), texts)


def changed(base: Direction, texts: Mapping[str, str]) -> Direction:
    """A direction with some of its words overridden.

    Raises ParameterError with the name of the text that is wrong.
    """
    fields: dict[str, Any] = {}
    for word, text in texts.items():
        if word not in WORDS:
            raise ParameterError(word, f"a link has no such word; {nearest(word, WORDS)}")
        try:
            fields.update({name: _IDEAL[name] for name in _FIELDS[word]})
            fields.update(_PARSERS[word](text))
        except ValueError as error:
            raise ParameterError.at(word, error) from error
    link = replace(base, **fields)
    if link.rate_bps is None:
        if link.queue != DROPTAIL:
            raise ParameterError("queue", "a link without a rate has no queue; give it a rate")
        link = replace(link, buffer=None)
    for word, text in _conflicts(link):
        raise ParameterError(word, text)
    return link


def _conflicts(link: Direction) -> Iterable[tuple[str, str]]:
    """What the parts of a link ask of each other, as (word, what is wrong)."""
    longest = link.delay_ns if link.varying_delay is None else max(link.varying_delay.values)
    if longest > MOST_DELAY_NS:
        yield "delay", f"{longest / 1e9:g} s; at most {MOST_DELAY_NS / 1e9:g} s, after which TCP has long given up"
    shortest = link.delay_ns if link.varying_delay is None else min(link.varying_delay.values)
    if link.jitter is not None and shortest + link.jitter.reach_ns[0] < 0:
        low = -link.jitter.reach_ns[0]
        yield (
            "delay",
            (
                f"a {link.jitter.distribution} jitter reaches {low / 1e6:g} ms below the delay of {shortest / 1e6:g} ms, "
                f"which would be negative; ask for a delay of at least {low / 1e6:g} ms or less jitter"
            ),
        )
    if link.reorder and not (link.delay_ns and link.varying_delay is None):
        yield "reorder", "packets overtake those in flight, so the link needs a constant delay"
    if (
        link.queue.kind in ("codel", "fq_codel", "pie", "dualpi2")
        and link.buffer is not None
        and link.buffer.unit == "bytes"
    ):
        yield "buffer", f"{link.queue.kind} counts packets: write the buffer as packets, such as 250p"
    if link.queue.kind == "cake" and link.buffer is not None and link.buffer.unit == "packets":
        yield "buffer", "cake counts bytes: write the buffer as bytes, such as 375KB"
    yield from _policer_conflicts(link)


def _policer_conflicts(link: Direction) -> Iterable[tuple[str, str]]:
    if not link.polices:
        return
    if link.varying_rate is not None:
        yield "rate", "a policer has one rate; write a constant one, or a queue that holds packets"
    if link.buffer is None or link.buffer.unit == "packets":
        yield "buffer", "a policer holds no packets; its buffer is the token bucket, in bytes such as 64KB"
    elif not FULL_FRAME_BYTES <= link.buffer.size < MOST_BUCKET_BYTES:
        yield (
            "buffer",
            f"a token bucket of {link.buffer.size} bytes; from one full frame, {FULL_FRAME_BYTES}B, to {MOST_BUCKET_BYTES - 1}B",
        )


def rate(text: str) -> dict[str, Any]:
    """Fields of a Direction for the word `rate`."""
    head, words = _split(text)
    if head == "none":
        _only(words, ())
        return {"rate_bps": None}
    varying: Steps | RateTrace
    if head == "steps":
        varying = _steps(words, lambda value: 0 if value == "0bit" else rate_bps(value), "10mbit")
    elif head == "trace":
        varying = traces.load(text.strip()[len("trace") :].strip())
    elif head == "synthetic":
        named = _only(words, ("mean", "deviation", "every", "length", "seed"))
        varying = traces.synthetic(
            rate_bps(named.get("mean", "10mbit")),
            ratio(named.get("deviation", "30%")),
            delay_ns(named.get("every", "100ms")),
            delay_ns(named.get("length", "60s")),
            _whole(named.get("seed", "1")),
        )
    else:
        _only(words, ())
        return {"rate_bps": _paced(rate_bps(head))}
    if isinstance(varying, Steps):
        if not any(varying.values):
            raise ValueError("the rate is 0 all the time; nothing would ever arrive")
        if varying.repeat_ns is None and not varying.values[-1]:
            raise ValueError("the rate is 0 from the last step on; add a step that ends the outage, or repeat=")
        if not varying.values[0]:
            raise ValueError("the first rate must be above 0: it also holds while the run is prepared")
        return {"rate_bps": _paced(int(max(varying.values))), "varying_rate": varying}
    return {"rate_bps": _paced(varying.peak_bps), "varying_rate": varying}


def _paced(bps: int) -> int:
    """A rate that a clock of 1 ns can pace: a full frame's time rounds by less than 0.2 %."""
    if bps > MOST_BPS:
        raise ValueError(
            f"{bps} bit/s is finer than the clock of 1 ns can pace to within 0.2 %; at most {MOST_BPS / 1e9:g}gbit, "
            "or none for no limit"
        )
    return bps


def delay(text: str) -> dict[str, Any]:
    """Fields of a Direction for the word `delay`."""
    head, words = _split(text)
    jitter_words = ("jitter", "distribution", "order")
    own_words = (*jitter_words, "aggregate")
    named = {key: value for key, value in _pairs(words) if key in jitter_words}
    together = {key: value for key, value in _pairs(words) if key == "aggregate"}
    rest = [word for word in words if word.partition("=")[0] not in own_words]
    fields: dict[str, Any] = {}
    if head == "steps":
        steps = _steps(rest, delay_ns, "20ms")
        fields = {"delay_ns": int(max(steps.values)), "varying_delay": steps}
    else:
        _only(rest, own_words)
        fields = {"delay_ns": delay_ns(head)}
    if together:
        fields["aggregate_ns"] = _aggregate_ns(together["aggregate"], head, named)
    if "jitter" in named and delay_ns(named["jitter"]):
        distribution = _one_of(named.get("distribution", "normal"), JITTER_REACH)
        order = _one_of(named.get("order", "keep"), ("keep", "any"))
        fields["jitter"] = Jitter(delay_ns(named["jitter"]), distribution, order == "keep")
        if fields["jitter"].spread_ns >= 2 * 10**9:
            raise ValueError("netem's jitter is below 2s")
    elif named and "jitter" not in named:
        raise ValueError("distribution and order say how jitter is; add jitter=5ms")
    return fields


def _aggregate_ns(text: str, head: str, jitter: Mapping[str, str]) -> int:
    """How long packets wait for those behind them."""
    if head == "steps" or jitter:
        raise ValueError("aggregate goes with a constant delay, without jitter: it is itself what moves packets")
    time_ns = delay_ns(text)
    if not 1000 <= time_ns <= MOST_AGGREGATE_NS or time_ns % 1000:
        raise ValueError(f"aggregate={text}: whole microseconds, from 1us to 1s")
    return time_ns


def buffer(text: str) -> dict[str, Any]:
    """Fields of a Direction for the word `buffer`."""
    return {"buffer": Buffer(*buffer_size(text))}


def loss(text: str) -> dict[str, Any]:
    """Fields of a Direction for the word `loss`."""
    head, words = _split(text)
    if head == "steps":
        return {"varying_loss": _steps(words, ratio, "1%")}
    if head == "gilbert-elliott":
        named = {key: ratio(value) for key, value in _only(words, ("p", "r", "h", "k")).items()}
        if not named.get("p") or not named.get("r"):
            raise ValueError("gilbert-elliott needs p= (good to bad) and r= (bad to good), both above 0%")
        return {"burst_loss": GilbertElliott(**named)}
    if head == "markov":
        named = {key: ratio(value) for key, value in _only(words, ("p13", "p31", "p32", "p23", "p14")).items()}
        if "p13" not in named:
            raise ValueError("markov needs p13= (from delivery in a gap to loss in a burst)")
        model = FourState(**named)
        if model.p13 + model.p14 > 1 or model.p31 + model.p32 > 1:
            raise ValueError("p13 + p14 and p31 + p32 must each be at most 100%")
        if not model.p31 or (model.p32 and not model.p23):
            raise ValueError("p31, and p23 where p32 is given, must be above 0%: a burst has to end")
        return {"burst_loss": model}
    if head == "bit-errors":
        return {"bit_errors": _bit_errors(words)}
    if not head[0].isdigit():
        raise ValueError(
            f"there is no loss model {head!r}; {nearest(head, ('gilbert-elliott', 'markov', 'bit-errors', 'steps'))}"
        )
    _only(words, ())
    return {"loss": ratio(head)}


_FLAG_FIELDS = {"any": "any_ect"}


def queue(text: str) -> dict[str, Any]:
    """Fields of a Direction for the word `queue`."""
    kind, words = _split(text)
    _one_of(kind, QUEUES)
    flags = {word for word in words if "=" not in word}
    for flag in flags:
        _one_of(flag, ("ecn", *QUEUE_FLAGS.get(kind, ())))
    named = _only([word for word in words if "=" in word], QUEUES[kind])
    if kind == "droptail" and "ecn" in flags:
        raise ValueError("a droptail queue cannot mark; use red, codel, fq_codel, pie, cake or dualpi2")
    if kind == "policer" and "ecn" in flags:
        raise ValueError("a policer drops what exceeds its rate and marks nothing; write `policer`")
    if kind == "dualpi2" and "ecn" not in flags:
        raise ValueError(
            "dualpi2 marks the packets of flows that know ECN, which cannot be turned off; write `dualpi2 ecn`"
        )
    if kind == "cake" and "ecn" not in flags:
        raise ValueError("cake marks the packets of flows that know ECN, which cannot be turned off; write `cake ecn`")
    times: dict[str, Any] = {
        f"{key}_ns": delay_ns(named[key]) for key in ("target", "interval", "step") if key in named
    }
    if any(value == 0 for value in times.values()):
        raise ValueError("target, interval and step must be above 0ms")
    own: dict[str, Any] = {_FLAG_FIELDS.get(flag, flag): flag in flags for flag in QUEUE_FLAGS.get(kind, ())}
    return {"queue": Queue(kind, "ecn" in flags, **own, **times, **_red(kind, named))}


def _red(kind: str, named: Mapping[str, str]) -> dict[str, Any]:
    if kind not in ("red", "red_packets"):
        return {}
    packet = size_bytes(named.get("packet", f"{FULL_FRAME_BYTES}B"))
    if not 64 <= packet <= FULL_FRAME_BYTES:
        raise ValueError(f"packet={named['packet']}: 64B to {FULL_FRAME_BYTES}B")
    sizes = {}
    for key in ("min", "max"):
        if key not in named:
            raise ValueError(f"{kind} needs min= and max=, thresholds of the average queue such as min=5p max=15p")
        size, unit = buffer_size(named[key])
        if kind == "red_packets" and not (unit == "packets" and size <= MOST_RED_PACKETS):
            raise ValueError(f"{key}={named[key]}: packets such as 5p, at most {MOST_RED_PACKETS}p")
        sizes[key] = size * packet if unit == "packets" and kind == "red" else size
    if sizes["min"] >= sizes["max"]:
        raise ValueError(f"min={named['min']} is not below max={named['max']}")
    probability = ratio(named.get("p", "10%"))
    if not 0 < probability <= 0.5:
        raise ValueError(f"p={named['p']}: above 0% and at most 50%")
    weight = _number(named.get("weight", "0.002"))
    if not 2**-20 <= weight <= 0.5:
        raise ValueError(f"weight={named['weight']}: between {2**-20:.1e} and 0.5")
    unit = "bytes" if kind == "red" else "packets"
    return {
        f"min_{unit}": sizes["min"],
        f"max_{unit}": sizes["max"],
        "probability": probability,
        "weight": weight,
        "packet_bytes": packet,
    }


def _share(name: str) -> Callable[[str], dict[str, Any]]:
    def parse(text: str) -> dict[str, Any]:
        return {name: ratio(text)}

    return parse


_PARSERS: dict[str, Callable[[str], dict[str, Any]]] = {
    "rate": rate, "delay": delay, "buffer": buffer, "loss": loss, "queue": queue,
    "reorder": _share("reorder"), "duplicate": _share("duplicate"), "corrupt": _share("corrupt"),
}  # fmt: skip


def _split(text: str) -> tuple[str, list[str]]:
    if not text.strip():
        raise ValueError(f"{text!r}: a text is needed")
    head, *words = text.split()
    return head, words


def _pairs(words: Iterable[str]) -> Iterable[tuple[str, str]]:
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not value:
            raise ValueError(f"{word!r}: write name=value")
        yield key, value


def _only(words: Iterable[str], allowed: Iterable[str]) -> dict[str, str]:
    """Words as name=value, each name one of those allowed and given once."""
    known = tuple(allowed)
    values: dict[str, str] = {}
    for word in words:
        if word.partition("=")[0] not in known:
            raise ValueError(f"{word!r} has no meaning here; {nearest(word.partition('=')[0], known)}")
    for key, value in _pairs(words):
        if key in values:
            raise ValueError(f"{key}= is there twice")
        values[key] = value
    return values


def _steps(words: Iterable[str], parse: Callable[[str], float], example: str) -> Steps:
    """`0s=VALUE 5s=VALUE … repeat=TIME` as a schedule."""
    times: list[int] = []
    values: list[float] = []
    repeat = None
    for key, value in _pairs(words):
        if key == "repeat":
            repeat = delay_ns(value)
            continue
        times.append(delay_ns(key))
        values.append(parse(value))
        if len(times) > 1 and times[-1] <= times[-2]:
            raise ValueError(f"{key}={value}: times must ascend")
    if not times or times[0] != 0:
        raise ValueError(f"steps begin at 0s, such as `steps 0s={example} 5s={example}`; a gap has no value")
    if repeat is not None and repeat <= times[-1]:
        raise ValueError(f"repeat must be after the last step, at {times[-1] / 1e9:g}s")
    if len(times) > MOST_STEPS:
        raise ValueError(f"{len(times)} steps; at most {MOST_STEPS}")
    return Steps(tuple(times), tuple(values), repeat)


def _bit_errors(words: list[str]) -> float:
    """`1e-6`, or `loss=1% of=1014B`: the rate at which frames of that length are lost so often."""
    if len(words) == 1 and "=" not in words[0]:
        rate = _number(words[0])
    else:
        named = _only(words, ("loss", "of"))
        if set(named) != {"loss", "of"}:
            raise ValueError("bit-errors needs a rate such as 1e-6, or loss=1% of=1014B")
        share = ratio(named["loss"])
        rate = bit_error_rate(share, max(1, size_bytes(named["of"]))) if share < 1 else 1.0
    if not 0 <= rate <= 0.01:
        raise ValueError(f"a bit error rate of {rate:g}; allowed are 0 to 0.01")
    return rate


_NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?(e-?[0-9]{1,2})?")


def _number(text: str) -> float:
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"{text!r} is not a number such as 0.002 or 1e-6")
    return float(text)


def _whole(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", text):
        raise ValueError(f"{text!r} is not a whole number")
    return int(text)


def _one_of(word: str, allowed: Iterable[str]) -> str:
    names = list(allowed)
    if word not in names:
        raise ValueError(f"{word!r}: {nearest(word, names)}")
    return word
