// SPDX-License-Identifier: GPL-2.0-only
/*
 * SSIPP: slow start with inverted packet pairs
 *
 * In slow start packets leave as inverted pairs (n + 1, n), so a receiver that
 * delays ACKs answers each of them at once.  The duplicate ACK that n + 1
 * provokes is expected: it raises cwnd by one and is not counted as a duplicate.
 * The window then grows as without delayed ACKs, and without the bursts of byte
 * counting.
 *
 * Yu 2009 (dissertation, University of Florida), chapter 3, algorithms 1 and 2:
 *  - the first packet goes alone;
 *  - inversion ends at ssthresh, at a real duplicate ACK or at a loss; a packet
 *    that is held back is sent in any case;
 *  - an ACK for n - 1 is expected once per pair, further ones are real.
 *
 * Differences from the paper
 *  - How: a stage between TCP and IP of the connection itself holds packet n
 *    until n + 1 comes (cc_output.h says why neither a qdisc nor a patch).  In-order
 *    delivery to the application is the receiving TCP's own.
 *  - A pair begins wherever two packets are ready, not only at odd numbers, since
 *    the kernel's windows leave either number over.
 *  - The window of growth by an expected duplicate ACK is used at once for a
 *    whole pair (the paper sends one packet); ACKs and bytes are the same.
 *  - A packet waits at most hold_us for the next one.
 *  - Duplicate ACKs that the kernel counts (SACK blocks, or Reno's count without
 *    SACK) include the expected one until the pair is complete, so without SACK
 *    two real ones behind it start a recovery.
 *  - Without SACK a duplicate ACK that a pair explains may bring another window
 *    (cc_invert.h); the kernel does not count such a one.
 *  - The kernel's own loss detection is kept from taking a pair's second packet
 *    for lost, and what it knows of reordering is without the pairs (cc_invert.h).
 *  - Once ended, inversion does not begin again in that connection.
 *  - Congestion avoidance and losses are the kernel's Reno's; classic_retransmits =
 *    1 makes them those of ns-2's (cc_recovery.h).
 *
 * Cost: a loss is 2.3 times CUBIC's, for it also ends what is sent in pairs or
 * trains and measured on them.
 */
#include "cc_invert.h"
#include "cc_output.h"
#include "cc_single.h"

#define TRACE_SYSTEM tcp_ssipp
#define CREATE_TRACE_POINTS
#include "cc_trace.h"
#include "cc_recovery.h"
#include "cc_reno.h"

static unsigned int hold_us __read_mostly = 1000;
CC_PARAM_RANGE(hold_us_ops, 1, 100000);
module_param_cb(hold_us, &hold_us_ops, &hold_us, 0644);
MODULE_PARM_DESC(hold_us, "longest wait of a pair's packet for the other one, us, 1-100000 (1000)");

static unsigned int init_ssthresh __read_mostly;
CC_PARAM_RANGE(init_ssthresh_ops, 0, 1000000);
module_param_cb(init_ssthresh, &init_ssthresh_ops, &init_ssthresh, 0644);
MODULE_PARM_DESC(init_ssthresh, "first ssthresh, packets, 2-1000000, 0-1 none, 0-1000000 (0)");

struct ssipp {
	struct cc_output_private private;
	u8 grown:1;			/* this ACK has raised cwnd already, */
	u8 one:1;			/* or counts for one packet */
	u8 begun:1;			/* the first packet has left */
};

static struct cc_invert *ssipp_pairs(const struct sock *sk)
{
	return (struct cc_invert *)cc_output(sk);
}

/* Algorithm 1: hold n if n + 1 follows at once, then send n + 1 before n. */
static void ssipp_place(struct sock *sk, struct sk_buff *skb)
{
	struct cc_invert *inv = ssipp_pairs(sk);
	struct ssipp *ca = inet_csk_ca(sk);

	if (inv->out.held) {
		struct cc_invert_pair *pair;

		pair = cc_invert_send(inv, skb, 0, 0, 0);
		trace_cc_hook(sk, CC_PAIR, pair->seq, 0);
		return;
	}
	if (ca->begun && tcp_in_slow_start(tcp_sk(sk)) &&
	    !cc_invert_full(inv) && cc_output_more(sk))
		cc_output_hold(&inv->out, skb, ktime_get_ns() +
			       READ_ONCE(hold_us) * NSEC_PER_USEC);
	else
		cc_output_send(&inv->out, skb);
	ca->begun = 1;
}

