// SPDX-License-Identifier: GPL-2.0-only
/*
 * Classic Reno
 *
 * Reno as it was before NewReno and SACK: one loss in a window halves it, two
 * quarter it, and from the third on the window begins again with one packet after
 * a timeout.
 *
 * RFC 2581; Fall and Floyd, "Simulation-based comparisons of Tahoe, Reno and SACK
 * TCP", 1996.  It is the Reno of the simulators on which the figures of
 * Tokuda 2003 and, beside SACK, of Ho 2008 rest.
 *  - slow start: one packet per ACK; after it one per window of ACKs
 *  - three duplicate ACKs: ssthresh = cwnd = W / 2, fast retransmit; the first ACK
 *    of new data ends fast recovery
 *  - the third loss in a window waits for the timer: ssthresh = W / 8, cwnd = 1
 *    (Tokuda 2003 s4.2)
 *
 * Differences from the paper
 *  - fast_retransmits is the most in one window: 2 as in Tokuda's analysis.  1
 *    is the simulator's guard against multiple fast retransmits (ns-2's bugFix_,
 *    RFC 2582), by which the second loss waits for the timer already; 0 is none:
 *    then the third loss is repaired as well where enough new data was sent.
 *  - W is cwnd, as in the simulators, not what is in flight (RFC 2581).
 *  - How recovery is made classic on this stack, and what stays the kernel's:
 *    cc_classic.h.  The receiver goes on to send SACK blocks; they are not read.
 */
#include "cc_common.h"
#include "cc_classic.h"

#define TRACE_SYSTEM tcp_creno
#define CREATE_TRACE_POINTS
#include "cc_trace.h"
#include "cc_reno.h"

static unsigned int fast_retransmits __read_mostly = 2;
CC_PARAM_RANGE(fast_retransmits_ops, 0, 100);
module_param_cb(fast_retransmits, &fast_retransmits_ops, &fast_retransmits, 0644);
MODULE_PARM_DESC(fast_retransmits, "most fast retransmits in a window, 0-100, 0 for no limit (2)");

struct creno {
	struct cc_classic classic;
};

static void creno_init(struct sock *sk)
{
	struct creno *ca = inet_csk_ca(sk);

	cc_classic_begin(sk, &ca->classic);
	trace_cc_hook(sk, CC_INIT, 0, -1);
}

static void creno_release(struct sock *sk)
{
	struct creno *ca = inet_csk_ca(sk);

	cc_classic_end(sk, &ca->classic);
}

static void creno_in_ack_event(struct sock *sk, u32 flags)
{
	struct creno *ca = inet_csk_ca(sk);

	cc_classic_ack(sk, &ca->classic, READ_ONCE(fast_retransmits));
}

static void creno_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	bool limited = tcp_is_cwnd_limited(sk);

	if (limited && tcp_in_slow_start(tp))
		tcp_slow_start(tp, 1);
	else if (limited)
		tcp_cong_avoid_ai(tp, tcp_snd_cwnd(tp), 1);
	trace_cc_hook(sk, CC_AVOID, acked, limited);
}

static void creno_set_state(struct sock *sk, u8 new_state)
{
	struct creno *ca = inet_csk_ca(sk);

	cc_classic_state(sk, &ca->classic, new_state);
	trace_cc_hook(sk, CC_STATE, new_state, -1);
}

static void creno_cwnd_event(struct sock *sk, enum tcp_ca_event event)
{
	struct creno *ca = inet_csk_ca(sk);

	if (event != CA_EVENT_COMPLETE_CWR)
		return;
	cc_classic_event(sk, &ca->classic, event);
	trace_cc_hook(sk, CC_EVENT, event, -1);
}

static struct tcp_congestion_ops tcp_creno __read_mostly = {
	.init		= creno_init,
	.release	= creno_release,
	.in_ack_event	= creno_in_ack_event,
	.pkts_acked	= cc_reno_pkts_acked,
	.cong_avoid	= creno_cong_avoid,
	.ssthresh	= cc_reno_ssthresh,
	.set_state	= creno_set_state,
	.cwnd_event	= creno_cwnd_event,
	.undo_cwnd	= cc_reno_undo_cwnd,
	.owner		= THIS_MODULE,
	.name		= "creno",
};

static int __init creno_register(void)
{
	BUILD_BUG_ON(sizeof(struct creno) > ICSK_CA_PRIV_SIZE);
	return tcp_register_congestion_control(&tcp_creno);
}

static void __exit creno_unregister(void)
{
	tcp_unregister_congestion_control(&tcp_creno);
}

module_init(creno_register);
module_exit(creno_unregister);

MODULE_DESCRIPTION("Classic Reno: Reno before NewReno and SACK (RFC 2581)");
MODULE_LICENSE("GPL");
