/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Hooks that are Reno's own or do nothing but tell the trace event, for modules
 * that have nothing of their own to say there.  Include it after cc_trace.h.
 */
#ifndef WARPBED_CC_RENO_H
#define WARPBED_CC_RENO_H

static inline void cc_reno_pkts_acked(struct sock *sk,
				      const struct ack_sample *sample)
{
	trace_cc_hook(sk, CC_SAMPLE, sample->pkts_acked, sample->rtt_us);
}

static inline u32 cc_reno_ssthresh(struct sock *sk)
{
	u32 ssthresh = tcp_reno_ssthresh(sk);

	trace_cc_hook(sk, CC_LOSS, ssthresh, -1);
	return ssthresh;
}

static inline void cc_reno_set_state(struct sock *sk, u8 new_state)
{
	trace_cc_hook(sk, CC_STATE, new_state, -1);
}

static inline u32 cc_reno_undo_cwnd(struct sock *sk)
{
	u32 cwnd = tcp_reno_undo_cwnd(sk);

	trace_cc_hook(sk, CC_UNDO, cwnd, -1);
	return cwnd;
}

#endif /* WARPBED_CC_RENO_H */
