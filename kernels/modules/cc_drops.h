/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How often packets are dropped, and the window for which that leaves room (MISS
 * of Yu 2009, s2.4)
 */
#ifndef WARPBED_CC_DROPS_H
#define WARPBED_CC_DROPS_H

#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/types.h>

struct cc_drops {
	u64 last_us;			/* 0: none yet */
	u32 gap_us;			/* EWMA of the times between them; 0: none */
};

/*
 * EWMA with weight 2^-3.  CPUs that lose packets in the same moment enter in
 * either order: a stamp before the last one is a gap of zero.
 */
static inline void cc_drops_add(struct cc_drops *drops, u64 now_us)
{
	s64 gap;

	if (!drops->last_us) {
		drops->last_us = now_us;
		return;
	}
	gap = now_us > drops->last_us ?
	      min_t(u64, now_us - drops->last_us, U32_MAX >> 1) : 0;
	if (drops->gap_us)
		gap = drops->gap_us + ((gap - (s64)drops->gap_us) >> 3);
	drops->gap_us = max(gap, 1LL);
	drops->last_us = max(drops->last_us, now_us);
}

/*
 * m (d - (now - last drop)) / R with m = d_o / d_s, d and the last drop being
 * those of `next`; 0 if the history does not tell.  Times are below 2^31 us, so
 * the product is below 2^62.
 */
static inline u32 cc_drops_room(const struct cc_drops *shared,
				const struct cc_drops *oldest,
				const struct cc_drops *next, u64 now_us,
				u32 rtt_us)
{
	u64 since_us = now_us > next->last_us ? now_us - next->last_us : 0;
	u64 room;

	if (!shared->gap_us || !oldest->gap_us || !rtt_us ||
	    since_us >= next->gap_us)
		return 0;
	room = (next->gap_us - since_us) * oldest->gap_us;
	return min_t(u64, div64_u64(div_u64(room, shared->gap_us), rtt_us),
		     1U << 20);
}

#endif /* WARPBED_CC_DROPS_H */