static void ssipp_init(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct ssipp *ca = inet_csk_ca(sk);
	u32 ssthresh = cc_route_metric(sk, RTAX_SSTHRESH, READ_ONCE(init_ssthresh));

	memset(ca, 0, sizeof(*ca));
	cc_recovery_begin(sk);
	if (cc_is_new(tp)) {
		if (ssthresh > 1)
			tp->snd_ssthresh = ssthresh;
		cc_output_start(sk, sizeof(struct cc_invert), ssipp_place);
	}
	trace_cc_hook(sk, CC_INIT, !!cc_output(sk), -1);
}

static void ssipp_release(struct sock *sk)
{
	cc_invert_stop(sk);
	cc_send_gathered(sk);
	cc_recovery_end(sk);
}

/* Algorithm 2: an expected duplicate ACK raises cwnd, another one ends it all. */
static void ssipp_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct ssipp *ca = inet_csk_ca(sk);
	struct cc_invert *inv = ssipp_pairs(sk);
	enum cc_invert_answer answer;
	struct cc_invert_pair *pair;

	ca->grown = 0;
	ca->one = 0;
	if (inv) {
		answer = cc_invert_ack(inv, tp, sample->pkts_acked, &pair);
		ca->one = cc_invert_counts_one(answer, pair);
		switch (answer) {
		case CC_INVERT_FIRST:
			if (tcp_in_slow_start(tp) && tcp_is_cwnd_limited(sk)) {
				tcp_slow_start(tp, 1);
				ca->grown = 1;
			}
			break;
		case CC_INVERT_DUPLICATE:
			cc_invert_stop(sk);
			break;
		default:
			if (!tcp_in_slow_start(tp) && cc_invert_none(inv))
				cc_invert_stop(sk);
		}
	}
	trace_cc_hook(sk, CC_SAMPLE, sample->pkts_acked, sample->rtt_us);
}

static void ssipp_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct ssipp *ca = inet_csk_ca(sk);
	bool limited = tcp_is_cwnd_limited(sk) && !ca->grown;

	if (limited)
		tcp_reno_cong_avoid(sk, ack, ca->one && tcp_in_slow_start(tp) ?
				    1 : cc_recovery_counts(sk, acked));
	trace_cc_hook(sk, CC_AVOID, acked, limited);
}

static u32 ssipp_ssthresh(struct sock *sk)
{
	u32 ssthresh = tcp_reno_ssthresh(sk);

	cc_invert_stop(sk);
	trace_cc_hook(sk, CC_LOSS, ssthresh, -1);
	return ssthresh;
}

static struct tcp_congestion_ops tcp_ssipp __read_mostly = {
	.init		= ssipp_init,
	.release	= ssipp_release,
	.in_ack_event	= cc_recovery_in_ack_event,
	.pkts_acked	= ssipp_pkts_acked,
	.cong_avoid	= ssipp_cong_avoid,
	.ssthresh	= ssipp_ssthresh,
	.set_state	= cc_recovery_set_state,
	.cwnd_event	= cc_recovery_cwnd_event,
	.undo_cwnd	= cc_reno_undo_cwnd,
	.min_tso_segs	= cc_single_tso_segs,
	.owner		= THIS_MODULE,
	.name		= "ssipp",
};

static int __init ssipp_register(void)
{
	BUILD_BUG_ON(sizeof(struct ssipp) > CC_RECOVERY_ROOM);
	return tcp_register_congestion_control(&tcp_ssipp);
}

static void __exit ssipp_unregister(void)
{
	tcp_unregister_congestion_control(&tcp_ssipp);
	cc_output_exit();
}

module_init(ssipp_register);
module_exit(ssipp_unregister);

MODULE_DESCRIPTION("SSIPP slow start (Yu 2009)");
MODULE_LICENSE("GPL");
