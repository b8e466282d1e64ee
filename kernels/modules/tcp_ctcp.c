// SPDX-License-Identifier: GPL-2.0-only
/*
 * Compound TCP
 *
 * Reno's window plus a delay window that grows fast while there is no queue and
 * gives way once there is one.
 *
 * As stated by Cheng-Yuan Ho, dissertation, National Chiao Tung University, 2008
 * ("Ho"), s2.6, after Tan, Song, Zhang and Sridharan, INFOCOM 2006 ("Tan"):
 *   win  = cwnd + dwnd						(eq 2.2)
 *   cwnd: + 1 / win per ACK, cwnd / 2 on a loss
 *   Diff = win (1 - BaseRTT / RTT)				(eq 2.3)
 *   dwnd: per round + (alpha win^k - 1)^+  if Diff < gamma,
 *                   - zeta Diff            if Diff >= gamma,
 *         on a loss = (win (1 - beta) - cwnd / 2)^+
 * with alpha = 1/8, beta = 1/2, k = 3/4, zeta = 1 (Tan) and gamma = 30 packets.
 * Slow start is Reno's; dwnd counts in congestion avoidance only.
 *
 * Differences from the paper
 *  - The advertised window of eq 2.2 is the kernel's affair.
 *  - RTT is the mean over a round trip, and a round's change of dwnd is applied
 *    at its beginning.
 *  - A timeout ends the delay window (Tan s3): dwnd = 0.
 *  - k is fixed at 3/4.
 *  - BaseRTT and RTT are those of full packets sent once (cc_rtt.h).
 *
 * Readings
 *  - Ho gives gamma, 30 packets, and Tan the rest, zeta among it.  At 20 Mbit/s,
 *    100 ms and a buffer of 100 packets, from the tenth to the twentieth second:
 *    utilisation 0.962 and a mean queue of 34.1 packets with 30 and 1, 0.965 and
 *    29.8 with gamma 10, 0.978 and 38.6 with zeta 1/2.
 *
 * Fixed point: dwnd, Diff and win^k 24.8 packets; win < 2^20.  cwnd's
 * fraction has 32 bits, since 1 / win of a packet per ACK adds up.
 *
 * Cost: an ACK is 1.4 times CUBIC's, 1.7 times after losses, for two windows grow
 * and a sample is judged; a loss is 1.9 times, for two are cut instead of one.
 */
#include "cc_rtt.h"
#include "cc_single.h"
#include "cc_timeout.h"

#define TRACE_SYSTEM tcp_ctcp
#define CREATE_TRACE_POINTS
#include "cc_trace.h"

#define CTCP_WIN_MAX	((1U << 20) - 1)

static unsigned int alpha __read_mostly = 125;
CC_PARAM_RANGE(alpha_ops, 1, 1000);
module_param_cb(alpha, &alpha_ops, &alpha, 0644);
MODULE_PARM_DESC(alpha, "growth of the delay window, 1/1000, 1-1000 (125)");

static unsigned int beta __read_mostly = 500;
CC_PARAM_RANGE(beta_ops, 1, 999);
module_param_cb(beta, &beta_ops, &beta, 0644);
MODULE_PARM_DESC(beta, "share of the window that a loss costs, 1/1000, 1-999 (500)");

static unsigned int gamma __read_mostly = 30;
CC_PARAM_RANGE(gamma_ops, 1, 1000);
module_param_cb(gamma, &gamma_ops, &gamma, 0644);
MODULE_PARM_DESC(gamma, "backlog at which the delay window gives way, packets, 1-1000 (30)");

static unsigned int zeta __read_mostly = 1000;
CC_PARAM_RANGE(zeta_ops, 0, 10000);
module_param_cb(zeta, &zeta_ops, &zeta, 0644);
MODULE_PARM_DESC(zeta, "share of the backlog given back per round, 1/1000, 0-10000 (1000)");

struct ctcp {
	struct cc_rtt_mean mean;
	struct cc_rtt rtt;
	struct cc_round round;
	u32 cwnd;			/* Reno's window, packets */
	u32 fraction;			/* of cwnd, 2^-32 packet */
	u32 dwnd;			/* delay window, 24.8 packets */
	u8 reduced:1;			/* ssthresh() was called */
};

static void ctcp_next_round(struct sock *sk)
{
	struct ctcp *ca = inet_csk_ca(sk);

	cc_rtt_mean_reset(&ca->mean);
	cc_round_begin(&ca->round, tcp_sk(sk));
}

static void ctcp_init(struct sock *sk)
{
	struct ctcp *ca = inet_csk_ca(sk);

	memset(ca, 0, sizeof(*ca));
	cc_rtt_begin(&ca->rtt, tcp_sk(sk));
	ca->cwnd = tcp_snd_cwnd(tcp_sk(sk));
	ctcp_next_round(sk);
	cc_send_singly(sk);
	trace_cc_hook(sk, CC_INIT, 0, -1);
}

static void ctcp_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	struct ctcp *ca = inet_csk_ca(sk);

	cc_rtt_measure(&ca->rtt, &ca->mean, tcp_sk(sk), sample);
	trace_cc_hook(sk, CC_SAMPLE, sample->pkts_acked, sample->rtt_us);
}

/* win^(3/4), 24.8: sqrt(win) x win^(1/4), both with 16 fraction bits */
static u32 ctcp_power(u32 win)
{
	u64 half = int_sqrt64((u64)win << 32);
	u64 quarter = int_sqrt64(half << 16);

	return half * quarter >> 24;
}

