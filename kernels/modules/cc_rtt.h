/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which RTTs an algorithm may believe: the only place that decides it.
 *
 * What the algorithms call RTT is that of a packet of the size that fills the
 * path: the least of them is propagation and one serialisation of such a packet
 * on each link (Ho 2008 eqs 3.1 and 4.1).  Of the stack's samples three kinds
 * are not that, and each of them can be too small, for ever where a least RTT
 * is kept:
 *  - of a packet smaller than others of the connection: a first message, the
 *    end of a file.  Once a larger packet is seen, the least RTT begins anew;
 *  - of an ACK that covers a retransmission: the stack then falls back to TCP
 *    time stamps (tcp_ack_update_rtt()), which count whole milliseconds, and
 *    cuts.  An ACK of what was sent once has its sample in microseconds;
 *  - of an ACK that reports nothing new: there is none.
 * The SYN's sample comes before the module's init().
 *
 * A sample in microseconds that happens to be whole milliseconds and what the
 * time stamps say is left out as well, while retransmitted data is under way.
 */
#ifndef WARPBED_CC_RTT_H
#define WARPBED_CC_RTT_H

#include "cc_common.h"

/* Packets may differ by their TCP options (SACK blocks) and are of one size. */
#define CC_RTT_SLACK	MAX_TCP_OPTION_SPACE

struct cc_rtt {
	u32 base_us;			/* the least RTT believed; or CC_RTT_MAX_US */
	u32 una;			/* tp->snd_una after the last ACK */
	u32 retrans_end;		/* what was sent again lies before this */
	u16 retrans;			/* tp->total_retrans after the last ACK */
	u16 size;			/* bytes of the largest packet ACKed */
};

static inline void cc_rtt_begin(struct cc_rtt *rtt, const struct tcp_sock *tp)
{
	rtt->base_us = CC_RTT_MAX_US;
	rtt->una = tp->snd_una;
	rtt->retrans_end = tp->total_retrans ? tp->snd_nxt : tp->snd_una;
	rtt->retrans = tp->total_retrans;
	rtt->size = 0;
}

/* May this ACK cover data that was sent more than once? */
static inline bool cc_rtt_ambiguous(struct cc_rtt *rtt,
				    const struct tcp_sock *tp)
{
	u32 una = rtt->una;

	if (unlikely(rtt->retrans != (u16)tp->total_retrans)) {
		rtt->retrans = tp->total_retrans;
		rtt->retrans_end = tp->snd_nxt;
	}
	if (unlikely(before(una, rtt->retrans_end)))
		return true;
	/* never half the sequence space behind */
	if (unlikely(una - rtt->retrans_end > 1U << 30))
		rtt->retrans_end = una;
	return false;
}

/* Is this what the time stamps say, in their whole milliseconds? */
static inline bool cc_rtt_from_stamp(const struct tcp_sock *tp, u32 rtt_us)
{
	u32 ms = rtt_us / USEC_PER_MSEC;

	return ms * USEC_PER_MSEC == rtt_us && !compat_tcp_usec_ts(tp) &&
	       tp->rx_opt.saw_tstamp &&
	       max(compat_tcp_stamp_ms(tp) - tp->rx_opt.rcv_tsecr, 1U) == ms;
}

/*
 * Is each of so many packets as large as the largest before?  A larger one
 * makes it known, and what was measured with smaller ones is forgotten.
 */
static inline bool cc_rtt_full(struct cc_rtt *rtt, const struct tcp_sock *tp,
			       u32 bytes, u32 packets)
{
	if (unlikely(rtt->size > tp->mss_cache))
		rtt->size = tp->mss_cache;
	if (bytes + CC_RTT_SLACK < (u64)packets * rtt->size)
		return false;
	if (unlikely(bytes > (u64)packets * rtt->size)) {
		u32 size = min(bytes / packets, tp->mss_cache);

		if (size > rtt->size + CC_RTT_SLACK)
			rtt->base_us = CC_RTT_MAX_US;
		rtt->size = size;
	}
	return true;
}

/*
 * For pkts_acked(), once per call: the RTT in us, or 0 where it says nothing of
 * the path.  Updates the least RTT.
 */
static inline u32 cc_rtt_sample(struct cc_rtt *rtt, const struct tcp_sock *tp,
				const struct ack_sample *sample)
{
	u32 bytes = tp->snd_una - rtt->una, rtt_us;
	bool ambiguous = cc_rtt_ambiguous(rtt, tp);

	rtt->una = tp->snd_una;
	if (sample->rtt_us <= 0)
		return 0;
	rtt_us = min_t(u32, sample->rtt_us, CC_RTT_MAX_US);
	if (unlikely(ambiguous) && cc_rtt_from_stamp(tp, rtt_us))
		return 0;
	/* which packet was SACKed is unknown: all that are under way are full */
	if (unlikely(tp->sacked_out) &&
	    tp->snd_nxt - tp->snd_una + CC_RTT_SLACK <
	    (u64)tp->packets_out * rtt->size)
		return 0;
	if (sample->pkts_acked &&
	    !cc_rtt_full(rtt, tp, bytes, sample->pkts_acked))
		return 0;
	rtt->base_us = min(rtt->base_us, rtt_us);
	return rtt_us;
}

/* The same, for algorithms that also need the mean over a round. */
static inline void cc_rtt_measure(struct cc_rtt *rtt, struct cc_rtt_mean *mean,
				  const struct tcp_sock *tp,
				  const struct ack_sample *sample)
{
	u16 size = rtt->size;
	u32 rtt_us = cc_rtt_sample(rtt, tp, sample);

	/* the least RTT has begun anew; a mean is never below it */
	if (unlikely(rtt->size > size + CC_RTT_SLACK))
		cc_rtt_mean_reset(mean);
	if (rtt_us)
		cc_rtt_mean_add(mean, rtt_us);
}

#endif /* WARPBED_CC_RTT_H */
