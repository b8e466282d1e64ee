# SPDX-License-Identifier: Apache-2.0
"""The situations in which every algorithm is compared with its specification."""

from __future__ import annotations

import dataclasses

from tests.harness.harness import Flow, Scenario

LONGER = "tc -n wir qdisc change dev wir-rtr root netem delay 70ms limit 1000000"
STEP = "tc -n wir qdisc change dev wir-rtr root netem delay 600ms limit 1000000"
BACK = "tc -n wir qdisc change dev wir-rtr root netem delay 50ms limit 1000000"
SMALL_MTU, WHOLE_MTU = "ip -n wir link set wir-rcv mtu 700", "ip -n wir link set wir-rcv mtu 1500"


def situations(cca: str, *but: str, module: str | None = None) -> dict[str, Scenario]:
    """standard() and rough(), without those that are named."""
    both = standard(cca, module) | rough(cca, module)
    return {name: both[name] for name in both if name not in but}


def standard(cca: str, module: str | None = None) -> dict[str, Scenario]:
    """Growth, single, burst and random loss, timeout, RTT change, application limit, NewReno, delayed ACKs."""

    def flow(seconds: float) -> tuple[Flow, ...]:
        return (Flow(cca, phases=((seconds, None),)),)

    base = Scenario(flow(20), (module or cca,), seconds=20, rate_mbit=20)
    change = dataclasses.replace
    return {
        "growth": base,
        "burst loss": change(base, buffer_packets=20),
        "single losses": change(base, flows=flow(30), seconds=30, loss_percent=0.03),
        "heavy random loss": change(base, flows=flow(30), seconds=30, loss_percent=3),
        "timeout": change(base, blackouts=((4, 2), (12, 1))),
        "longer path": change(base, changes=((8, LONGER),)),
        "application-limited": change(
            base, flows=(Flow(cca, phases=((3, None), (4, 2e5), (3, 0), (5, None))),), seconds=15
        ),
        "NewReno loss": change(base, sack=False, loss_percent=0.3),
        "delayed ACKs": change(base, quickack=False),
    }


def rough(cca: str, module: str | None = None) -> dict[str, Scenario]:
    """What paths and hosts do beside losing packets: reordering and late ACKs (a loss is undone), ECN, a smaller MTU,
    a receiver that forgets, a LAN, other algorithms and other flows on the host, a late choice."""
    flow = Flow(cca, phases=((8, None),))
    base = Scenario((flow,), (module or cca,), seconds=8, rate_mbit=10, delay_ms=30, buffer_packets=60)
    change = dataclasses.replace
    return {
        "reordering, undone": change(base, reorder_percent=0.5, buffer_packets=200),
        "late ACKs, undone": change(base, changes=((4, STEP), (6, BACK))),
        "ECN": change(base, ecn=True, queue="codel target 10ms interval 100ms ecn"),
        "smaller MTU": change(base, changes=((4, SMALL_MTU), (7.9, WHOLE_MTU))),
        "reneging, loss": change(base, loss_percent=2, renege_s=tuple(i / 2 for i in range(4, 15))),
        "LAN": change(
            base, delay_ms=0.1, rate_mbit=30, flows=(change(flow, phases=((3, None),)),), seconds=3, buffer_packets=30
        ),
        "beside others": change(
            base, flows=(flow, Flow("reno", 40001, phases=((8, None),)), Flow("cubic", 40002, 1.0, ((7, None),)))
        ),
        "flows that come and go, loss": change(
            base,
            loss_percent=0.2,
            flows=tuple(Flow(cca, 40000 + i, 0.7 * i, ((2 + i % 3, None),)) for i in range(5)),
        ),
        "chosen late": change(base, flows=(change(flow, chosen_s=3.0),)),
    }


def idle_table_4_1(
    cca: str, seconds: float, module: str | None = None, params: dict[str, int] | None = None
) -> Scenario:
    """The path of Yu 2009 Table 4-1 at 400 Mbit/s while nobody else uses it: access links of 50 Mbit/s with 500 packets of
    buffer, 440 ms, packets of 1040 bytes, of which 2644 fill it (s4.6.3, page 104)."""
    name = module or cca
    return Scenario(
        (Flow(cca, phases=((seconds, None),)),), (name,), {name: params or {}}, seconds,
        rate_mbit=50, delay_ms=220, buffer_packets=500, packet_bytes=1026,
    )  # fmt: skip
