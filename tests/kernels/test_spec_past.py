# SPDX-License-Identifier: Apache-2.0
"""PaSt: the search for the turning point, and the module against the specification."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hosts.virtual.launch import GuestKernel
from kernels.reference import past
from tests.harness import wire_rtts
from tests.harness.harness import Flow, Hook, run_all
from tests.harness.scenarios import idle_table_4_1, situations, standard
from tests.spec_runs import follows


def ended(search: past.Search, output: Callable[[float], float]) -> tuple[list[float], float]:
    """The gaps of the trains, of which each comes out as `output` has it, and the gap in the end."""
    gaps: list[float] = []
    while True:
        gaps.append(search.gap)
        if (end := search.judge(output(search.gap))) is not None:
            return gaps, end


@given(bottleneck=st.floats(1e-5, 1e-2), share=st.floats(1.0, 8.0), refine=st.booleans())
def test_the_search_ends_at_or_above_the_turning_point_within_its_rounds(
    bottleneck: float, share: float, refine: bool
) -> None:
    """A train below the turning point comes out at it (fluid cross traffic), one above it as it went in."""
    turning = bottleneck * share
    gaps, end = ended(past.Search(refine=refine), lambda gap: max(turning, gap) if gap else bottleneck)
    assert len(gaps) == 5 or (len(gaps) < 5 and not refine)
    assert turning * (1 - 1e-9) <= end <= max(2 * turning, 2 * bottleneck) * (1 + 1e-9)


def test_an_idle_path_ends_the_search_with_twice_its_gap_or_refined_with_its_own() -> None:
    """Back to back gives 1; twice that comes out as it went in, and so does 1, while all below it come out at 1.

    R over a gap of 2 is half of what fits: 1321 packets at 400 Mbit/s in Table 4-1, of 2644.
    """
    assert ended(past.Search(), lambda gap: max(1.0, gap)) == ([0.0, 2.0], 2.0)
    assert ended(past.Search(refine=True), lambda gap: max(1.0, gap)) == ([0.0, 2.0, 1.0, 0.5, 0.75], 1.0)


def test_a_train_that_comes_out_wider_is_followed_by_one_of_twice_that() -> None:
    """2 and 5 come out half as wide again or less, 12 as it went in."""
    wider = {0.0: 1.0, 2.0: 2.5, 5.0: 6.0}
    gaps, end = ended(past.Search(), lambda gap: wider.get(gap, gap))
    assert (gaps, end) == ([0.0, 2.0, 5.0, 12.0], 12.0)


def test_a_train_that_comes_out_wider_leaves_the_refined_gap_above_it() -> None:
    """Back to back gives 1, twice that comes out as it went in, 1 comes out a little wider, and so does all between them."""
    gaps, end = ended(past.Search(refine=True), lambda gap: 2.0 if gap == 2 else max(1.0, gap + 0.01))
    assert (gaps, end) == ([0.0, 2.0, 1.0, 1.5, 1.75], 2.0)


def test_where_every_train_comes_out_wider_the_gap_in_the_end_is_what_comes_out_of_the_last() -> None:
    """1, twice that a quarter wider: 2.5, 6.25, 15.625, 39.0625."""
    gaps, end = ended(past.Search(), lambda gap: 1.25 * gap if gap else 1.0)
    assert (gaps, end) == ([0.0, 2.0, 5.0, 12.5, 31.25], 39.0625)


def reference(hook: Hook) -> past.Past:
    new = hook.delivered <= 1  # the SYN alone
    assert bool(hook.count) == new
    return past.Past(float(hook.cwnd), new=new)


def refined(hook: Hook) -> past.Past:
    """With refine = 1."""
    spec = reference(hook)
    assert spec.search is not None
    spec.search.refine = True
    return spec


def test_the_second_trains_gap_is_a_parameter(kernel: GuestKernel) -> None:
    scenario = dataclasses.replace(standard("past")["growth"], seconds=3, params={"past": {"second_gap": 50}})

    def half(hook: Hook) -> past.Past:
        spec = reference(hook)
        assert spec.search is not None
        spec.search.second = 0.5
        return spec

    follows(kernel, {"growth": scenario}, half, 1)


def test_the_search_can_go_on(kernel: GuestKernel) -> None:
    scenario = dataclasses.replace(standard("past")["growth"], seconds=3, params={"past": {"refine": 1}})
    follows(kernel, {"growth": scenario}, refined, 1)


def test_the_module_follows_the_specification(kernel: GuestKernel) -> None:
    """One packet: the kernel's count of ACKed packets in avoidance is whole."""
    got = follows(kernel, situations("past"), reference, 1)
    assert all(got[name].estimates == 1 for name in ("growth", "timeout", "delayed ACKs"))


