// SPDX-License-Identifier: GPL-2.0-only
/*
 * FAST TCP
 *
 * The window moves every round trip towards the one that keeps alpha packets of
 * this flow in the queues.
 *
 * As stated by Cheng-Yuan Ho, dissertation, National Chiao Tung University, 2008
 * ("Ho"), s2.5, after Jin, Wei and Low, "FAST TCP", INFOCOM 2004:
 *   W = min(2 W, (1 - gamma) W + gamma (BaseRTT / RTT W + alpha))
 *   W / 2 on a loss; no reaction to delay until the recovery is over
 * Its fixed point is W (1 - BaseRTT / RTT) = alpha.
 *
 * Differences from the paper
 *  - gamma is 1/2 (Ho gives its range only; 1/2 is the INFOCOM paper's).
 *  - RTT is the mean over the round trip, and the window moves once per round.
 *  - Growth is spread: a round's new window is approached by at most one extra
 *    packet per ACKed one; the original paces its bursts.  A smaller window is
 *    taken at once.
 *  - There is no slow start besides the 2 W above; after a timeout the window
 *    grows from one packet by the same rule.
 *  - A round in which the application did not fill the window changes nothing.
 *  - BaseRTT and RTT are those of full packets sent once (cc_rtt.h).
 *
 * Readings
 *  - gamma: Ho says "between 0 and 1".  Its choice changes how the window gets
 *    there, not where: at 20 Mbit/s, 100 ms and a buffer of 250 packets 25, 50 and
 *    100 % all keep 100.0 packets in the queue from the tenth to the twentieth
 *    second, at a utilisation of 1.000.
 *
 * Fixed point: W and the backlog 24.8 packets, RTTs in 1/8 us: below 2^(28 + 27).
 */
#include "cc_rtt.h"
#include "cc_single.h"
#include "cc_timeout.h"

#define TRACE_SYSTEM tcp_fast
#define CREATE_TRACE_POINTS
#include "cc_trace.h"

static unsigned int alpha __read_mostly = 100;
CC_PARAM_RANGE(alpha_ops, 1, 10000);
module_param_cb(alpha, &alpha_ops, &alpha, 0644);
MODULE_PARM_DESC(alpha, "packets to keep in the queues, 1-10000 (100)");

static unsigned int gamma __read_mostly = 50;
CC_PARAM_RANGE(gamma_ops, 1, 100);
module_param_cb(gamma, &gamma_ops, &gamma, 0644);
MODULE_PARM_DESC(gamma, "weight of the new window, percent, 1-100 (50)");

struct fast {
	struct cc_rtt_mean mean;
	struct cc_rtt rtt;
	struct cc_round round;
	u32 target;			/* window of this round, 24.8 packets */
	u8 reduced:1;			/* ssthresh() was called */
};

static void fast_next_round(struct sock *sk)
{
	struct fast *ca = inet_csk_ca(sk);

	cc_rtt_mean_reset(&ca->mean);
	cc_round_begin(&ca->round, tcp_sk(sk));
}

static void fast_init(struct sock *sk)
{
	struct fast *ca = inet_csk_ca(sk);

	memset(ca, 0, sizeof(*ca));
	cc_rtt_begin(&ca->rtt, tcp_sk(sk));
	ca->target = tcp_snd_cwnd(tcp_sk(sk)) << 8;
	fast_next_round(sk);
	cc_send_singly(sk);
	trace_cc_hook(sk, CC_INIT, 0, -1);
}

static void fast_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	struct fast *ca = inet_csk_ca(sk);

	cc_rtt_measure(&ca->rtt, &ca->mean, tcp_sk(sk), sample);
	trace_cc_hook(sk, CC_SAMPLE, sample->pkts_acked, sample->rtt_us);
}

/* W + gamma (alpha - W (RTT - BaseRTT) / RTT), at most 2 W */
static void fast_update(struct sock *sk)
{
	struct fast *ca = inet_csk_ca(sk);
	u64 w = min(tcp_snd_cwnd(tcp_sk(sk)), 1U << 20) << 8;
	u64 grown = w + ((u64)READ_ONCE(alpha) << 8) * READ_ONCE(gamma) / 100;
	u64 backlog = 0;

	if (ca->mean.samples) {
		u32 rtt_us8 = cc_rtt_mean_us8(&ca->mean);

		backlog = div_u64(w * (rtt_us8 - (ca->rtt.base_us << 3)),
				  rtt_us8);
	}
	/* keep the fraction of the last target if the window has reached it */
	if (ca->target >> 8 == w >> 8)
		grown += ca->target & 0xff;
	grown -= div_u64(backlog * READ_ONCE(gamma), 100);
	ca->target = min(grown, 2 * w);
}

static void fast_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct fast *ca = inet_csk_ca(sk);
	bool limited = cc_window_filled(sk);

	if (cc_round_over(&ca->round, tp)) {
		if (limited)
			fast_update(sk);
		fast_next_round(sk);
	}
	if (limited)
		cc_set_cwnd(tp, min(ca->target >> 8, tcp_snd_cwnd(tp) + acked),
			    2);
	trace_cc_hook(sk, CC_AVOID, acked, limited);
}

static u32 fast_ssthresh(struct sock *sk)
{
	struct fast *ca = inet_csk_ca(sk);
	u32 ssthresh = max(tcp_snd_cwnd(tcp_sk(sk)) >> 1, 2U);

	ca->target = ssthresh << 8;
	ca->reduced = 1;
	trace_cc_hook(sk, CC_LOSS, ssthresh, -1);
	return ssthresh;
}

static void fast_set_state(struct sock *sk, u8 new_state)
{
	struct fast *ca = inet_csk_ca(sk);
	u8 old_state = inet_csk(sk)->icsk_ca_state;

	if (cc_timed_out(sk, new_state, ca->reduced))
		ca->target = 2 << 8;
	if (cc_loss_over(new_state))
		ca->reduced = 0;
	if (new_state == TCP_CA_Loss ||
	    (new_state == TCP_CA_Open &&
	     (old_state == TCP_CA_CWR || old_state == TCP_CA_Recovery)))
		fast_next_round(sk);
	trace_cc_hook(sk, CC_STATE, new_state, -1);
}

static u32 fast_undo_cwnd(struct sock *sk)
{
	struct fast *ca = inet_csk_ca(sk);
	u32 cwnd = tcp_reno_undo_cwnd(sk);

	ca->target = cwnd << 8;
	trace_cc_hook(sk, CC_UNDO, cwnd, -1);
	return cwnd;
}

static struct tcp_congestion_ops tcp_fast __read_mostly = {
	.init		= fast_init,
	.release	= cc_send_gathered,
	.pkts_acked	= fast_pkts_acked,
	.cong_avoid	= fast_cong_avoid,
	.ssthresh	= fast_ssthresh,
	.set_state	= fast_set_state,
	.undo_cwnd	= fast_undo_cwnd,
	.min_tso_segs	= cc_single_tso_segs,
	.owner		= THIS_MODULE,
	.name		= "fast",
};

static int __init fast_register(void)
{
	BUILD_BUG_ON(sizeof(struct fast) > ICSK_CA_PRIV_SIZE);
	return tcp_register_congestion_control(&tcp_fast);
}

static void __exit fast_unregister(void)
{
	tcp_unregister_congestion_control(&tcp_fast);
}

module_init(fast_register);
module_exit(fast_unregister);

MODULE_DESCRIPTION("FAST TCP (as stated in Ho 2008)");
MODULE_LICENSE("GPL");
