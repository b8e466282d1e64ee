// SPDX-License-Identifier: GPL-2.0-only
/*
 * LISS: slow start limited by the windows of the connections to the same prefix
 *
 * A new connection's ssthresh is the fair share of what its neighbours' windows
 * sum up to; without steady neighbours it is the ordinary one.
 *
 * Yu 2009 (dissertation, University of Florida), chapter 2:
 *   ssthresh = (S + L w_o) / (L + S / w_o + 1)
 * with L connections in congestion avoidance, S the sum of the windows of those
 * in slow start and w_o the window of the oldest one in congestion avoidance.
 *
 * Differences from the paper
 *  - A group is a destination prefix in a network namespace (prefix4, prefix6).
 *  - "Active" is a connection with at least half of its window under way, in
 *    bytes: neither an idle one nor one of small messages (iperf3's control
 *    connection would make 13.3 of a fair 10.0) is a neighbour.  One that paces
 *    its first window is none in the first half of it.
 *  - The estimate is cut to whole packets, at least 2; windows beyond 65535
 *    packets count as so many.
 *  - A connection's window is what its last ACK left.
 *  - Slow start, congestion avoidance and losses are otherwise the kernel's
 *    Reno's; classic_retransmits = 1 makes them those of ns-2's (cc_recovery.h).
 *
 * Cost: a loss is 2.6 times CUBIC's, for it notes the connection's state.
 */
#include "cc_group.h"

#define TRACE_SYSTEM tcp_liss
#define CREATE_TRACE_POINTS
#include "cc_trace.h"
#include "cc_recovery.h"
#include "cc_reno.h"

struct liss {
	struct cc_group_conn conn;
};

static void liss_init(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct liss *ca = inet_csk_ca(sk);
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
	if (fair && cc_is_new(tp))
		tp->snd_ssthresh = fair;
	trace_cc_hook(sk, CC_INIT, fair, -1);
}

static void liss_release(struct sock *sk)
{
	struct liss *ca = inet_csk_ca(sk);

	cc_group_leave(&ca->conn);
	cc_recovery_end(sk);
}

static void liss_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct liss *ca = inet_csk_ca(sk);
	bool limited = tcp_is_cwnd_limited(sk);

	tcp_reno_cong_avoid(sk, ack, cc_recovery_counts(sk, acked));
	cc_group_publish(&ca->conn, tp);
	trace_cc_hook(sk, CC_AVOID, acked, limited);
}

static struct tcp_congestion_ops tcp_liss __read_mostly = {
	.init		= liss_init,
	.release	= liss_release,
	.in_ack_event	= cc_recovery_in_ack_event,
	.pkts_acked	= cc_reno_pkts_acked,
	.cong_avoid	= liss_cong_avoid,
	.ssthresh	= cc_reno_ssthresh,
	.set_state	= cc_recovery_set_state,
	.cwnd_event	= cc_recovery_cwnd_event,
	.undo_cwnd	= cc_reno_undo_cwnd,
	.owner		= THIS_MODULE,
	.name		= "liss",
};

static int __init liss_register(void)
{
	BUILD_BUG_ON(sizeof(struct liss) > CC_RECOVERY_ROOM);
	return tcp_register_congestion_control(&tcp_liss);
}

static void __exit liss_unregister(void)
{
	tcp_unregister_congestion_control(&tcp_liss);
	cc_groups_exit();
}

module_init(liss_register);
module_exit(liss_unregister);

MODULE_DESCRIPTION("LISS slow start (Yu 2009)");
MODULE_LICENSE("GPL");