def test_trains_are_spaced_and_the_path_is_found(kernel: GuestKernel) -> None:
    """20 Mbit/s of 1014-byte frames and 100.4 ms: 405.6 us per packet, 247 packets; no other packet is on the path.

    The second train leaves with twice that, comes out so, and ends the search; refined, five trains find all of the path.
    """
    flow = (Flow("past", phases=((2.0, None),)),)
    for refine, packets, gap_us, trains in ((0, 247 / 2, 811.2, [4]), (1, 247, 405.6, [4, 8, 16, 32])):
        scenario = dataclasses.replace(
            standard("past")["growth"], seconds=2, flows=flow, params={"past": {"refine": refine}}
        )
        (result,) = run_all(kernel, [scenario])
        hooks = [h for h in result.flow() if h.hook in "IAM"]
        begun = next(i for i, h in enumerate(hooks) if h.hook == "I")
        estimate = next(h for h in hooks if h.hook == "M")
        assert estimate.count == pytest.approx(packets, abs=1)
        assert estimate.rtt_us == pytest.approx(gap_us, abs=1)
        windows = [h.cwnd for h in hooks[begun : hooks.index(estimate)]]
        assert [after for before, after in itertools.pairwise(windows) if after > before] == trains


def test_on_an_idle_path_the_estimate_is_that_of_yu_2009_s_table_4_1(kernel: GuestKernel) -> None:
    """PaSt has a mean of 1321.1 at 400 Mbit/s (s4.6.3, page 104), where Hoe and SPM have all of the 2644 that fit."""
    (result,) = run_all(kernel, [idle_table_4_1("past", 4.0)])
    (estimate,) = (h.count for h in result.flow() if h.hook == "M")
    assert estimate == pytest.approx(1321.1, rel=0.006)


@pytest.mark.parametrize("refine", [0, 1])
@pytest.mark.parametrize("rate_mbit", [20, 1])
def test_the_wire_alone_gives_the_module_s_threshold(kernel: GuestKernel, rate_mbit: int, refine: int) -> None:
    """Algorithm 3 over the capture: each train leaves with the gap that the ACKs of the last one give, and so does the estimate.

    At 1 Mbit/s a train takes longer than a round trip.  A first message of ten bytes is no train."""
    stray = Flow("reno", 41000, 0.0, ((9.0, 3000.0 * rate_mbit),), host="alt")
    past_flow = Flow("past", phases=((0.005, 2000.0), (0.295, 0.0), (3.7, None)))
    base = dataclasses.replace(standard("past")["growth"], seconds=4, rate_mbit=rate_mbit, capture=True)
    params = {"past": {"refine": refine}}
    (result,) = run_all(kernel, [dataclasses.replace(base, flows=(past_flow, stray), params=params)])
    (estimate,) = (h for h in result.flow() if h.hook == "M")
    packets = [s for s in wire_rtts.segments(result.capture) if 40000 in (s.port, s.destination)]
    sent = [s for s in packets if s.port == 40000 and s.length]
    assert sent.pop(0).length < 100, "the message"
    acked_s: dict[int, float] = {}
    for s in packets:
        if s.destination == 40000:
            acked_s.setdefault(s.ack, s.t_s)
    search, at, end = past.Search(refine=bool(refine)), 0, None
    for size in (2, 4, 8, 16, 32):
        if end is not None:
            break
        train = sent[at : at + size]
        at += size
        gaps = [b.t_s - a.t_s for a, b in itertools.pairwise(train)]
        assert gaps == pytest.approx([search.gap] * (size - 1), abs=2e-6)
        times = [acked_s[(s.seq + s.length) % 2**32] for s in train]
        end = search.judge((times[-1] - times[0]) / (size - 1))
    assert end is not None and (at == 62) is bool(refine)
    least_s = min(acked_s[(s.seq + s.length) % 2**32] - s.t_s for s in sent[:at])
    print(end, least_s / end, estimate.count)
    assert estimate.count == pytest.approx(least_s / end, abs=1)
