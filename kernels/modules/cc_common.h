/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What several modules need: range-checked parameters, round trips, RTT means
 * over a round, and the rule that a window is only judged while it is used.
 */
#ifndef WARPBED_CC_COMMON_H
#define WARPBED_CC_COMMON_H

#include <linux/inet_diag.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include "compat.h"

/*
 * Define the operations of an unsigned parameter that refuses (-EINVAL) every
 * write outside [lo, hi].  Use with module_param_cb().
 */
#define CC_PARAM_RANGE(ops, lo, hi)					\
static int ops##_set(const char *val, const struct kernel_param *kp)	\
{									\
	return param_set_uint_minmax(val, kp, lo, hi);			\
}									\
static const struct kernel_param_ops ops = {				\
	.set = ops##_set,						\
	.get = param_get_uint,						\
}

/* RTT samples are cut here, so that products with them have a known bound. */
#define CC_RTT_MAX_US	((1U << 24) - 1)	/* 16.8 s */

/*
 * A round trip: from the transmission of a packet to its delivery.  Counted in
 * delivered packets instead of sequence numbers, so that it also works while a
 * window is being retransmitted: what is in flight when the round begins has to
 * be delivered first, and the next delivery is one of a packet sent in it.
 */
struct cc_round {
	u32 end;
};

static inline void cc_round_begin(struct cc_round *round,
				  const struct tcp_sock *tp)
{
	round->end = tp->delivered + tcp_packets_in_flight(tp);
}

static inline bool cc_round_over(const struct cc_round *round,
				 const struct tcp_sock *tp)
{
	return after(tp->delivered, round->end);
}

/*
 * Mean RTT over a round.  2^24 us x 2^24 samples fit the 48 bits that u64
 * leaves for the three fraction bits below.
 */
struct cc_rtt_mean {
	u64 sum_us;
	u32 samples;
};

static inline void cc_rtt_mean_add(struct cc_rtt_mean *mean, u32 rtt_us)
{
	mean->sum_us += rtt_us;
	mean->samples++;
}

/* The mean in 1/8 us (29.3 fixed point); samples must not be zero. */
static inline u32 cc_rtt_mean_us8(const struct cc_rtt_mean *mean)
{
	return div_u64(mean->sum_us << 3, mean->samples);
}

static inline void cc_rtt_mean_reset(struct cc_rtt_mean *mean)
{
	mean->sum_us = 0;
	mean->samples = 0;
}

/*
 * Slow start limited to max_ssthresh / 2 packets per round trip above
 * max_ssthresh (RFC 3742); 0 is the ordinary one.  Returns how many of the
 * acked packets are left once ssthresh is reached, as tcp_slow_start() does.
 */
static inline u32 cc_limited_slow_start(struct tcp_sock *tp, u32 acked,
					u32 max_ssthresh)
{
	u32 cwnd = tcp_snd_cwnd(tp);

	if (!max_ssthresh || cwnd <= max_ssthresh)
		return tcp_slow_start(tp, acked);
	/* cwnd += 1 / K per ACKed packet, K = int(cwnd / (max_ssthresh / 2)) */
	tcp_cong_avoid_ai(tp, 2 * cwnd / max_ssthresh, acked);
	return 0;
}

/*
 * There is more to send and the receiver would take it, yet neither cwnd nor
 * the application held the sender back at the last transmission: part of the
 * window is still to be sent.
 */
static inline bool cc_window_unsent(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	return tcp_send_head(sk) && !tp->is_cwnd_limited &&
	       !before(tcp_wnd_end(tp), tp->snd_nxt + tp->mss_cache);
}

/* Nothing to send, and the application does not wait for room in the buffer */
static inline bool cc_nothing_to_send(const struct sock *sk)
{
	const struct socket *sock = READ_ONCE(sk->sk_socket);

	return !tcp_send_head(sk) &&
	       !(sock && test_bit(SOCK_NOSPACE, &sock->flags));
}

/*
 * The window was in use.  Unlike tcp_is_cwnd_limited() this does not take half
 * of it for enough while ssthresh is infinite: for algorithms without a slow
 * start of the kernel's.
 */
static inline bool cc_window_filled(const struct sock *sk)
{
	return tcp_sk(sk)->is_cwnd_limited;
}

/* Set cwnd within what the socket allows. */
static inline void cc_set_cwnd(struct tcp_sock *tp, u32 cwnd, u32 floor)
{
	cwnd = max(cwnd, floor);
	tcp_snd_cwnd_set(tp, min_t(u32, cwnd, tp->snd_cwnd_clamp));
}

/* True until the first data segment: init() may choose the first window. */
static inline bool cc_is_new(const struct tcp_sock *tp)
{
	return !tp->data_segs_out;
}

/*
 * The SYN was lost, and tcp_init_transfer() has made the first window one packet
 * (RFC 5681): it stays so, unlike one that a route has chosen.
 */
static inline bool cc_syn_lost(const struct tcp_sock *tp)
{
	return tp->total_retrans > 1 && tp->undo_marker;
}

/* The first window or ssthresh: what the route says (RTAX_*), else the module's own. */
static inline u32 cc_route_metric(const struct sock *sk, int metric, u32 own)
{
	const struct dst_entry *dst = __sk_dst_get((struct sock *)sk);

	return (dst ? dst_metric(dst, metric) : 0) ?: own;
}

/*
 * get_info(): tell INET_DIAG the module's own phase, in the structure of Vegas
 * as other algorithms do; its other members stay zero.
 */
static inline size_t cc_phase_info(u32 ext, int *attr, union tcp_cc_info *info,
				   u32 phase)
{
	if (!(ext & (1 << (INET_DIAG_VEGASINFO - 1))))
		return 0;
	memset(&info->vegas, 0, sizeof(info->vegas));
	info->vegas.tcpv_enabled = phase;
	*attr = INET_DIAG_VEGASINFO;
	return sizeof(info->vegas);
}

/*
 * A module with cong_control() keeps the pacing rate itself; it also sets how
 * many packets the stack gathers.  percent of mss cwnd / srtt, as
 * tcp_update_pacing_rate() has 200 in slow start and 120 after.
 */
static inline void cc_update_pacing_rate(struct sock *sk, u32 percent)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u64 rate = (u64)tp->mss_cache * percent * max(tcp_snd_cwnd(tp),
						      tp->packets_out);

	if (!tp->srtt_us)
		return;
	/* bytes x percent x 10^4 x 8 / (8 us): below 2^(14 + 8 + 21 + 17) */
	rate = div_u64(rate * 10000 * 8, tp->srtt_us);
	WRITE_ONCE(sk->sk_pacing_rate,
		   min_t(u64, rate, READ_ONCE(sk->sk_max_pacing_rate)));
}

#endif /* WARPBED_CC_COMMON_H */
