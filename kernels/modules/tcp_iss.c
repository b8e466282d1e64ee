// SPDX-License-Identifier: GPL-2.0-only
/*
 * ISS: slow start limited by the mean window of the connections to the same prefix
 *
 * As LISS, but the window that stands for a steady neighbour is an average over
 * time instead of that of the oldest connection at one moment.
 *
 * Yu 2009 (dissertation, University of Florida), chapter 2:
 *   ssthresh = (S + L w_o) / (L + S / w_o + 1), w_o = awnd
 *   awnd = (1 - a) awnd + a cwnd per ACK, a = 0.002
 * with L connections in congestion avoidance and S the sum of the windows of
 * those in slow start.
 *
 * Differences from the paper
 *  - awnd averages over the ACKs of all of the group's connections that are in
 *    congestion avoidance; its first value is the first such window.
 *  - A group is a destination prefix in a network namespace (prefix4, prefix6).
 *  - Slow start, congestion avoidance and losses are otherwise Reno's.
 *
 * Cost: an ACK is 1.3 to 1.6 times CUBIC's, since each moves the group's mean
 * under the group's lock; a loss (1.9 times) notes the connection's state.
 */
#include "cc_group.h"

#define TRACE_SYSTEM tcp_iss
#define CREATE_TRACE_POINTS
#include "cc_trace.h"
#include "cc_reno.h"

static unsigned int alpha_ppm __read_mostly = 2000;
CC_PARAM_RANGE(alpha_ppm_ops, 1, 1000000);
module_param_cb(alpha_ppm, &alpha_ppm_ops, &alpha_ppm, 0644);
MODULE_PARM_DESC(alpha_ppm, "weight of an ACK's window in the mean, 1/1000000, 1-1000000 (2000)");

struct iss {
	struct cc_group_conn conn;
};

/* awnd += a (cwnd - awnd), 48.16: below 2^(20 + 16 + 20) */
static void iss_average(struct cc_group *group, u32 cwnd)
{
	s64 window = (s64)min(cwnd, 1U << 20) << 16;

	spin_lock_bh(&cc_groups_lock);
	if (group->awnd)
		group->awnd += div_s64((window - (s64)group->awnd) *
				       READ_ONCE(alpha_ppm), 1000000);
	else
		group->awnd = window;
	spin_unlock_bh(&cc_groups_lock);
}

static void iss_init(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct iss *ca = inet_csk_ca(sk);
	struct cc_group *group;
	u32 fair = 0;

	memset(ca, 0, sizeof(*ca));
	spin_lock_bh(&cc_groups_lock);
	group = cc_group_get(sk);
	if (group) {
		fair = cc_group_fair(group, group->awnd >> 16);
		cc_group_join(group, &ca->conn, tp);
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
}

static void iss_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct iss *ca = inet_csk_ca(sk);
	bool limited = tcp_is_cwnd_limited(sk);

	tcp_reno_cong_avoid(sk, ack, acked);
	cc_group_publish(&ca->conn, tp);
	if (ca->conn.group && ca->conn.steady)
		iss_average(ca->conn.group, ca->conn.cwnd);
	trace_cc_hook(sk, CC_AVOID, acked, limited);
}

static struct tcp_congestion_ops tcp_iss __read_mostly = {
	.init		= iss_init,
	.release	= iss_release,
	.pkts_acked	= cc_reno_pkts_acked,
	.cong_avoid	= iss_cong_avoid,
	.ssthresh	= cc_reno_ssthresh,
	.set_state	= cc_reno_set_state,
	.undo_cwnd	= cc_reno_undo_cwnd,
	.owner		= THIS_MODULE,
	.name		= "iss",
};

static int __init iss_register(void)
{
	BUILD_BUG_ON(sizeof(struct iss) > ICSK_CA_PRIV_SIZE);
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
