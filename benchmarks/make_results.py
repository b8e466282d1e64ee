# SPDX-License-Identifier: Apache-2.0
"""Make plausible result folders without running anything: the quickstart by a fluid model of one bottleneck.

    python -m benchmarks.make_results FOLDER [--duration-s 60]

Deterministic: the same arguments give the same files. The numbers look like TCP and are not TCP; they are there so
that what reads results can be developed and tested.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from analysis import metrics
from collectors.records import SCHEMAS
from collectors.version import SCHEMA_VERSION

START_NS = 1_767_225_600_000_000_000  # 2026-01-01T00:00:00Z
RATE_BPS = 50e6
BASE_RTT_S = 0.1
WIRE_BYTES = 1014  # 1000-byte packets (Ho 2008) and their Ethernet header
PAYLOAD_BYTES = 948
CAPACITY_PPS = RATE_BPS / 8 / WIRE_BYTES
BDP_PACKETS = CAPACITY_PPS * BASE_RTT_S

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Case:
    """One run to make. `kind`: complete, failed (no records), cut-off (no run.json)."""

    cca: str
    buffer_packets: int
    seed: int
    flows: int = 1
    kind: str = "complete"
    verdict: str = "valid"
    reasons: tuple[Mapping[str, str], ...] = ()
    params: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{self.cca}-{self.buffer_packets}p-s{self.seed}-{self.flows:08x}"


def quickstart_cases() -> tuple[Case, ...]:
    """{reno, cubic, medley} × {50p, 250p} × 2 seeds."""
    return tuple(
        Case(cca, buffer, seed) for cca in ("reno", "cubic", "medley") for buffer in (50, 250) for seed in (1, 2)
    )


def make_results(
    root: Path,
    cases: Sequence[Case] | None = None,
    *,
    experiment: str = "quickstart",
    duration_s: float = 60.0,
    spec: Mapping[str, Any] | None = None,
) -> Path:
    """Write results/<experiment> under `root` and return that folder."""
    folder = root / experiment
    for case in quickstart_cases() if cases is None else cases:
        _make_run(
            folder / (case.name + (".failed-1" if case.kind == "failed" else "")),
            case,
            experiment,
            duration_s,
            spec or {},
        )
    return folder


@dataclass(frozen=True)
class Rounds:
    """One value per round trip."""

    t_s: Floats
    cwnd: Floats
    ssthresh: Floats
    queue: Floats
    rtt_s: Floats
    dropped: Floats


def _rounds(case: Case, duration_s: float) -> Rounds:
    random = np.random.default_rng([case.seed, case.buffer_packets, sum(case.cca.encode())])
    t_s, cwnd, ssthresh, epoch_s, peak = 0.02 + 0.01 * random.random(), 2.0, np.inf, 0.0, 0.0
    index, rows = 0, []
    while t_s < duration_s:
        standing = max(0.0, cwnd - BDP_PACKETS)
        queue = min(standing, float(case.buffer_packets))
        dropped = max(0.0, standing - case.buffer_packets)
        rtt_s = BASE_RTT_S + queue / CAPACITY_PPS + 2e-5 * random.random()
        rows.append((t_s, cwnd, ssthresh, queue, rtt_s, np.floor(dropped)))
        if case.cca == "medley":
            steady = BDP_PACKETS + 4 + 2 * random.standard_normal()
            index += 1
            cwnd = min(float(index * index - index + 2), steady)  # Ho 2008 ch. 3: W_i = i² − i + 2
        elif dropped > 0:
            peak, epoch_s = cwnd, t_s
            cwnd = ssthresh = cwnd * (0.7 if case.cca == "cubic" else 0.5) * (0.98 + 0.04 * random.random())
        elif cwnd < ssthresh:
            cwnd = min(cwnd * 2, ssthresh)
        elif case.cca == "cubic":
            centre_s = np.cbrt(peak * 0.3 / 0.4)
            cwnd = max(cwnd + 0.5, 0.4 * (t_s + rtt_s - epoch_s - centre_s) ** 3 + peak)  # RFC 9438 eq 1
        else:
            cwnd += 1.0
        t_s += rtt_s
    columns = np.array(rows, dtype=np.float64).T
    return Rounds(*columns)


def _make_run(path: Path, case: Case, experiment: str, duration_s: float, spec: Mapping[str, Any]) -> None:
    (path / "records").mkdir(parents=True)
    (path / "raw").mkdir()
    if case.kind == "cut-off":
        return
    records: dict[str, Any] = {}
    context = {
        "duration_s": duration_s,
        "warmup_s": 0.0,
        "bottleneck": {"node": "r1", "interface": "r1-eth1", "rate_bps": RATE_BPS},
    }
    if case.kind == "complete":
        _write_records(path / "records", case, _rounds(case, duration_s), duration_s)
        records = metrics.compute(path, context)
    failed = case.kind == "failed"
    run = {
        "format": 1,
        "experiment": experiment,
        "run": case.name,
        "seed": case.seed,
        "params": {"cca": case.cca, "buffer": f"{case.buffer_packets}p", **case.params},
        "host": "virtual",
        "status": "failed" if failed else "complete",
        "error": {"stage": "flow", "subject": "f1", "detail": "iperf3 ended with 1: unable to connect"}
        if failed
        else None,
        "verdict": None if failed else {"value": case.verdict, "reasons": list(case.reasons)},
        "metrics": records,
        "spec": {**_spec(case, experiment, duration_s), **spec},
        "environment": _environment(case),
        "timing": {"virtual_s": duration_s, "wall_s": round(duration_s / 9.7, 2)},
    }
    (path / "run.json").write_text(json.dumps(run, indent=1, allow_nan=False) + "\n", encoding="utf-8")


def _spec(case: Case, experiment: str, duration_s: float) -> dict[str, Any]:
    return {
        "name": experiment,
        "title": "Does Medley hold the link with a short queue?",
        "question": "On the 50 Mbit/s, 100 ms path of Ho 2008 figure 5.1: how do Reno, CUBIC and Medley fill the link, "
        "and what queue do they leave, with a small and a large buffer?",
        "topology": {
            "name": "dumbbell",
            "params": {"rate": "50mbit", "delay": "48ms", "buffer": f"{case.buffer_packets}p"},
        },
        "duration": f"{duration_s:g}s",
        "flows": [
            {"name": f"f{n}", "cca": {"name": case.cca, "params": {}}, "from": f"s{n}", "to": f"d{n}"}
            for n in range(1, case.flows + 1)
        ],
        "expectations": [
            {"metric": "utilization", "where": {"cca": "medley"}, "min": 0.9, "source": "Ho 2008 figure 5.2"},
            {"metric": "queue_max_packets", "where": {"cca": "medley"}, "max": 12, "source": "Ho 2008 figure 5.3"},
            {
                "metric": "queue_mean_packets",
                "where": {"cca": "cubic", "buffer": "250p"},
                "max": 12,
                "source": "none: it does not hold",
            },
            {"metric": "completion_s", "where": {"cca": "reno"}, "max": 60, "source": "none: no flow has a size"},
        ],
    }


def _environment(case: Case) -> dict[str, Any]:
    nodes = [{"name": "r1", "kind": "router"}, {"name": "r2", "kind": "router"}]
    links: list[dict[str, Any]] = []
    for number in range(1, case.flows + 1):
        nodes += [{"name": f"s{number}", "kind": "host"}, {"name": f"d{number}", "kind": "host"}]
        access: dict[str, Any] = {"rate_bps": 1e9, "delay_s": 0.001, "buffer": None}
        links += [{"a": f"s{number}", "b": "r1", **access}, {"a": "r2", "b": f"d{number}", **access}]
    links.append(
        {
            "a": "r1",
            "b": "r2",
            "rate_bps": RATE_BPS,
            "delay_s": 0.048,
            "buffer": f"{case.buffer_packets} packets",
            "loss": 0.0,
        }
    )
    return {
        "kernel": {"release": "6.1.0-warpbed", "key": "3f9c1c0a77d2", "hz": 1000},
        "modules": {"tcp_medley": {"srcversion": "8E0D2C4A91"}} if case.cca == "medley" else {},
        "sysctls": {"net.ipv4.tcp_no_metrics_save": 1, "net.ipv4.tcp_congestion_control": case.cca},
        "tools": {"iperf3": "3.12", "tcpdump": "4.99.3", "mininet": "2.3.0"},
        "host_cpu": "example processor",
        "bottleneck": {"node": "r1", "interface": "r1-eth1"},
        "topology": {"nodes": nodes, "links": links},
    }


def _write_records(folder: Path, case: Case, rounds: Rounds, duration_s: float) -> None:
    random = np.random.default_rng([7, case.seed])
    weights = random.dirichlet(np.full(case.flows, 60.0)) if case.flows > 1 else np.ones(1)
    sent_pps = np.minimum(rounds.cwnd / rounds.rtt_s, CAPACITY_PPS)
    edges_s = np.append(rounds.t_s, rounds.t_s[-1] + rounds.rtt_s[-1])
    delivered = np.concatenate([[0.0], np.cumsum(sent_pps * rounds.rtt_s)])
    dropped = np.concatenate([[0.0], np.cumsum(rounds.dropped)])

    _write_queue(folder, rounds, duration_s, edges_s, delivered, dropped)
    flows: dict[str, list[Any]] = {}
    intervals, sockets, acks = [], [], []
    for number, weight in enumerate(weights, start=1):
        name, steps_s = f"f{number}", np.linspace(0.0, duration_s, round(duration_s / 0.1) + 1)
        packets, lost = (np.diff(np.interp(steps_s, edges_s, total * weight)) for total in (delivered, dropped))
        count = int(delivered[-1] * weight)
        at_s = np.interp(np.arange(1, count + 1) / weight, delivered, edges_s) + BASE_RTT_S / 2
        at_s = np.rint(at_s[at_s < duration_s] * 1e9) / 1e9  # clocks tell nanoseconds
        rtt_s = np.interp(at_s, rounds.t_s, rounds.rtt_s) + 1e-5 * random.random(at_s.size)
        cwnd = np.floor(np.interp(at_s, rounds.t_s, rounds.cwnd) * weight)
        threshold = rounds.ssthresh[np.clip(np.searchsorted(rounds.t_s, at_s, side="right") - 1, 0, None)] * weight
        acked = np.arange(1, at_s.size + 1) * PAYLOAD_BYTES
        intervals.append(_interval_rows(name, steps_s, packets, lost, rounds, weight))
        sockets.append(
            {
                "t_s": at_s,
                "flow": name,
                "cwnd_packets": cwnd,
                "ssthresh_packets": threshold,
                "srtt_us": rtt_s * 1e6,
                "snd_wnd_bytes": np.full(at_s.size, 16e6),
                "in_flight_bytes": cwnd * PAYLOAD_BYTES,
                "snd_nxt": acked + cwnd * PAYLOAD_BYTES,
                "snd_una": acked,
            }
        )
        acks.append(
            {
                "t_s": at_s,
                "flow": name,
                "ack": acked,
                "rtt_us": np.rint(rtt_s * 1e9) / 1e3,  # captures tell nanoseconds
                "sacked_bytes": np.zeros(at_s.size),
                "duplicate": np.zeros(at_s.size, dtype=bool),
            }
        )
        goodput = float(packets.sum() * PAYLOAD_BYTES * 8 / duration_s / 1e6)
        sent = float((packets + lost).sum())
        row = {
            "flow": name,
            "cca": case.cca,
            "src": f"s{number}",
            "dst": f"d{number}",
            "src_addr": f"192.0.2.{number}",
            "src_port": 40000 + number,
            "dst_addr": f"198.51.100.{number}",
            "dst_port": 5201,
            "start_s": float(rounds.t_s[0]),
            "end_s": duration_s,
            "packets": int(sent),
            "data_packets": int(sent),
            "payload_bytes": int(sent * PAYLOAD_BYTES),
            "wire_bytes": int(sent * WIRE_BYTES),
            "retransmitted_packets": int(lost.sum()),
            "retransmitted_bytes": int(lost.sum() * PAYLOAD_BYTES),
            "delivered_bytes": int(packets.sum() * PAYLOAD_BYTES),
            "throughput_mbps": sent * WIRE_BYTES * 8 / duration_s / 1e6,
            "goodput_mbps": goodput,
            "rtt_min_ms": float(rtt_s.min() * 1e3),
            "rtt_mean_ms": float(rtt_s.mean() * 1e3),
            "rtt_p95_ms": float(np.percentile(rtt_s, 95) * 1e3),
            "completion_s": None,
        }
        for key, value in row.items():
            flows.setdefault(key, []).append(value)
    table = pa.table(flows)
    _write(
        folder / "flows.parquet",
        table.set_column(table.num_columns - 1, "completion_s", table["completion_s"].cast(pa.float64())),
    )
    for file, parts in (("intervals", intervals), ("sockets", sockets), ("acks", acks)):
        _write(folder / f"{file}.parquet", pa.concat_tables([_table(part) for part in parts]))


def _interval_rows(
    name: str, steps_s: Floats, packets: Floats, lost: Floats, rounds: Rounds, weight: float
) -> dict[str, Any]:
    width_s = np.diff(steps_s)
    sent = packets + lost
    return {
        "t_s": steps_s[:-1],
        "flow": name,
        "width_s": width_s,
        "packets": sent,
        "wire_bytes": sent * WIRE_BYTES,
        "payload_bytes": sent * PAYLOAD_BYTES,
        "retransmitted_bytes": lost * PAYLOAD_BYTES,
        "delivered_bytes": packets * PAYLOAD_BYTES,
        "throughput_mbps": sent * WIRE_BYTES * 8 / width_s / 1e6,
        "goodput_mbps": packets * PAYLOAD_BYTES * 8 / width_s / 1e6,
        "in_flight_bytes": np.interp(steps_s[1:], rounds.t_s, rounds.cwnd * weight) * PAYLOAD_BYTES,
    }


def _write_queue(
    folder: Path, rounds: Rounds, duration_s: float, edges_s: Floats, delivered: Floats, dropped: Floats
) -> None:
    t_s = np.linspace(0.0, duration_s, round(duration_s / 0.01) + 1)
    backlog = np.floor(np.interp(t_s, rounds.t_s, rounds.queue))
    sent = np.floor(np.interp(t_s, edges_s, delivered))
    bottleneck = {
        "t_s": t_s,
        "node": "r1",
        "interface": "r1-eth1",
        "qdisc": "pfifo",
        "backlog_packets": backlog,
        "backlog_bytes": backlog * WIRE_BYTES,
        "sent_packets": sent,
        "sent_bytes": sent * WIRE_BYTES,
        "drops": np.floor(np.interp(t_s, edges_s, dropped)),
        "marks": np.zeros(t_s.size),
    }
    other = {**bottleneck, "node": "r2", "interface": "r2-eth0", "backlog_packets": np.zeros(t_s.size)}
    _write(folder / "queues.parquet", pa.concat_tables([_table(bottleneck), _table(other)]))


INTEGERS = {
    "packets",
    "wire_bytes",
    "payload_bytes",
    "retransmitted_bytes",
    "delivered_bytes",
    "in_flight_bytes",
    "cwnd_packets",
    "ssthresh_packets",
    "snd_wnd_bytes",
    "snd_nxt",
    "snd_una",
    "ack",
    "sacked_bytes",
    "backlog_packets",
    "backlog_bytes",
    "sent_packets",
    "sent_bytes",
    "drops",
    "marks",
    "srtt_us",
}


def _table(columns: Mapping[str, Any]) -> Any:
    t_s = columns["t_s"]
    arrays: dict[str, Any] = {"time_ns": pa.array(START_NS + np.rint(t_s * 1e9).astype(np.int64))}
    for name, values in columns.items():
        if isinstance(values, str):
            arrays[name] = pa.array([values] * t_s.size)
        elif name in INTEGERS:
            finite = np.isfinite(values)
            arrays[name] = pa.array(np.rint(np.where(finite, values, 0)).astype(np.int64), mask=~finite)
        else:
            arrays[name] = pa.array(values)
    return pa.table(arrays)


def _write(path: Path, table: Any) -> None:
    """Write a record; columns that the model has no idea of are null."""
    for name, kind in SCHEMAS.get(path.stem, ()):
        if name not in table.column_names:
            table = table.append_column(name, pa.nulls(table.num_rows, kind))
    pq.write_table(table.replace_schema_metadata({"warpbed.schema": str(SCHEMA_VERSION)}), path, compression="zstd")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--duration-s", type=float, default=60.0)
    arguments = parser.parse_args()
    print(make_results(arguments.folder, duration_s=arguments.duration_s))


if __name__ == "__main__":
    main()
