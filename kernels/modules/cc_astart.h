/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What both kinds of Astart share: their parameters, and the Westwood filter over
 * rate samples.
 *
 * Rates are in packets per second, 48.16 fixed point: a packet in 1 us is 2^36.
 * A sample counts ASTART_PACKETS_MAX packets at most, so rates are below 2^61.
 */
#ifndef WARPBED_CC_ASTART_H
#define WARPBED_CC_ASTART_H

#include "cc_rtt.h"

#define ASTART_SHIFT	16
#define ASTART_DT_MAX	((1U << 24) - 1)	/* us */
#define ASTART_PACKETS_MAX BIT(24)
#define ASTART_SMALL	0x4000000000ULL	/* 2^38, times 2^25 below 2^63 */

/* Parameters of a module that includes this, which Kbuild links with cc_astart.c */
extern unsigned int astart_tau_ms;
extern unsigned int astart_init_ssthresh;
extern unsigned int astart_each_ack;

struct astart_filter {
	s64 estimate;			/* of the rate */
	s64 sample;			/* the last one */
};

static inline s64 astart_rate(u32 packets, u32 dt_us)
{
	packets = min_t(u32, packets, ASTART_PACKETS_MAX);
	return div_u64(((u64)packets * USEC_PER_SEC) << ASTART_SHIFT, dt_us);
}

/*
 * The Tustin form of the Westwood filter: with a = (2 tau - dt) / (2 tau + dt),
 *   e = a e + (1 - a) (b + b_last) / 2,
 * so e moves by 2 dt / (2 tau + dt) of its distance, which is below 2^62; a gap
 * above 2 tau moves it beyond the mean of both samples, as the equation has it.
 * The product, up to 2^87, needs 128 bits; below four million packets per second
 * it does not.
 */
static inline void astart_filter_add(struct astart_filter *filter, s64 sample,
				     u32 dt_us, u32 tau_us)
{
	s64 distance = (sample + filter->sample) / 2 - filter->estimate;
	u64 away = abs(distance), moved, whole;

	dt_us = min(dt_us, ASTART_DT_MAX);
	whole = 2 * (u64)tau_us + dt_us;
	if (away < ASTART_SMALL)
		moved = div64_u64(away * (2 * dt_us), whole);
	else
		moved = mul_u64_u64_div_u64(away, 2 * dt_us, whole);
	filter->estimate += distance < 0 ? -(s64)moved : (s64)moved;
	filter->sample = sample;
}

/* The estimate times the least RTT: packets that fit the path */
static inline u32 astart_window(const struct astart_filter *filter, u32 rtt_us)
{
	u64 packets = mul_u64_u64_div_u64(max(filter->estimate, 0LL), rtt_us,
					  USEC_PER_SEC) >> ASTART_SHIFT;

	return min_t(u64, packets, TCP_INFINITE_SSTHRESH);
}

/*
 * ssthresh, or the estimate's window where that is larger: most ACKs raise
 * nothing, which two products show without a division.
 */
static inline u32 astart_raised(const struct astart_filter *filter, u32 rtt_us,
				u32 ssthresh)
{
	u64 estimate = max(filter->estimate, 0LL);

	if (estimate < ASTART_SMALL && rtt_us < BIT(24) && ssthresh < BIT(27) &&
	    estimate * rtt_us <
	    (ssthresh + 1) * ((u64)USEC_PER_SEC << ASTART_SHIFT))
		return ssthresh;
	return max(ssthresh, astart_window(filter, rtt_us));
}

/* Raise ssthresh if it is time for that; *over is set with the last time. */
void astart_raise(struct tcp_sock *tp, const struct astart_filter *filter,
		  u32 rtt_us, u8 *over);

#endif /* WARPBED_CC_ASTART_H */
