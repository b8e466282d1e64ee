// SPDX-License-Identifier: GPL-2.0-only
/*
 * JS: jump start at the fair window of the connections to the same prefix
 *
 * A new connection begins with the fair share of what its neighbours' windows
 * sum up to, paced over one round trip, instead of growing to it.
 *
 * Yu 2009 (dissertation, University of Florida), chapter 2:
 *   cwnd = ssthresh = (S + L w_o) / (L + S / w_o + 1), as LISS estimates it,
 * sent at cwnd / R.  Without steady neighbours it starts as Reno does.
 *
 * Differences from the paper
 *  - R is the handshake's RTT.
 *  - The pacing is the kernel's own; the first ACK sets its usual rate, 1.2 windows
 *    per RTT, and once the first
 *    window is delivered it is off again, unless the application asked for it
 *    (SO_MAX_PACING_RATE) or fq does it.
 *    The kernel sends the first ten packets of a connection unpaced.
 *  - A connection that the other side opened is paced at that usual rate from the
 *    beginning, since the kernel sets it after init().
 *  - A group is a destination prefix in a network namespace (prefix4, prefix6).
 *  - "Active" is a connection with at least half of its window under way, in
 *    bytes: neither an idle one nor one of small messages (iperf3's control
 *    connection would make 13.3 of a fair 10.0) is a neighbour.  One that paces
 *    its first window is none in the first half of it.
 *  - The estimate is cut to whole packets, at least 2; windows beyond 65535
 *    packets count as so many.
 *  - Slow start, congestion avoidance and losses are otherwise the kernel's
 *    Reno's; classic_retransmits = 1 makes them those of ns-2's (cc_recovery.h).
 *
 * Cost: a loss is 1.7 times CUBIC's, for it notes the connection's state.
 */
#include "cc_group.h"

#define TRACE_SYSTEM tcp_js
#define CREATE_TRACE_POINTS
#include "cc_trace.h"
#include "cc_recovery.h"
#include "cc_reno.h"

struct js {
	struct cc_group_conn conn;
	struct cc_pace pace;		/* of the first window */
};

static void js_init(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct js *ca = inet_csk_ca(sk);
	struct cc_group *group;
	u32 fair = 0;

	memset(ca, 0, sizeof(*ca));
	cc_recovery_begin(sk);
	spin_lock_bh(&cc_groups_lock);
	group = cc_group_get(sk);
	if (group) {
		struct cc_group_conn *oldest = cc_group_oldest(group);

		if (oldest)
			fair = cc_group_fair(group, cc_group_window(oldest));
		cc_group_join(group, &ca->conn, sk);
	}
	spin_unlock_bh(&cc_groups_lock);
	if (fair && cc_is_new(tp) && tp->srtt_us && !cc_syn_lost(tp)) {
		tp->snd_ssthresh = fair;
		cc_set_cwnd(tp, fair, 2);
		cc_group_publish(&ca->conn, tp);
		cc_pace_begin(sk, &ca->pace, fair);
	}
	trace_cc_hook(sk, CC_INIT, fair, -1);
}

static void js_release(struct sock *sk)
{
	struct js *ca = inet_csk_ca(sk);

	cc_pace_end(sk, &ca->pace);
	cc_group_leave(&ca->conn);
	cc_recovery_end(sk);
}

static void js_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct js *ca = inet_csk_ca(sk);
	bool limited = tcp_is_cwnd_limited(sk);

	cc_pace_acked(sk, &ca->pace);
	tcp_reno_cong_avoid(sk, ack, cc_recovery_counts(sk, acked));
	cc_group_publish(&ca->conn, tp);
	trace_cc_hook(sk, CC_AVOID, acked, limited);
}

static struct tcp_congestion_ops tcp_js __read_mostly = {
	.init		= js_init,
	.release	= js_release,
	.in_ack_event	= cc_recovery_in_ack_event,
	.pkts_acked	= cc_reno_pkts_acked,
	.cong_avoid	= js_cong_avoid,
	.ssthresh	= cc_reno_ssthresh,
	.set_state	= cc_recovery_set_state,
	.cwnd_event	= cc_recovery_cwnd_event,
	.undo_cwnd	= cc_reno_undo_cwnd,
	.owner		= THIS_MODULE,
	.name		= "js",
};

static int __init js_register(void)
{
	BUILD_BUG_ON(sizeof(struct js) > CC_RECOVERY_ROOM);
	return tcp_register_congestion_control(&tcp_js);
}

static void __exit js_unregister(void)
{
	tcp_unregister_congestion_control(&tcp_js);
	cc_groups_exit();
}

module_init(js_register);
module_exit(js_unregister);

MODULE_DESCRIPTION("JS jump start (Yu 2009)");
MODULE_LICENSE("GPL");
