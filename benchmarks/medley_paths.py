# SPDX-License-Identifier: Apache-2.0
"""Does Medley fill any path with a short queue? One flow alone on paths drawn by seed, held against Ho 2008 chapter 4.

    WARPBED_DEV=1 ./warpbed exec python -m benchmarks.medley_paths [--seed N] [--count N] [--only N,N…] [--list] [--cpu N]
    WARPBED_DEV=1 ./warpbed exec python -m benchmarks.medley_paths --path 5,400,30 [--path MBIT,MS,PACKETS …]

A path is a dumbbell (Ho Fig 5.1): rate 5 to 500 Mbit/s, RTT 2 to 400 ms and buffer 30 to 1000 packets, each drawn evenly by
its logarithm; paths of fewer than 10 packets are drawn again. Packets have 1000 bytes (1014 on the wire), each is ACKed.
Chapter 4's rounds, with that buffer (kernels.reference.medley_rounds), say after which time the window fills the path, or that it
never does: then bursts overflow the buffer again and again while the window is far below the path. Utilisation and mean
queue are those of the time after; each has to be at least 0.99 and at most 12 packets (Ho Figs 5.7 and 5.10). Where the
model says never, what was seen is shown beside what it says. Where it says that the path fills after losses, but only because of how
packets lie behind each other after them, what was seen is shown as `edge` (`Drawn.decided`). Ends with 1 where a path fails.
One guest per path.

Paths that need more packets than --most-packets until then are drawn and shown, and not run. --path: these instead of drawn ones,
by rate, RTT and buffer.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import random
import statistics
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.command import executed
from kernels.reference.medley_rounds import Round, convergence_rtts, rounds

RATE_MBIT, RTT_MS, BUFFER = (5.0, 500.0), (2.0, 400.0), (30, 1000)
LEAST_BDP = 10
FRAME_BYTES, ACK_BYTES = 1014, 66
ACCESS_MBIT, ACCESS_MS = 1000, 0.05
LEAST_SECONDS, LEAST_ROUNDS = 10.0, 100
NEVER_ROUNDS = 600
LEAST_UTILISATION, MOST_QUEUED = 0.99, 12.0
MOST_PACKETS = 20_000_000


@dataclass(frozen=True)
class Drawn:
    """A dumbbell's bottleneck: rate, RTT without serialisation, buffer in packets."""

    rate_mbit: float
    rtt_ms: float
    buffer: int

    @property
    def d_s(self) -> float:
        """Eq 4.1: propagation, and data and ACK once over each of the three links."""
        bits = 8 * (FRAME_BYTES + ACK_BYTES)
        return self.rtt_ms / 1e3 + bits * (1 / (self.rate_mbit * 1e6) + 2 / (ACCESS_MBIT * 1e6))

    @property
    def per_s(self) -> float:
        return self.rate_mbit * 1e6 / 8 / FRAME_BYTES

    @property
    def bdp(self) -> float:
        """mu d, packets."""
        return self.per_s * self.d_s

    @property
    def converged_s(self) -> float | None:
        rtts = convergence_rtts(self.bdp, self.buffer)
        return None if rtts is None else rtts * self.d_s

    @property
    def decided(self) -> bool:
        """Whether the model's word that the path fills holds whatever recoveries do to the packets' distances.

        The model lets all packets of a round lie in one train, whose standing queue ends the growth before the buffer does. A recovery
        sends three packets for four ACKs, and the train that it leaves has gaps in which a burst drains. If nothing else ended the
        growth, each loss would come at the window from which a quarter less and the growth by 2, 4, … until a burst is
        larger than the buffer, and by once more until that is known, lead back to it: four times that growth. Where that is
        less than the path, the flow may stay in this cycle.
        """
        if self.converged_s is None or not any(now.lost for now in self._until_full()):
            return True
        steps = self.buffer // 2 + 2
        return 4 * steps * (steps + 1) >= self.bdp

    def _until_full(self) -> Iterator[Round]:
        return itertools.takewhile(lambda now: self.bdp > now.W or now.lost, rounds(self.bdp, self.buffer))

    @property
    def model_utilisation(self) -> float:
        """Mean window over mu d in the later half of so many rounds, at most 1."""
        late = itertools.islice(rounds(self.bdp, self.buffer), NEVER_ROUNDS // 2, NEVER_ROUNDS)
        return statistics.fmean(min(1.0, now.W / self.bdp) for now in late)

    @property
    def warmup_s(self) -> float:
        """Where the model never converges, half of the rounds that are run."""
        return NEVER_ROUNDS / 2 * self.d_s if self.converged_s is None else self.converged_s

    @property
    def duration_s(self) -> int:
        return math.ceil(self.warmup_s + max(LEAST_SECONDS, LEAST_ROUNDS * self.d_s))

    @property
    def packets(self) -> int:
        """That a run takes, at most."""
        return round(self.duration_s * self.per_s)


def draw(seed: int, count: int) -> list[Drawn]:
    """The same paths for the same seed; a longer list begins with the shorter one."""
    return list(itertools.islice(_drawn(random.Random(seed)), count))  # noqa: S311 (no secret)


def named(text: str) -> Drawn:
    """A path from its rate, RTT and buffer with commas between."""
    rate_mbit, rtt_ms, buffer = text.split(",")
    return Drawn(float(rate_mbit), float(rtt_ms), int(buffer))


def _drawn(numbers: random.Random) -> Iterator[Drawn]:
    while True:
        rate_mbit = round(_even_log(numbers, *RATE_MBIT), 1)
        rtt_ms = round(_even_log(numbers, *RTT_MS), 1)
        path = Drawn(rate_mbit, rtt_ms, round(_even_log(numbers, *BUFFER)))
        if path.bdp >= LEAST_BDP:
            yield path


def _even_log(numbers: random.Random, low: float, high: float) -> float:
    return math.exp(numbers.uniform(math.log(low), math.log(high)))


EXPERIMENT = """\
warpbed: 1
name: medley-path
title: Medley alone on a path drawn by seed
duration: {duration_s}s
warmup: {warmup_ms}ms
topology:
  name: dumbbell
  params: {{rate: {rate_mbit}mbit, delay: {delay_us}us, buffer: {buffer}p, access_rate: {access}mbit, access_delay: {access_us}us}}
hosts: {{ack: every, mss: 960, overhead: none}}
flows:
  - {{name: f1, cca: medley, from: s1, to: d1}}
captures: {{at: none}}
samplers: {{tcp_probe: false, sockets: off, queues: {queues_ms}ms}}
metrics: [utilization, queue_mean_packets, queue_max_packets, queue_drops]
"""
ROOT = Path(__file__).resolve().parents[1]


def experiment(path: Drawn) -> str:
    delay_ms = path.rtt_ms / 2 - 2 * ACCESS_MS
    return EXPERIMENT.format(
        duration_s=path.duration_s,
        warmup_ms=math.ceil(1e3 * path.warmup_s),
        rate_mbit=path.rate_mbit,
        delay_us=round(1e3 * delay_ms),
        buffer=path.buffer,
        access=ACCESS_MBIT,
        access_us=round(1e3 * ACCESS_MS),
        # seven samples in a round trip and a bit: the burst at a round's beginning is seen with its share of the time
        queues_ms=max(1, min(10, int(path.rtt_ms / 7))),
    )


@dataclass(frozen=True)
class Seen:
    utilisation: float
    queued: float
    most_queued: float
    drops: int  # after the warm-up
    verdict: str

    @property
    def good(self) -> bool:
        return self.verdict == "valid" and self.utilisation >= LEAST_UTILISATION and self.queued <= MOST_QUEUED


def measure(path: Drawn, cpu: int) -> Seen:
    """Run one path.

    Raises RuntimeError with its words where the run failed.
    """
    with tempfile.TemporaryDirectory(prefix="warpbed-medley-") as folder:
        file, results = Path(folder) / "path.yml", Path(folder) / "results"
        file.write_text(experiment(path))
        executed(file, results, before=["taskset", "-c", str(cpu)])
        (name,) = results.glob("*/*/run.json")
        run = json.loads(name.read_text())
    numbers = run["metrics"]
    return Seen(
        numbers["utilization"],
        numbers["queue_mean_packets"],
        numbers["queue_max_packets"],
        numbers["queue_drops"],
        run["verdict"]["value"],
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="Medley alone on paths drawn by seed.")
    parser.add_argument("--seed", type=int, default=14)
    parser.add_argument("--count", type=int, default=48)
    parser.add_argument("--only", default="", help="numbers of paths, with commas between")
    parser.add_argument("--path", type=named, action="append", default=[], metavar="MBIT,MS,PACKETS")
    parser.add_argument("--cpu", type=int, default=0)
    parser.add_argument("--most-packets", type=int, default=MOST_PACKETS)
    parser.add_argument("--list", action="store_true", help="draw the paths and run none")
    options = parser.parse_args()
    numbers = {int(number) for number in options.only.split(",") if number}
    heads = ("Mbit/s", "RTT ms", "buffer", "mu d", "model s", "util", "queue", "most", "drops", "")
    print(f"{'path':>4}" + "".join(f"{head:>9}" for head in heads), flush=True)
    failed = 0
    for number, path in enumerate(options.path or draw(options.seed, options.count)):
        if numbers and number not in numbers:
            continue
        model = "never" if path.converged_s is None else f"{path.converged_s:.1f}"
        cells = [f"{path.rate_mbit:g}", f"{path.rtt_ms:g}", f"{path.buffer}", f"{path.bdp:.0f}", model]
        if options.list or path.packets > options.most_packets:
            cells += ["", "", "", "", f"  {path.packets / 1e6:.1f} million packets: not run"]
        else:
            measured = measure(path, options.cpu)
            text = "good" if measured.good else "FAILED"
            if path.converged_s is None and not measured.good:
                text = f"model {path.model_utilisation:.3f}"
            elif not path.decided and not measured.good:
                text = "edge"
            failed += text == "FAILED"
            cells += [
                f"{measured.utilisation:.4f}",
                f"{measured.queued:.2f}",
                f"{measured.most_queued:g}",
                f"{measured.drops}",
            ]
            cells.append("  " + text + ("" if measured.verdict == "valid" else f" ({measured.verdict})"))
        print(f"{number:>4}" + "".join(f"{cell:>9}" for cell in cells), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
