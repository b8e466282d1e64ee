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
    found: dict[str, float | None] = {}
    for row in run.applications:
        for gap in row.get("gaps") or ():
            output_s = gap["output_gap_s"]
            found[f"{row['flow']}.{round(gap['asked_gap_s'] * 1e3, 6):g}"] = (
                None if output_s is None else output_s * 1e3
            )
    return found


@metric("meeting_gap_ms", needs=(TRAFFIC,), unit="ms", label="Gaps meet at", keyed="traffic")
def meeting_gap_ms(run: RunRecords) -> dict[str, float | None]:
    """Smallest input gap that leaves the path as it entered it: where the mean output gap meets y = x.

    The first of the gaps at which the output is at most 2 % above the input; where it is below the input there, the point
    between this gap and the one before at which the straight line through both is y = x. Null where no gap is so.

    Source: Yu 2009 s4.4.1 (where the curve meets y = x); applications.json, entries of packet_pairs.
    """
    found: dict[str, float | None] = {}
    for row in run.applications:
        if "gaps" in row:
            points = [
                (gap["input_gap_s"] * 1e3, gap["output_gap_s"] * 1e3)
                for gap in row["gaps"]
                if gap["output_gap_s"] is not None
            ]
            found[row["flow"]] = meeting_point(sorted(points))
    return found


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


@metric(
    "transfer_throughput_mbps", needs=(TRAFFIC,), unit="Mbit/s", label="Throughput per transfer", better="higher", keyed="traffic"
)  # fmt: skip
def transfer_throughput_mbps(run: RunRecords) -> dict[str, float | None]:
    """Payload of a transfer over the time from its start until all of it was delivered, mean of the completed transfers of an entry.

    Source: Yu 2009 s3.3.2 (B_i = A_i / (t_end - t_start), mean over the N transfers); applications.json, entries of transfers.
    """
    return {row["flow"]: row["throughput_mean_mbps"] for row in run.applications if "throughput_mean_mbps" in row}
