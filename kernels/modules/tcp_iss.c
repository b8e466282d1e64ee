// SPDX-License-Identifier: GPL-2.0-only
/*
 * ISS: slow start limited by the mean window of the connections to the same prefix
 *
 * As LISS, but the window that stands for a steady neighbour is the oldest
 * connection's average over time instead of what it is at one moment.
 *
 * Yu 2009 (dissertation, University of Florida), chapter 2:
 *   ssthresh = (S + L w_o) / (L + S / w_o + 1), w_o = awnd
 *   awnd = (1 - a) awnd + a cwnd per ACK, a = 0.002
 * of the oldest connection in congestion avoidance, with L connections in
 * congestion avoidance and S the sum of the windows of those in slow start.
 *
 * Differences from the paper
 *  - awnd is ns-2's variable of that name, as the thesis has it: each connection
 *    has one, moves it with each ACK of new data by the window before that ACK,
 *    in slow start and recovery as well, and begins with half of its first window.
 *    So a neighbour of few ACKs has a low one: 63 % of its window after 500 ACKs.
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
 * Readings
 *  - The mean's memory of 500 ACKs is what tells ISS from LISS:
 *    with five steady connections on 20 Mbit/s and 100 ms, the oldest at 73 packets
 *    after 4113 ACKs, a newcomer's ssthresh is 54 packets with a = 0.002, 59 with 0.02,
 *    60 with 0.2 and with LISS; 5/6 of 73 is 60.8.
 *
 * Cost: a loss is 1.9 times CUBIC's, for it notes the connection's state.
 */
#include "cc_group.h"

#define TRACE_SYSTEM tcp_iss
#define CREATE_TRACE_POINTS
#include "cc_trace.h"
#include "cc_recovery.h"
#include "cc_reno.h"

static unsigned int alpha_ppm __read_mostly = 2000;
CC_PARAM_RANGE(alpha_ppm_ops, 1, 1000000);
module_param_cb(alpha_ppm, &alpha_ppm_ops, &alpha_ppm, 0644);
MODULE_PARM_DESC(alpha_ppm, "weight of an ACK's window in the mean, 1/1000000, 1-1000000 (2000)");

struct iss {
	struct cc_group_conn conn;
};

/* awnd += a (cwnd - awnd), 16.16; the product is below 2^(32 + 20) */
static void iss_average(struct iss *ca, const struct tcp_sock *tp)
{
	u32 cwnd = min_t(u32, tcp_snd_cwnd(tp), CC_GROUP_CWND_MAX);
	s64 distance = ((s64)cwnd << CC_GROUP_SHIFT) - ca->conn.awnd;

	WRITE_ONCE(ca->conn.awnd, ca->conn.awnd +
		   div_s64(distance * READ_ONCE(alpha_ppm), 1000000));
}

static void iss_init(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct iss *ca = inet_csk_ca(sk);
	struct cc_group *group;
	u32 fair = 0;

	memset(ca, 0, sizeof(*ca));
	cc_recovery_begin(sk);
	spin_lock_bh(&cc_groups_lock);
	group = cc_group_get(sk);
	if (group) {
		struct cc_group_conn *oldest = cc_group_oldest(group);

		if (oldest)
			fair = cc_group_fair(group, READ_ONCE(oldest->awnd));
		cc_group_join(group, &ca->conn, sk);
		ca->conn.awnd = cc_group_window(&ca->conn) / 2;
	}
	spin_unlock_bh(&cc_groups_lock);
	if (fair && cc_is_new(tp))
		tp->snd_ssthresh = fair;
	trace_cc_hook(sk, CC_INIT, fair, -1);
}

static void iss_release(struct sock *sk)
{
	struct iss *ca = inet_csk_ca(sk);

	cc_group_leave(&ca->conn);
	cc_recovery_end(sk);
}

static void iss_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	if (sample->pkts_acked)
		iss_average(inet_csk_ca(sk), tcp_sk(sk));
	trace_cc_hook(sk, CC_SAMPLE, sample->pkts_acked, sample->rtt_us);
}

static void iss_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct iss *ca = inet_csk_ca(sk);
	bool limited = tcp_is_cwnd_limited(sk);

	tcp_reno_cong_avoid(sk, ack, cc_recovery_counts(sk, acked));
	cc_group_publish(&ca->conn, tp);
	trace_cc_hook(sk, CC_AVOID, acked, limited);
}

static struct tcp_congestion_ops tcp_iss __read_mostly = {
	.init		= iss_init,
	.release	= iss_release,
	.in_ack_event	= cc_recovery_in_ack_event,
	.pkts_acked	= iss_pkts_acked,
	.cong_avoid	= iss_cong_avoid,
	.ssthresh	= cc_reno_ssthresh,
	.set_state	= cc_recovery_set_state,
	.cwnd_event	= cc_recovery_cwnd_event,
	.undo_cwnd	= cc_reno_undo_cwnd,
	.owner		= THIS_MODULE,
	.name		= "iss",
};

static int __init iss_register(void)
{
	BUILD_BUG_ON(sizeof(struct iss) > CC_RECOVERY_ROOM);
	return tcp_register_congestion_control(&tcp_iss);
}

static void __exit iss_unregister(void)
{
	tcp_unregister_congestion_control(&tcp_iss);
	cc_groups_exit();
}

module_init(iss_register);
module_exit(iss_unregister);

MODULE_DESCRIPTION("ISS slow start (Yu 2009)");
MODULE_LICENSE("GPL");
