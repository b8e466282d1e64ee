// SPDX-License-Identifier: GPL-2.0-only
/*
 * MISS: LISS with a first window from the history of losses
 *
 * If the connections to a prefix lose a packet every so often, then until the
 * next loss is due there is room: a new connection takes what they would have
 * grown by in that time as its first window, paced over one round trip.
 *
 * Yu 2009 (dissertation, University of Florida), chapter 2:
 *   d_s = EWMA of the times between drops of the group's connections, d_o = the
 *   same for its oldest connection, both with weight 1/8; m = d_o / d_s is about
 *   the number of connections that share the bottleneck, each growing by 1 / R;
 *   cwnd = m (d_s - (now - last drop)) / R
 *   ssthresh as LISS estimates it, at least cwnd; the first cwnd packets are sent
 *   at cwnd / R.
 *
 * Differences from the paper
 *  - The copy has lost equations 2-5 to 2-9; the above follows its prose, which
 *    calls cwnd "the amount of packets we may add ... without causing a packet
 *    drop": the next drop of the path is due d_s after the last one of any
 *    connection.  room 1 is the other reading, d_o after the last one of the oldest
 *    connection, which with m connections that drop in turn spans m - 1 drops of
 *    the others.  Two that drop every 4 s each, 1 s after the last drop and with
 *    R = 0.1 s: 2 (2 - 1) / 0.1 = 20 packets, or 60.
 *  - "To be conservative when cwnd > ssthresh, we set the ssthresh value to cwnd":
 *    that leaves cwnd as it is, though ssthresh is the connection's share.  held 1
 *    is what would be conservative: cwnd is set to ssthresh.
 *  - A drop is a loss event (recovery or timeout).  Without two of the oldest
 *    connection and of the group, or if the drop is overdue, cwnd is the kernel's.
 *  - cwnd is at least the kernel's first window.
 *  - R is the handshake's RTT.
 *  - The pacing is the kernel's own; the first ACK sets its usual rate, 1.2 windows
 *    per RTT (2 only where cwnd is below half of ssthresh), and once the first
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
 * Cost: a loss is 2.9 times CUBIC's: it moves the means of the times between
 * drops, the group's under the group's lock.
 */
#include "cc_group.h"

#define TRACE_SYSTEM tcp_miss
#define CREATE_TRACE_POINTS
#include "cc_trace.h"
#include "cc_recovery.h"
#include "cc_reno.h"

enum {
	MISS_ROOM_PATH,
	MISS_ROOM_OLDEST,
};

static unsigned int room __read_mostly = MISS_ROOM_PATH;
CC_PARAM_RANGE(room_ops, 0, 1);
module_param_cb(room, &room_ops, &room, 0644);
MODULE_PARM_DESC(room, "first window until the next drop of any connection (0) or of the oldest one (1), 0-1 (0)");

static unsigned int held __read_mostly;
CC_PARAM_RANGE(held_ops, 0, 1);
module_param_cb(held, &held_ops, &held, 0644);
MODULE_PARM_DESC(held, "where the first window is above LISS' ssthresh, ssthresh follows it (0) or it is held to that (1), 0-1 (0)");

struct miss {
	struct cc_group_conn conn;
	struct cc_pace pace;		/* of the first window */
};

static void miss_init(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct miss *ca = inet_csk_ca(sk);
	struct cc_group *group;
	u32 fair = 0;
	u32 first = 0;

	memset(ca, 0, sizeof(*ca));
	cc_recovery_begin(sk);
	spin_lock_bh(&cc_groups_lock);
	group = cc_group_get(sk);
	if (group) {
		struct cc_group_conn *oldest = cc_group_oldest(group);

		if (oldest) {
			bool own = READ_ONCE(room) == MISS_ROOM_OLDEST;

			fair = cc_group_fair(group, cc_group_window(oldest));
			first = cc_drops_room(&group->drops, &oldest->drops,
					      own ? &oldest->drops :
						    &group->drops,
					      tp->tcp_mstamp,
					      tp->srtt_us >> 3);
		}
		cc_group_join(group, &ca->conn, sk);
	}
	spin_unlock_bh(&cc_groups_lock);
	if (fair && cc_is_new(tp) && !cc_syn_lost(tp)) {
		if (READ_ONCE(held))
			first = min(first, fair);
		first = max(first, tcp_snd_cwnd(tp));
		tp->snd_ssthresh = max(fair, first);
		if (first > tcp_snd_cwnd(tp)) {
			cc_set_cwnd(tp, first, 2);
			cc_group_publish(&ca->conn, tp);
			cc_pace_begin(sk, &ca->pace, first);
		}
	}
	trace_cc_hook(sk, CC_INIT, fair, first);
}

static void miss_release(struct sock *sk)
{
	struct miss *ca = inet_csk_ca(sk);

	cc_pace_end(sk, &ca->pace);
	cc_group_leave(&ca->conn);
	cc_recovery_end(sk);
}

static void miss_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct miss *ca = inet_csk_ca(sk);
	bool limited = tcp_is_cwnd_limited(sk);

	cc_pace_acked(sk, &ca->pace);
	tcp_reno_cong_avoid(sk, ack, cc_recovery_counts(sk, acked));
	cc_group_publish(&ca->conn, tp);
	trace_cc_hook(sk, CC_AVOID, acked, limited);
}

static u32 miss_ssthresh(struct sock *sk)
{
	struct miss *ca = inet_csk_ca(sk);
	struct cc_group *group = ca->conn.group;
	u64 now_us = tcp_sk(sk)->tcp_mstamp;
	u32 ssthresh = tcp_reno_ssthresh(sk);

	if (group) {
		spin_lock_bh(&cc_groups_lock);
		cc_drops_add(&ca->conn.drops, now_us);
		cc_drops_add(&group->drops, now_us);
		spin_unlock_bh(&cc_groups_lock);
	}

	trace_cc_hook(sk, CC_LOSS, ssthresh, -1);
	return ssthresh;
}

static struct tcp_congestion_ops tcp_miss __read_mostly = {
	.init		= miss_init,
	.release	= miss_release,
	.in_ack_event	= cc_recovery_in_ack_event,
	.pkts_acked	= cc_reno_pkts_acked,
	.cong_avoid	= miss_cong_avoid,
	.ssthresh	= miss_ssthresh,
	.set_state	= cc_recovery_set_state,
	.cwnd_event	= cc_recovery_cwnd_event,
	.undo_cwnd	= cc_reno_undo_cwnd,
	.owner		= THIS_MODULE,
	.name		= "miss",
};

static int __init miss_register(void)
{
	BUILD_BUG_ON(sizeof(struct miss) > CC_RECOVERY_ROOM);
	return tcp_register_congestion_control(&tcp_miss);
}

static void __exit miss_unregister(void)
{
	tcp_unregister_congestion_control(&tcp_miss);
	cc_groups_exit();
}

module_init(miss_register);
module_exit(miss_unregister);

MODULE_DESCRIPTION("MISS slow start (Yu 2009)");
MODULE_LICENSE("GPL");
