# SPDX-License-Identifier: Apache-2.0
"""SPM: the estimate from the gaps of packet pairs, and the module against the specification."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hosts.virtual.launch import GuestKernel
from kernels.reference import spm
from tests.harness import wire_rtts
from tests.harness.harness import Flow, Hook, run_all
from tests.harness.scenarios import idle_table_4_1, situations, standard
from tests.spec_runs import follows, judge

READINGS = (spm.NO_ESTIMATE, spm.LINE, spm.BOUNDED)


def test_gaps_that_come_out_as_they_went_in_give_the_smallest() -> None:
    assert spm.gamma([(x, x) for x in spm.INPUT_GAPS * 3]) == 1.0


@given(a=st.floats(0.1, 0.9), b=st.floats(0.2, 3.0))
def test_the_line_through_wider_gaps_meets_the_turning_point(a: float, b: float) -> None:
    """Below the turning point gamma = b / (1 - a) gaps come out as a x + b, above it as they went in (Yu section 4.3)."""
    turning = b / (1 - a)
    samples = [(x, max(x, a * x + b)) for x in spm.INPUT_GAPS * 3]
    got = spm.gamma(samples, unqualified=spm.BOUNDED)
    assert got is not None
    smallest = next((x for x in spm.INPUT_GAPS if max(x, a * x + b) <= 1.05 * x), spm.INPUT_GAPS[-1])
    assert got <= smallest
    if smallest not in (spm.INPUT_GAPS[0], spm.INPUT_GAPS[1]) and turning >= smallest:
        assert got == pytest.approx(min(smallest, turning))


@pytest.mark.parametrize("reading", READINGS)
def test_a_slope_of_one_or_more_gives_no_estimate(reading: int) -> None:
    """Whether no gap qualifies or, in the second case, 1.5 does: (1.575 - 1.06) / 0.5 is 1.03."""
    assert spm.gamma([(x, 2 * x) for x in spm.INPUT_GAPS * 3], unqualified=reading) is None
    assert spm.gamma([(1.0, 1.06), (1.5, 1.575), (2.0, 4.0), (4.0, 9.0)], unqualified=reading) is None


@pytest.mark.parametrize(("reading", "expected"), [(spm.NO_ESTIMATE, None), (spm.LINE, 10.0), (spm.BOUNDED, 4.0)])
def test_where_no_gap_qualifies_there_are_three_readings(reading: int, expected: float | None) -> None:
    """y = 0.9 x + 1 meets y = x at 10, and the widest gap, 4, comes out as 4.6.

    Of gaps that come out as 2.5 at least the widest qualifies, and the readings are one: y = 45/83 x + 143/83 meets y = x at 143/38.
    """
    got = spm.gamma([(x, 0.9 * x + 1) for x in spm.INPUT_GAPS * 3], unqualified=reading)
    assert got == (None if expected is None else pytest.approx(expected))
    assert spm.gamma([(x, max(x, 2.5)) for x in spm.INPUT_GAPS * 3], unqualified=reading) == pytest.approx(143 / 38)


def reference(hook: Hook) -> spm.Spm:
    new = hook.delivered <= 1  # the SYN alone
    assert bool(hook.count) == new
    return spm.Spm(float(hook.cwnd), new=new)


def test_the_module_follows_the_specification(kernel: GuestKernel) -> None:
    """One packet, or 1 %: gaps are cut to 1/1024 y0 and whole microseconds."""
    got = follows(kernel, situations("spm"), reference, 1, 0.01)
    assert all(got[name].estimates == 1 and got[name].pairs >= 12 for name in ("growth", "delayed ACKs", "timeout"))


def test_the_module_follows_the_specification_in_each_reading(kernel: GuestKernel) -> None:
    """Where others fill the path no gap qualifies, and each reading has another threshold."""
    others = tuple(Flow("reno", 40001 + i, 0.0, ((14.0, None),)) for i in range(3))
    base = dataclasses.replace(standard("spm")["growth"], seconds=14)
    scenarios = {
        (start_s, reading): dataclasses.replace(
            base,
            flows=(*others, Flow("spm", 40000, start_s, ((14 - start_s, None),))),
            params={"spm": {"unqualified": reading}},
        )
        for start_s in (5.0, 7.3, 9.1)
        for reading in READINGS
    }
    wrong, found = [], {}
    for (key, scenario), result in zip(scenarios.items(), run_all(kernel, list(scenarios.values())), strict=True):

        def reference(hook: Hook, reading: int = key[1]) -> spm.Spm:
            return spm.Spm(float(hook.cwnd), new=hook.delivered <= 1, unqualified=reading)

        wrong += judge(f"start and reading {key}", scenario, result, reference, 1, 0.01)[1]
        found[key] = estimates(list(result.flow()))
    print(found)
    assert not wrong, "\n".join(wrong)
    assert any(
        len({*map(tuple, (found[start_s, reading] for reading in READINGS))}) == 3 for start_s in (5.0, 7.3, 9.1)
    )


def test_the_module_s_pairs_and_gaps_are_those_on_the_wire(kernel: GuestKernel) -> None:
    """Yu 2009 s4.5: one back to back, then y0, 1.5 y0, 2 y0 and 4 y0 in turn, y0 being the first one's output gap."""
    base = standard("spm")["growth"]
    (result,) = run_all(
        kernel, [dataclasses.replace(base, seconds=3, capture=True, flows=(Flow("spm", phases=((1.5, None),)),))]
    )
    measured = [(h.count, h.rtt_us) for h in result.flow() if h.hook == "D"]
    seen = wire_rtts.inversions(result.capture, 40000)
    assert [seq for seq, _ in seen] == [seq for seq, _ in measured]
    assert [gap_s * 1e6 for _, gap_s in seen] == pytest.approx([gap_us for _, gap_us in measured], abs=1)
    y0_us = 1014 * 8 / 20
    assert len(seen) > 12
    for i, (_, gap_s) in enumerate(seen[1:]):
        assert gap_s * 1e6 == pytest.approx(y0_us * spm.INPUT_GAPS[i % 4], abs=3)
    assert seen[0][1] < 1e-6


