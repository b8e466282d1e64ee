# SPDX-License-Identifier: Apache-2.0
"""What a path does to the gap between two packets, and how fast single transfers are: from the results of traffic."""

from __future__ import annotations

from analysis.metrics.needs import TRAFFIC
from analysis.metrics.registry import metric
from analysis.metrics.run import RunRecords

# An output gap this much above the input gap, or less, is as large as that.
MEETING_SLACK = 0.02


@metric("output_gap_ms", needs=(TRAFFIC,), unit="ms", label="Output gap", keyed="traffic.milliseconds")
def output_gap_ms(run: RunRecords) -> dict[str, float | None]:
    """Mean gap between the packets of a pair where they arrive, by the gap that the file asks for; parts like `pairs.12`.

    Source: Yu 2009 s4.4.1 (mean output gap per input gap); applications.json, entries of packet_pairs.
    """
    by_gap: dict[str, float | None] = {}
    for row in run.applications:
        for gap in row.get("gaps") or ():
            output_s = gap["output_gap_s"]
            by_gap[f"{row['flow']}.{round(gap['asked_gap_s'] * 1e3, 6):g}"] = (
                None if output_s is None else output_s * 1e3
            )
    return by_gap


@metric("meeting_gap_ms", needs=(TRAFFIC,), unit="ms", label="Gaps meet at", keyed="traffic")
def meeting_gap_ms(run: RunRecords) -> dict[str, float | None]:
    """Smallest input gap that leaves the path as it entered it: where the mean output gap meets y = x.

    The first of the gaps at which the output is at most 2 % above the input; where it is below the input there, the point
    between this gap and the one before at which the straight line through both is y = x. Null where no gap is so.

    Source: Yu 2009 s4.4.1 (where the curve meets y = x); applications.json, entries of packet_pairs.
    """
    by_flow: dict[str, float | None] = {}
    for row in run.applications:
        if "gaps" in row:
            points = [
                (gap["input_gap_s"] * 1e3, gap["output_gap_s"] * 1e3)
                for gap in row["gaps"]
                if gap["output_gap_s"] is not None
            ]
            by_flow[row["flow"]] = meeting_point(sorted(points))
    return by_flow


def meeting_point(points: list[tuple[float, float]]) -> float | None:
    """Where outputs, in the order of inputs, come down to y = x; None where they do not."""
    before: tuple[float, float] | None = None
    for given, left in points:
        excess = left - given
        if excess <= MEETING_SLACK * given:
            if before is None or excess >= 0:
                return given
            x, above = before
            return x + (given - x) * above / (above - excess)
        before = given, excess
    return None


def _means(run: RunRecords) -> dict[str, list[tuple[float, float, float]]]:
    """Of each entry of packet pairs: (asked gap, mean input gap, mean output gap) in ms of the gaps that arrived, smallest first."""
    by_flow: dict[str, list[tuple[float, float, float]]] = {}
    for row in run.applications:
        if "gaps" in row:
            by_flow[row["flow"]] = sorted(
                (gap["asked_gap_s"] * 1e3, gap["input_gap_s"] * 1e3, gap["output_gap_s"] * 1e3)
                for gap in row["gaps"]
                if gap["output_gap_s"] is not None
            )
    return by_flow


def _name(*gaps_ms: float) -> str:
    return ".".join(f"{round(gap, 6):g}" for gap in gaps_ms)


@metric("gap_excess_ms", needs=(TRAFFIC,), unit="ms", label="Output less input gap", keyed="traffic.milliseconds")
def gap_excess_ms(run: RunRecords) -> dict[str, float | None]:
    """Mean output gap less mean input gap, by the gap that the file asks for; parts like `pairs.12`, and over all gaps that arrived
    `pairs.mean`, `pairs.least` and `pairs.most`.

    Source: Yu 2009 s4.4 (how far the line of output gaps lies above y = x); applications.json, entries of packet_pairs.
    """
    excesses: dict[str, float | None] = {}
    for flow, points in _means(run).items():
        excess = [left - given for _, given, left in points]
        excesses |= {f"{flow}.{_name(asked)}": value for (asked, _, _), value in zip(points, excess, strict=True)}
        if excess:
            excesses |= {
                f"{flow}.mean": sum(excess) / len(excess),
                f"{flow}.least": min(excess),
                f"{flow}.most": max(excess),
            }
    return excesses


@metric("gap_slope", needs=(TRAFFIC,), unit="1", label="Slope of output gaps", keyed="traffic.from.to")
def gap_slope(run: RunRecords) -> dict[str, float | None]:
    """How much the mean output gap grows with the input gap between two of the gaps, which name the part: `pairs.8.40`.

    Source: Yu 2009 s4.2.4 (the slope is the cross traffic's share of the link), s4.4 (parallel to y = x: 1); applications.json, entries of
    packet_pairs.
    """
    return {
        f"{flow}.{_name(points[i][0], points[j][0])}": (points[j][2] - points[i][2]) / (points[j][1] - points[i][1])
        for flow, points in _means(run).items()
        for i in range(len(points))
        for j in range(i + 1, len(points))
    }


@metric("gap_bend_ms", needs=(TRAFFIC,), unit="ms", label="Bend of output gaps", keyed="traffic.from.to")
def gap_bend_ms(run: RunRecords) -> dict[str, float | None]:
    """How far the mean output gaps between two of the gaps lie from the straight line that joins theirs, at most; parts like `pairs.8.32`.

    Source: Yu 2009 s4.4 (where the line of output gaps is straight); applications.json, entries of packet_pairs.
    """
    return {
        f"{flow}.{_name(points[i][0], points[j][0])}": bend([point[1:] for point in points[i : j + 1]])
        for flow, points in _means(run).items()
        for i in range(len(points))
        for j in range(i + 2, len(points))
    }


def bend(points: list[tuple[float, float]]) -> float:
    """Largest distance, along y, of the points from the straight line through the first and the last."""
    (x, y), (last_x, last_y) = points[0], points[-1]
    return max(abs(at_y - (y + (last_y - y) * (at_x - x) / (last_x - x))) for at_x, at_y in points[1:-1])


@metric(
    "transfer_throughput_mbps",
    needs=(TRAFFIC,),
    unit="Mbit/s",
    label="Throughput per transfer",
    better="higher",
    keyed="traffic",
)
def transfer_throughput_mbps(run: RunRecords) -> dict[str, float | None]:
    """Payload of a transfer over the time from its start until all of it was delivered, mean of the completed transfers of an entry.

    Source: Yu 2009 s3.3.2 (B_i = A_i / (t_end - t_start), mean over the N transfers); applications.json, entries of transfers.
    """
    return {row["flow"]: row["throughput_mean_mbps"] for row in run.applications if "throughput_mean_mbps" in row}
