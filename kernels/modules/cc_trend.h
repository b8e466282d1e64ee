/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Do the RTTs of some packets rise or fall with their departure times?
 *
 * Pearson's correlation of departure time and RTT over n points and Student's t:
 * t = r sqrt((n - 2) / (1 - r^2)) against a one-sided quantile.
 *
 * Fixed point: t in 64 us and RTTs in us relative to the first point.  With
 * n <= 128 points, |t| < 2^20 and |d| < 2^24 every sum of products times n stays
 * below 2^62.
 */
#ifndef WARPBED_CC_TREND_H
#define WARPBED_CC_TREND_H

#include "cc_common.h"

#define CC_TREND_TIME_MAX	((1U << 20) - 1)	/* 64 us: 67 s */

/* Sums over the points; d is the RTT in us, t the departure in 64 us. */
struct cc_trend {
	u64 tt;
	u64 dd;
	s64 td;
	u32 t;
	s32 d;
	u32 first_rtt_us;
	u8 n;
};

/* Student's t for one-sided levels of 1 ... 10 %: the normal quantile in 1/1024 */
static const u16 cc_trend_normal[] = {
	2382, 2103, 1926, 1793, 1684, 1592, 1511, 1439, 1373, 1312,
};

/* t_crit^2, 22.10: t = z + (z^3 + z) / 4 df + (5 z^5 + 16 z^3 + 3 z) / 96 df^2 */
static inline u32 cc_trend_t_crit2(u32 level, u32 df)
{
	u64 z = cc_trend_normal[clamp(level, 1U, 10U) - 1];
	u64 z2 = z * z >> 10;
	u64 first = (z2 + 1024) * z >> 10;
	u64 second = ((5 * z2 * z2 >> 10) + 16 * z2 + 3 * 1024) * z >> 10;
	u64 t = z + div_u64(first, 4 * df) + div_u64(second, 96 * df * df);

	return t * t >> 10;
}

/*
 * The sign of a significant trend, 0 for none.  With X, Y, Z the centred sums
 * times n, t^2 = (n - 2) Z^2 / (X Y - Z^2).  X and Y are brought below 2^24, so
 * X Y < 2^48, times n - 2 < 2^7 or, 2^10 less, times t_crit^2 < 2^14.
 */
static inline int cc_trend_sign(const struct cc_trend *test, u32 level)
{
	u64 n = test->n;
	s64 x = n * test->tt - (u64)test->t * test->t;
	s64 y = n * test->dd - (s64)test->d * test->d;
	s64 z = (s64)n * test->td - (s64)test->t * test->d;
	int shift_x = max(fls64(x) - 24, 0), shift_y = max(fls64(y) - 24, 0);
	u64 xy, zz;

	if (n < 3 || x <= 0 || y <= 0)
		return 0;
	/* z^2 <= x y: shifting z by half of both shifts keeps that */
	if ((shift_x + shift_y) & 1)
		shift_x++;
	xy = (u64)(x >> shift_x) * (u64)(y >> shift_y);
	zz = abs(z) >> ((shift_x + shift_y) / 2);
	zz = min(zz * zz, xy);
	if ((zz * (n - 2)) < ((xy - zz) >> 10) * cc_trend_t_crit2(level, n - 2))
		return 0;
	return z > 0 ? 1 : -1;
}

static inline void cc_trend_point(struct cc_trend *test, u32 rtt_us, u32 sent_us)
{
	u32 t = min(sent_us >> 6, CC_TREND_TIME_MAX);
	s64 d;

	if (!test->n)
		test->first_rtt_us = rtt_us;
	d = (s32)(rtt_us - test->first_rtt_us);
	test->n++;
	test->t += t;
	test->d += d;
	test->tt += (u64)t * t;
	test->dd += d * d;
	test->td += (s64)t * d;
}

#endif /* WARPBED_CC_TREND_H */
