// SPDX-License-Identifier: GPL-2.0-only
/*
 * Groups of connections, see cc_group.h
 *
 * A group is one prefix in one network namespace, told apart by the namespace's
 * cookie, which is never used again.  A connection is in its group from init() to
 * release(), which always comes before the socket's memory goes.  A group without
 * connections keeps its history for group_age_s; then it is freed by whoever next
 * makes one, or begins anew with its own next connection.
 *
 * One lock and walks over lists: enough for a testbed.  A new connection walks
 * over those of its group, a new group over the whole table; beyond
 * CC_GROUPS_MAX prefixes a connection has no group and starts as Reno does.
 */
#include <linux/hashtable.h>
#include <linux/jhash.h>
#include <linux/slab.h>
#include <net/ipv6.h>
#include "cc_group.h"
#include "cc_single.h"

#define CC_GROUP_BITS	8
#define CC_GROUPS_MAX	4096

static unsigned int prefix4 __read_mostly = 24;
CC_PARAM_RANGE(prefix4_ops, 0, 32);
module_param_cb(prefix4, &prefix4_ops, &prefix4, 0644);
MODULE_PARM_DESC(prefix4, "IPv4 destinations with this prefix length share state, bits, 0-32 (24)");

static unsigned int prefix6 __read_mostly = 64;
CC_PARAM_RANGE(prefix6_ops, 0, 128);
module_param_cb(prefix6, &prefix6_ops, &prefix6, 0644);
MODULE_PARM_DESC(prefix6, "IPv6 destinations with this prefix length share state, bits, 0-128 (64)");

static unsigned int group_age_s __read_mostly = 600;
CC_PARAM_RANGE(group_age_ops, 1, 86400);
module_param_cb(group_age_s, &group_age_ops, &group_age_s, 0644);
MODULE_PARM_DESC(group_age_s, "seconds that a group without connections is remembered, 1-86400 (600)");

static DEFINE_HASHTABLE(cc_groups, CC_GROUP_BITS);
DEFINE_SPINLOCK(cc_groups_lock);
static unsigned int cc_groups_count;

static void cc_group_prefix(const struct sock *sk, struct in6_addr *addr)
{
	struct in6_addr whole;

#if IS_ENABLED(CONFIG_IPV6)
	if (sk->sk_family == AF_INET6 && !ipv6_addr_v4mapped(&sk->sk_v6_daddr)) {
		ipv6_addr_prefix(addr, &sk->sk_v6_daddr, READ_ONCE(prefix6));
		return;
	}
#endif
	ipv6_addr_set_v4mapped(sk->sk_daddr, &whole);
	ipv6_addr_prefix(addr, &whole, 96 + READ_ONCE(prefix4));
}

static bool cc_group_aged(const struct cc_group *group)
{
	return list_empty(&group->conns) &&
	       time_after_eq(jiffies, group->empty_since +
			     READ_ONCE(group_age_s) * HZ);
}

/* Free the groups that have been empty for too long, or all empty ones. */
static void cc_groups_prune(bool all)
{
	struct hlist_node *next;
	struct cc_group *group;
	unsigned int i;

	hash_for_each_safe(cc_groups, i, next, group, node) {
		if (!list_empty(&group->conns) ||
		    (!all && !cc_group_aged(group)))
			continue;
		hash_del(&group->node);
		cc_groups_count--;
		kfree(group);
	}
}

/* The group of a socket, made if need be; NULL if there is no memory for it. */
struct cc_group *cc_group_get(const struct sock *sk)
{
	u64 cookie = sock_net(sk)->net_cookie;
	struct in6_addr prefix;
	struct cc_group *group;
	u32 key;

	cc_group_prefix(sk, &prefix);
	key = jhash(&prefix, sizeof(prefix), (u32)cookie);
	hash_for_each_possible(cc_groups, group, node, key) {
		if (group->cookie != cookie ||
		    !ipv6_addr_equal(&group->prefix, &prefix))
			continue;
		if (cc_group_aged(group))
			group->drops = (struct cc_drops){};
		return group;
	}
	cc_groups_prune(false);
	if (cc_groups_count >= CC_GROUPS_MAX)
		return NULL;
	group = kzalloc(sizeof(*group), GFP_ATOMIC);
	if (!group)
		return NULL;
	INIT_LIST_HEAD(&group->conns);
	group->cookie = cookie;
	group->prefix = prefix;
	hash_add(cc_groups, &group->node, key);
	cc_groups_count++;
	return group;
}

