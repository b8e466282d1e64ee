# SPDX-License-Identifier: Apache-2.0
"""The clock of one capture against another's, from packets that passed both.

No packet arrives before it was sent. With x(t) what B's clock shows more than A's, a packet from A to B has a measured
delay of at least x(t), one from B to A of at least -x(t): x runs in the gap between the lower convex hull of the one and
the upper convex hull of the negated other (after Moon, Skelly and Towsley, "Estimation and removal of clock skew from
network delay measurements", INFOCOM 1999, with both directions). The estimate is the middle of the widest strip that
fits into the gap: exact where the smallest delays are equal both ways, and never further off than the gap is wide.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from collectors.pcap import Clock

Floats = npt.NDArray[np.float64]

FEWEST_PACKETS = 8
"""Each way; below, a strip says little."""
BINS = 4096
"""Time is cut into so many parts, of each the packet with the smallest delay counts."""
WINDOWS = 16
SAME_WIDTH = 1e-9
"""Strips that differ in width by this share are equally wide: doubles hold no more."""


@dataclass(frozen=True)
class Estimate:
    """What B's clock shows more than A's.

    clock: to be taken off B's times
    offset_uncertainty_us, drift_uncertainty_ppm: what half of the packets say otherwise than the other half, where the
        smallest delays are equal both ways
    offset_bound_us: the clock cannot be further off than this at any time of the capture, whatever the delays
    unsteady_us: how far parts of the capture are from one line; a clock that was stepped or slewed shows here
    """

    clock: Clock
    offset_uncertainty_us: float
    drift_uncertainty_ppm: float
    offset_bound_us: float
    unsteady_us: float
    packets: int


@dataclass(frozen=True)
class _Side:
    """Packets of one way, or their hull: seconds since the reference, and the bound on x that each one gives (ns)."""

    t_s: Floats
    bound_ns: Floats


@dataclass(frozen=True)
class _Strip:
    """x(t) = middle_ns + slope · t, ± half of the width; slopes from low to high fit equally well (ns/s)."""

    middle_ns: float
    slope: float
    low: float
    high: float


def estimate(
    time_ns: npt.NDArray[np.int64], delay_ns: npt.NDArray[np.int64], a_to_b: npt.NDArray[np.bool_], taken_off: Clock
) -> Estimate | None:
    """The clock, from packets seen at both points; None where there are too few of them both ways.

    time_ns: when each packet passed the first of the points; delay_ns: until it passed the other one, B's times less
    `taken_off` already, so it may be negative; a_to_b: which way it went.
    """
    if min(a_to_b.sum(), (~a_to_b).sum()) < FEWEST_PACKETS:
        return None
    reference = int(time_ns.min())
    t_s = (time_ns - reference) / 1e9
    bound_ns: Floats = np.where(a_to_b, delay_ns, -delay_ns).astype(np.float64)
    above, below = _Side(t_s[a_to_b], bound_ns[a_to_b]), _Side(t_s[~a_to_b], bound_ns[~a_to_b])
    strip = _widest(above, below)
    # B's own time at the reference is what the correction is written in
    clock = Clock(
        reference_ns=reference,
        offset_ns=round(strip.middle_ns),
        drift_ppm=strip.slope / 1e3,
    )
    halves = [_halves(above, below, number) for number in (0, 1)]
    apart = [half for half in halves if half is not None]
    offset_apart = max((abs(half.middle_ns - strip.middle_ns) for half in apart), default=np.inf)
    slope_apart = max((abs(half.slope - strip.slope) for half in apart), default=np.inf)
    return Estimate(
        clock=compose(rebased(taken_off, reference + taken_off.offset_ns), clock),
        offset_uncertainty_us=float(offset_apart) / 1e3,
        drift_uncertainty_ppm=float(max(slope_apart, (strip.high - strip.low) / 2)) / 1e3,
        offset_bound_us=_bound(above, below, strip) / 1e3,
        unsteady_us=_unsteady(above, below, strip) / 1e3,
        packets=len(time_ns),
    )


def rebased(clock: Clock, reference_ns: int) -> Clock:
    """The same clock with another reference; offsets are those at the reference."""
    later_s = (reference_ns - clock.reference_ns) / 1e9
    return Clock(reference_ns, clock.offset_ns + round(later_s * clock.drift_ppm * 1e3), clock.drift_ppm)


def compose(first: Clock, then: Clock) -> Clock:
    """The clock that takes off `first`, and `then` from what is left; products of drifts (1e-8 and less) are left out."""
    since_s = (first.reference_ns - first.offset_ns - then.reference_ns) / 1e9
    offset = first.offset_ns + then.offset_ns + since_s * then.drift_ppm * 1e3
    return Clock(first.reference_ns, round(offset), first.drift_ppm + then.drift_ppm)


def _widest(above: _Side, below: _Side) -> _Strip:
    """The widest strip between the hulls. Its width is concave in the slope, with kinks at the slopes of hull edges."""
    top, bottom = _hull(above), _hull(_Side(below.t_s, -below.bound_ns))
    bottom = _Side(bottom.t_s, -bottom.bound_ns)
    slopes = np.unique(np.concatenate([_slopes(top), _slopes(bottom)]))
    if not slopes.size:
        slopes = np.zeros(1)
    ceiling = (top.bound_ns[None, :] - slopes[:, None] * top.t_s[None, :]).min(axis=1)
    floor = (bottom.bound_ns[None, :] - slopes[:, None] * bottom.t_s[None, :]).max(axis=1)
    width = ceiling - floor
    fits = np.flatnonzero(width >= width.max() - SAME_WIDTH * max(1.0, float(np.abs(ceiling).max())))
    low, high = float(slopes[fits[0]]), float(slopes[fits[-1]])
    slope = (low + high) / 2
    upper = float((top.bound_ns - slope * top.t_s).min())
    lower = float((bottom.bound_ns - slope * bottom.t_s).max())
    return _Strip((upper + lower) / 2, slope, low, high)


def _hull(side: _Side) -> _Side:
    """The lower convex hull, of the smallest bound in each part of the time."""
    part = np.minimum((side.t_s / max(float(side.t_s.max()), 1e-9) * BINS).astype(np.int64), BINS - 1)
    order = np.lexsort((side.bound_ns, part))
    first = order[np.unique(part[order], return_index=True)[1]]
    points = sorted(zip(side.t_s[first].tolist(), side.bound_ns[first].tolist(), strict=True))
    hull: list[tuple[float, float]] = []
    for t, y in points:
        if hull and hull[-1][0] == t:
            continue
        while len(hull) > 1 and _turn(hull[-2], hull[-1], (t, y)) <= 0:
            hull.pop()
        hull.append((t, y))
    return _Side(np.array([t for t, _ in hull]), np.array([y for _, y in hull]))


def _turn(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> float:
    """Above 0 where a, b, c turn left."""
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def _slopes(hull: _Side) -> Floats:
    slopes: Floats = np.diff(hull.bound_ns) / np.diff(hull.t_s)
    return slopes


def _halves(above: _Side, below: _Side, number: int) -> _Strip | None:
    """The strip from every second window of time; None where these hold too few packets."""
    span = max(float(above.t_s.max()), float(below.t_s.max()), 1e-9)
    chosen = []
    for side in (above, below):
        keep = (side.t_s / span * WINDOWS).astype(np.int64) % 2 == number
        if keep.sum() < FEWEST_PACKETS // 2:
            return None
        chosen.append(_Side(side.t_s[keep], side.bound_ns[keep]))
    return _widest(*chosen)


def _bound(above: _Side, below: _Side, strip: _Strip) -> float:
    """How far from the strip's middle the hulls are at the ends of the common time; in between they are nearer (ns)."""
    top, bottom = _hull(above), _hull(_Side(below.t_s, -below.bound_ns))
    start, end = max(top.t_s[0], bottom.t_s[0]), min(top.t_s[-1], bottom.t_s[-1])
    if end < start:
        return float("inf")
    at = np.array([start, end])
    middle = strip.middle_ns + strip.slope * at
    over = np.interp(at, top.t_s, top.bound_ns) - middle
    under = middle + np.interp(at, bottom.t_s, bottom.bound_ns)
    return float(np.maximum(over, under).max())


def _unsteady(above: _Side, below: _Side, strip: _Strip) -> float:
    """Largest distance of a window's gap from the strip's middle (ns); 0 while each window's gap holds it."""
    span = max(float(above.t_s.max()), float(below.t_s.max()), 1e-9)
    gaps = []
    for side, pick in ((above, np.min), (below, np.max)):
        part = np.minimum((side.t_s / span * WINDOWS).astype(np.int64), WINDOWS - 1)
        rest = side.bound_ns - strip.slope * side.t_s - strip.middle_ns
        gaps.append([float(pick(rest[part == k])) if (part == k).any() else np.nan for k in range(WINDOWS)])
    middles = (np.array(gaps[0]) + np.array(gaps[1])) / 2
    widths = np.array(gaps[0]) - np.array(gaps[1])
    known = np.isfinite(middles)
    if known.sum() < 2:
        return 0.0
    # a window in which packets queued one way only is off by half of the queue: that much is no clock's fault
    slack = (widths[known] - np.nanmin(widths)) / 2
    return float(np.maximum(np.abs(middles[known]) - slack, 0).max())
