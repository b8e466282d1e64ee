// SPDX-License-Identifier: GPL-2.0-only
/*
 * LBC: slow start with limited byte counting
 *
 * Reno, except that in slow start an ACK that covers two packets or more, as a
 * delayed ACK does, counts for two.
 *
 * RFC 3465 with L = 2, as Yu 2009 (dissertation, University of Florida) compares
 * with it: on until the first loss, then one packet per ACK.
 *
 * `perack` counts ACKs instead, however many packets they cover: one packet per
 * ACK in slow start and one per window of ACKs after (RFC 2581).  That is the
 * Reno of ns-2 and of Yu's figures ("DelAck"); the kernel's own Reno counts the
 * packets, so that a receiver that delays ACKs does not slow it down.
 *
 * Differences from the paper
 *  - LBC's congestion avoidance is the kernel's Reno: one packet per window of
 *    packets ACKed, not of ACKs; classic_retransmits = 1 makes that and the loss
 *    recovery those of ns-2's Reno, on which the thesis' LBC is built
 *    (cc_recovery.h).
 *  - L is a parameter; with 1 this is Reno, for whoever needs Reno with a first
 *    ssthresh (init_ssthresh, as in Yu's simulations; none by default).
 */
#include "cc_common.h"

#define TRACE_SYSTEM tcp_lbc
#define CREATE_TRACE_POINTS
#include "cc_trace.h"
#include "cc_recovery.h"
#include "cc_reno.h"

static unsigned int limit __read_mostly = 2;
CC_PARAM_RANGE(limit_ops, 1, 64);
module_param_cb(limit, &limit_ops, &limit, 0644);
MODULE_PARM_DESC(limit, "most packets that one ACK counts for before the first loss, 1-64 (2)");

static unsigned int init_ssthresh __read_mostly;
CC_PARAM_RANGE(init_ssthresh_ops, 0, 1000000);
module_param_cb(init_ssthresh, &init_ssthresh_ops, &init_ssthresh, 0644);
MODULE_PARM_DESC(init_ssthresh, "first ssthresh, packets, 2-1000000, 0-1 none, 0-1000000 (0)");

struct lbc {
	u8 lost:1;			/* a loss has happened */
	u8 per_ack:1;			/* perack: nothing but ACKs counts */
};

static void lbc_begin(struct sock *sk, bool per_ack)
{
	struct lbc *ca = inet_csk_ca(sk);
	u32 ssthresh = cc_route_metric(sk, RTAX_SSTHRESH, READ_ONCE(init_ssthresh));

	cc_recovery_begin(sk);
	ca->lost = 0;
	ca->per_ack = per_ack;
	if (ssthresh > 1 && cc_is_new(tcp_sk(sk)))
		tcp_sk(sk)->snd_ssthresh = ssthresh;
	trace_cc_hook(sk, CC_INIT, 0, -1);
}

static void lbc_init(struct sock *sk)
{
	lbc_begin(sk, false);
}

static void perack_init(struct sock *sk)
{
	lbc_begin(sk, true);
}

static void lbc_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct lbc *ca = inet_csk_ca(sk);
	bool limited = tcp_is_cwnd_limited(sk);

	if (limited && tcp_in_slow_start(tp))
		tcp_slow_start(tp, ca->lost || ca->per_ack ? 1 :
				   min(acked, READ_ONCE(limit)));
	else if (limited)
		tcp_cong_avoid_ai(tp, tcp_snd_cwnd(tp),
				  ca->per_ack ? 1 : cc_recovery_counts(sk, acked));
	trace_cc_hook(sk, CC_AVOID, acked, limited);
}

static u32 lbc_ssthresh(struct sock *sk)
{
	struct lbc *ca = inet_csk_ca(sk);
	u32 ssthresh = tcp_reno_ssthresh(sk);

	ca->lost = 1;
	trace_cc_hook(sk, CC_LOSS, ssthresh, -1);
	return ssthresh;
}

#define LBC_OPS(_name, _init) {					\
	.init		= _init,				\
	.release	= cc_recovery_end,			\
	.in_ack_event	= cc_recovery_in_ack_event,		\
	.pkts_acked	= cc_reno_pkts_acked,			\
	.cong_avoid	= lbc_cong_avoid,			\
	.ssthresh	= lbc_ssthresh,				\
	.set_state	= cc_recovery_set_state,		\
	.cwnd_event	= cc_recovery_cwnd_event,		\
	.undo_cwnd	= cc_reno_undo_cwnd,			\
	.owner		= THIS_MODULE,				\
	.name		= _name,				\
}

static struct tcp_congestion_ops tcp_lbc __read_mostly =
	LBC_OPS("lbc", lbc_init);
static struct tcp_congestion_ops tcp_perack __read_mostly =
	LBC_OPS("perack", perack_init);

static int __init lbc_register(void)
{
	int err;

	BUILD_BUG_ON(sizeof(struct lbc) > CC_RECOVERY_ROOM);
	err = tcp_register_congestion_control(&tcp_lbc);
	if (err)
		return err;
	err = tcp_register_congestion_control(&tcp_perack);
	if (err)
		tcp_unregister_congestion_control(&tcp_lbc);
	return err;
}

static void __exit lbc_unregister(void)
{
	tcp_unregister_congestion_control(&tcp_perack);
	tcp_unregister_congestion_control(&tcp_lbc);
}

module_init(lbc_register);
module_exit(lbc_unregister);

MODULE_DESCRIPTION("Slow start with limited byte counting (RFC 3465, as in Yu 2009)");
MODULE_LICENSE("GPL");
MODULE_ALIAS("tcp_perack");