/*
 * Has this connection data for its window?  The thesis counts "active" ones: at
 * least half of its window is under way, in bytes, so that one which is idle, or
 * exchanges small messages as the control connections of iperf3 do, is none.
 * Another connection's values are read as they are at the moment.
 */
static bool cc_group_active(const struct cc_group_conn *conn)
{
	const struct tcp_sock *tp = tcp_sk(conn->sk);
	u32 una = READ_ONCE(tp->snd_una);
	u64 window = (u64)READ_ONCE(conn->cwnd) * READ_ONCE(tp->mss_cache);

	return 2ULL * (READ_ONCE(tp->snd_nxt) - una) >= window;
}

/* Under the lock: the oldest one in congestion avoidance, or NULL */
struct cc_group_conn *cc_group_oldest(struct cc_group *group)
{
	struct cc_group_conn *conn;

	list_for_each_entry(conn, &group->conns, node)
		if (READ_ONCE(conn->steady) && cc_group_active(conn))
			return conn;
	return NULL;
}

/*
 * Under the lock: a new connection's fair window, Yu eq 2-3,
 *   (S + L w_o) / (L + S / w_o + 1) = w_o X / (X + w_o), X = S + L w_o,
 * with L active connections in congestion avoidance and S the sum of the windows
 * of those in slow start, in whole packets.  0 without L.  w_o is in 16.16; with
 * 2^16 connections X is below 2^48, and the product needs 128 bits.
 */
u32 cc_group_fair(struct cc_group *group, u32 w_o)
{
	struct cc_group_conn *conn;
	u64 sum = 0, steady = 0, x;

	list_for_each_entry(conn, &group->conns, node) {
		if (!cc_group_active(conn))
			continue;
		if (READ_ONCE(conn->steady))
			steady++;
		else
			sum += READ_ONCE(conn->cwnd);
	}
	if (!steady || !w_o)
		return 0;
	x = (sum << CC_GROUP_SHIFT) + steady * w_o;
	return max_t(u64, mul_u64_u64_div_u64(w_o, x, x + w_o) >> CC_GROUP_SHIFT, 2);
}

/* Under the lock: enter a group as its youngest connection */
void cc_group_join(struct cc_group *group, struct cc_group_conn *conn,
		   struct sock *sk)
{
	conn->group = group;
	conn->sk = sk;
	cc_group_publish(conn, tcp_sk(sk));
	list_add_tail(&conn->node, &group->conns);
}

void cc_group_leave(struct cc_group_conn *conn)
{
	struct cc_group *group = conn->group;

	if (!group)
		return;
	spin_lock_bh(&cc_groups_lock);
	list_del(&conn->node);
	conn->group = NULL;
	group->empty_since = jiffies;
	spin_unlock_bh(&cc_groups_lock);
}

void cc_groups_exit(void)
{
	spin_lock_bh(&cc_groups_lock);
	cc_groups_prune(true);
	spin_unlock_bh(&cc_groups_lock);
}

/*
 * Begin to pace at cwnd packets per RTT, one by one; the kernel's own pacing does
 * the work until cwnd packets are delivered.
 */
void cc_pace_begin(struct sock *sk, struct cc_pace *pace, u32 cwnd)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u64 rate = (u64)cwnd * tp->mss_cache * USEC_PER_SEC;

	cc_send_singly(sk);
	pace->on = 1;
	pace->ours = cmpxchg(&sk->sk_pacing_status, SK_PACING_NONE,
			     SK_PACING_NEEDED) == SK_PACING_NONE;
	cc_round_begin(&pace->round, tp);
	pace->round.end += cwnd - 1;
	WRITE_ONCE(sk->sk_pacing_rate,
		   min_t(u64, div_u64(rate, max(tp->srtt_us >> 3, 1U)),
			 READ_ONCE(sk->sk_max_pacing_rate)));
}

/*
 * Back to what was.  Pacing stays where somebody else wants it: fq does its own,
 * and SO_MAX_PACING_RATE asks the kernel for it, before or meanwhile.
 */
void cc_pace_end(struct sock *sk, struct cc_pace *pace)
{
	if (!pace->on)
		return;
	cc_send_gathered(sk);
	if (pace->ours && READ_ONCE(sk->sk_max_pacing_rate) == ~0UL)
		cmpxchg(&sk->sk_pacing_status, SK_PACING_NEEDED,
			SK_PACING_NONE);
	pace->on = 0;
}

/* With each ACK: the first window is out */
void cc_pace_acked(struct sock *sk, struct cc_pace *pace)
{
	if (pace->on && cc_round_over(&pace->round, tcp_sk(sk)))
		cc_pace_end(sk, pace);
}
