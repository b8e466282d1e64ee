/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What both kinds of Astart share: their parameters, and the Westwood filter over
 * rate samples.
 *
 * Rates are in packets per second, 48.16 fixed point: a packet in 1 us is 2^36.
 */
#ifndef WARPBED_CC_ASTART_H
#define WARPBED_CC_ASTART_H

#include "cc_common.h"

#define ASTART_SHIFT	16
#define ASTART_DT_MAX	((1U << 24) - 1)	/* us */

/* Parameters of a module that includes this, which Kbuild links with cc_astart.c */
extern unsigned int astart_tau_ms;
extern unsigned int astart_init_ssthresh;

struct astart_filter {
	s64 estimate;			/* of the rate */
	s64 sample;			/* the last one */
};

static inline s64 astart_rate(u32 packets, u32 dt_us)
{
	return div_u64(((u64)packets * USEC_PER_SEC) << ASTART_SHIFT, dt_us);
}

/*
 * The Tustin form of the Westwood filter: with a = (2 tau - dt) / (2 tau + dt),
 *   e = a e + (1 - a) (b + b_last) / 2,
 * so e moves by 2 dt / (2 tau + dt) of its distance; below 2^(37 + 25)
 */
static inline void astart_filter_add(struct astart_filter *filter, s64 sample,
				     u32 dt_us, u32 tau_us)
{
	s64 distance = (sample + filter->sample) / 2 - filter->estimate;

	dt_us = min(dt_us, ASTART_DT_MAX);
	filter->estimate += div64_s64(distance * (2 * dt_us),
				      2 * (s64)tau_us + dt_us);
	filter->sample = sample;
}

/* The estimate times the least RTT: packets that fit the path */
static inline u32 astart_window(const struct astart_filter *filter, u32 rtt_us)
{
	u64 bits = (u64)max(filter->estimate, 0LL) >> (ASTART_SHIFT / 2);

	return div_u64(bits * rtt_us, USEC_PER_SEC) >> (ASTART_SHIFT / 2);
}

#endif /* WARPBED_CC_ASTART_H */