/* One round's change of the delay window */
static void ctcp_delay_window(struct sock *sk)
{
	struct ctcp *ca = inet_csk_ca(sk);
	u32 win = min(tcp_snd_cwnd(tcp_sk(sk)), CTCP_WIN_MAX);
	u32 rtt_us8 = cc_rtt_mean_us8(&ca->mean);
	u32 diff, change;

	diff = div_u64(((u64)win << 8) * (rtt_us8 - (ca->rtt.base_us << 3)),
		       rtt_us8);
	if (diff < READ_ONCE(gamma) << 8) {
		change = (u64)ctcp_power(win) * READ_ONCE(alpha) / 1000;
		ca->dwnd += max(change, 1U << 8) - (1U << 8);
		ca->dwnd = min(ca->dwnd, CTCP_WIN_MAX << 8);
	} else {
		change = (u64)diff * READ_ONCE(zeta) / 1000;
		ca->dwnd -= min(change, ca->dwnd);
	}
}

/* The kernel shrank an unused window (RFC 2861): the delay window goes first. */
static void ctcp_follow(struct ctcp *ca, u32 win)
{
	u32 sum = ca->cwnd + (ca->dwnd >> 8);
	u32 less = sum > win ? sum - win : 0;
	u32 delay = min(less, ca->dwnd >> 8);

	ca->dwnd -= delay << 8;
	ca->cwnd -= less - delay;
}

static void ctcp_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct ctcp *ca = inet_csk_ca(sk);
	bool over = cc_round_over(&ca->round, tp);
	u32 win, left = acked;
	u64 grown;
	bool limited = tcp_is_cwnd_limited(sk);

	if (!limited)
		goto out;
	if (tcp_in_slow_start(tp)) {
		left = tcp_slow_start(tp, acked);
		ca->cwnd = tcp_snd_cwnd(tp);
		ca->dwnd = 0;
		if (!left)
			goto out;
	}
	ctcp_follow(ca, tcp_snd_cwnd(tp));
	if (over && ca->mean.samples)
		ctcp_delay_window(sk);
	win = max(ca->cwnd + (ca->dwnd >> 8), 1U);
	grown = ca->fraction + div_u64((u64)left << 32, win);
	ca->fraction = grown;
	ca->cwnd += grown >> 32;
	cc_set_cwnd(tp, ca->cwnd + (ca->dwnd >> 8), 2);
out:
	if (over)
		ctcp_next_round(sk);
	trace_cc_hook(sk, CC_AVOID, acked, limited);
}

static u32 ctcp_ssthresh(struct sock *sk)
{
	struct ctcp *ca = inet_csk_ca(sk);
	u32 win = min(tcp_snd_cwnd(tcp_sk(sk)), CTCP_WIN_MAX);
	u64 kept = div_u64(((u64)win << 8) * (1000 - READ_ONCE(beta)), 1000);
	u64 half;
	u32 ssthresh;

	ctcp_follow(ca, win);
	half = (u64)ca->cwnd << 7;
	ca->dwnd = kept > half ? kept - half : 0;
	ca->cwnd = max_t(u32, half >> 8, 2);
	ca->fraction = 0;
	ssthresh = max(ca->cwnd + (ca->dwnd >> 8), 2U);
	ca->reduced = 1;
	trace_cc_hook(sk, CC_LOSS, ssthresh, -1);
	return ssthresh;
}

static void ctcp_set_state(struct sock *sk, u8 new_state)
{
	struct ctcp *ca = inet_csk_ca(sk);
	u8 old_state = inet_csk(sk)->icsk_ca_state;

	if (cc_timed_out(sk, new_state, ca->reduced)) {
		ca->dwnd = 0;
		ca->cwnd = tcp_snd_cwnd(tcp_sk(sk));
	}
	if (cc_loss_over(new_state))
		ca->reduced = 0;
	if (new_state == TCP_CA_Loss ||
	    (new_state == TCP_CA_Open &&
	     (old_state == TCP_CA_CWR || old_state == TCP_CA_Recovery)))
		ctcp_next_round(sk);
	trace_cc_hook(sk, CC_STATE, new_state, -1);
}

/* All of the restored window is Reno's: its parts are not kept. */
static u32 ctcp_undo_cwnd(struct sock *sk)
{
	struct ctcp *ca = inet_csk_ca(sk);
	u32 cwnd = tcp_reno_undo_cwnd(sk);

	ca->cwnd = cwnd;
	ca->dwnd = 0;
	trace_cc_hook(sk, CC_UNDO, cwnd, -1);
	return cwnd;
}

static struct tcp_congestion_ops tcp_ctcp __read_mostly = {
	.init		= ctcp_init,
	.release	= cc_send_gathered,
	.pkts_acked	= ctcp_pkts_acked,
	.cong_avoid	= ctcp_cong_avoid,
	.ssthresh	= ctcp_ssthresh,
	.set_state	= ctcp_set_state,
	.undo_cwnd	= ctcp_undo_cwnd,
	.min_tso_segs	= cc_single_tso_segs,
	.owner		= THIS_MODULE,
	.name		= "ctcp",
};

static int __init ctcp_register(void)
{
	BUILD_BUG_ON(sizeof(struct ctcp) > ICSK_CA_PRIV_SIZE);
	return tcp_register_congestion_control(&tcp_ctcp);
}

static void __exit ctcp_unregister(void)
{
	tcp_unregister_congestion_control(&tcp_ctcp);
}

module_init(ctcp_register);
module_exit(ctcp_unregister);

MODULE_DESCRIPTION("Compound TCP (as stated in Ho 2008)");
MODULE_LICENSE("GPL");
