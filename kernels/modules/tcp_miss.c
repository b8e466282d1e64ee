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
 *   cwnd = m (d_o - (now - last drop)) / R
 *   ssthresh as LISS estimates it, at least cwnd; the first cwnd packets are sent
 *   at cwnd / R.
 *
 * Differences from the paper
 *  - The copy has lost equations 2-5 to 2-9; the above follows its prose.  The
 *    time to the next drop is that of the oldest connection, whose window R and m
 *    are about.
 *  - A drop is a loss event (recovery or timeout).  Without two of the oldest
 *    connection and of the group, or if the drop is overdue, cwnd is the kernel's.
 *  - cwnd is at least the kernel's first window.
 *  - R is the handshake's RTT.
 *  - The pacing is the kernel's own; the first ACK sets its usual rate (twice the
 *    window per RTT), and once the first window is delivered it is off again.
 *    The kernel sends the first ten packets of a connection unpaced.
 *  - A connection that the other side opened is paced at that usual rate from the
 *    beginning, since the kernel sets it after init().
 *  - A group is a destination prefix in a network namespace (prefix4, prefix6).
 *  - Slow start, congestion avoidance and losses are otherwise Reno's.
 *
 * Cost: a loss is 2.9 times CUBIC's: it moves the means of the times between
 * drops, the group's under the group's lock.
 */
#include "cc_group.h"

#define TRACE_SYSTEM tcp_miss
#define CREATE_TRACE_POINTS
#include "cc_trace.h"
#include "cc_reno.h"

struct miss {
	struct cc_group_conn conn;
	struct cc_round first;		/* the paced first window */
	u8 paced;
};

/*
 * m (d_o - (now - last drop)) / R with m = d_o / d_s, 0 if the history does not
 * tell; times are below 2^31 us, so the product is below 2^62
 */
static u32 miss_first_window(const struct cc_group *group,
			     const struct cc_group_conn *oldest, u64 now_us,
			     u32 rtt_us)
{
	u64 since_us = now_us - oldest->drop_us, room;

	if (!group->drop_gap_us || !oldest->drop_gap_us || !rtt_us ||
	    since_us >= oldest->drop_gap_us)
		return 0;
	room = (oldest->drop_gap_us - since_us) * oldest->drop_gap_us;
	return min_t(u64, div64_u64(div_u64(room, group->drop_gap_us), rtt_us),
		     1U << 20);
}

static void miss_init(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct miss *ca = inet_csk_ca(sk);
	struct cc_group *group;
	u32 fair = 0;
	u32 first = 0;

	memset(ca, 0, sizeof(*ca));
	spin_lock_bh(&cc_groups_lock);
	group = cc_group_get(sk);
	if (group) {
		struct cc_group_conn *oldest = cc_group_oldest(group);

		if (oldest) {
			fair = cc_group_fair(group, READ_ONCE(oldest->cwnd));
			first = miss_first_window(group, oldest,
						  tp->tcp_mstamp,
						  tp->srtt_us >> 3);
		}
		cc_group_join(group, &ca->conn, tp);
	}
	spin_unlock_bh(&cc_groups_lock);
	if (fair && cc_is_new(tp) && !cc_syn_lost(tp)) {
		first = max(first, tcp_snd_cwnd(tp));
		tp->snd_ssthresh = max(fair, first);
		if (first > tcp_snd_cwnd(tp)) {
			cc_set_cwnd(tp, first, 2);
			cc_group_publish(&ca->conn, tp);
			cc_send_singly(sk);
			cc_pace_begin(sk, first, tp->srtt_us >> 3);
			cc_round_begin(&ca->first, tp);
			ca->first.end += first - 1;
			ca->paced = 1;
		}
	}
	trace_cc_hook(sk, CC_INIT, fair, first);
}

static void miss_release(struct sock *sk)
{
	struct miss *ca = inet_csk_ca(sk);

	if (ca->paced)
		cc_pace_end(sk);
	cc_group_leave(&ca->conn);
}

static void miss_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct miss *ca = inet_csk_ca(sk);
	bool limited = tcp_is_cwnd_limited(sk);

	if (ca->paced && cc_round_over(&ca->first, tp)) {
		ca->paced = 0;
		cc_pace_end(sk);
	}
	tcp_reno_cong_avoid(sk, ack, acked);
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
		cc_group_drop(&ca->conn.drop_us, &ca->conn.drop_gap_us, now_us);
		cc_group_drop(&group->drop_us, &group->drop_gap_us, now_us);
		spin_unlock_bh(&cc_groups_lock);
	}

	trace_cc_hook(sk, CC_LOSS, ssthresh, -1);
	return ssthresh;
}

static struct tcp_congestion_ops tcp_miss __read_mostly = {
	.init		= miss_init,
	.release	= miss_release,
	.pkts_acked	= cc_reno_pkts_acked,
	.cong_avoid	= miss_cong_avoid,
	.ssthresh	= miss_ssthresh,
	.set_state	= cc_reno_set_state,
	.undo_cwnd	= cc_reno_undo_cwnd,
	.owner		= THIS_MODULE,
	.name		= "miss",
};

static int __init miss_register(void)
{
	BUILD_BUG_ON(sizeof(struct miss) > ICSK_CA_PRIV_SIZE);
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