def test_on_an_idle_path_the_estimate_is_that_of_yu_2009_s_table_4_1(kernel: GuestKernel) -> None:
    """2644 fill the path (s4.6.3, page 104; the table's mean beside stray packets is 0.96 of it). The sender's clock takes y0 of
    166.4 us for 166 or 167: 0.6 %."""
    (result,) = run_all(kernel, [idle_table_4_1("spm", 6.0)])
    estimated = estimates(list(result.flow()))
    print(estimated)
    assert estimated == [pytest.approx(2644, rel=0.006)]


def estimates(hooks: list[Hook]) -> list[int]:
    return [h.count for h in hooks if h.hook == "M"]


def test_an_idle_path_is_estimated_exactly_and_a_shared_one_lower(kernel: GuestKernel) -> None:
    """20 Mbit/s of 1014-byte frames and 100.4 ms: 405.6 us per packet, 247 packets; beside a flow that fills it, less."""
    alone = dataclasses.replace(standard("spm")["growth"], seconds=3, flows=(Flow("spm", phases=((3.0, None),)),))
    other = Flow("reno", 40001, 0.0, ((14.0, None),))
    shared = dataclasses.replace(alone, seconds=14, flows=(other, Flow("spm", 40000, 10.0, ((4.0, None),))))
    slow = dataclasses.replace(alone, quickack=False)
    results = list(run_all(kernel, [alone, shared, slow]))
    estimated = [estimates(list(r.flow())) for r in results]
    print(estimated)
    assert estimated[0] == [pytest.approx(247, abs=1)]
    assert estimated[2] == [pytest.approx(247, abs=1)]
    assert len(estimated[1]) <= 1
    assert all(got < 200 for got in estimated[1])
    for result in (results[0], results[2]):
        pairs = sum(h.hook == "D" for h in result.flow())
        assert result.counters["rcv"]["TCPOFOQueue"] == pairs
        assert result.counters["snd"]["RetransSegs"] == 0


def test_a_pair_that_began_before_measuring_stopped_belongs_to_it_and_a_later_one_does_not() -> None:
    """Slow start ends at 3 s. A second packet that leaves at 3.5 s belongs to a pair begun at 2.9 s or at 3.2 s, by its gap."""

    def stopped() -> spm.Spm:
        model = spm.Spm(10.0, ssthresh=5.0)
        model.clock_ns = 3_000_000_000
        model.on_acknowledged(1000, 1, 3.0, limited=True)
        model.clock_ns = 3_500_000_000
        return model

    before, after = stopped(), stopped()
    before.on_pair(1, 0.6)
    after.on_pair(1, 0.3)
    assert ["pair after measuring" in model.wrong for model in (before, after)] == [False, True]
