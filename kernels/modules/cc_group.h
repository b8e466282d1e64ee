/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Connections grouped by destination prefix, for slow starts that learn from
 * their neighbours (LISS, ISS, MISS and JS of Yu 2009, chapter 2).
 *
 * A module that includes this is linked with cc_group.c (Kbuild) and so has its
 * own table of groups, lock and parameters: connections of different algorithms
 * never are neighbours.
 */
#ifndef WARPBED_CC_GROUP_H
#define WARPBED_CC_GROUP_H

#include <linux/spinlock.h>
#include "cc_common.h"

struct cc_group {
	struct hlist_node node;
	struct list_head conns;		/* oldest first */
	u64 cookie;			/* of the network namespace */
	struct in6_addr prefix;		/* IPv4 as ::ffff:a.b.c.d */
	unsigned long empty_since;	/* jiffies */
	u64 awnd;			/* EWMA of windows, 48.16 packets; 0: none */
	u64 drop_us;			/* last drop of any connection; 0: none */
	u32 drop_gap_us;		/* EWMA of the times between them; 0: none */
};

/* A connection's part; lives in its private area and is zero before init(). */
struct cc_group_conn {
	struct list_head node;
	struct cc_group *group;		/* NULL: not in one */
	u64 drop_us;			/* its last drop; 0: none */
	u32 drop_gap_us;		/* EWMA of the times between them; 0: none */
	u32 cwnd;			/* packets */
	u8 steady;			/* in congestion avoidance */
};

/* Guards the table and the groups' lists and histories. */
extern spinlock_t cc_groups_lock;

/* A connection writes its own window without the lock. */
static inline void cc_group_publish(struct cc_group_conn *conn,
				    const struct tcp_sock *tp)
{
	WRITE_ONCE(conn->cwnd, tcp_snd_cwnd(tp));
	WRITE_ONCE(conn->steady, !tcp_in_slow_start(tp));
}

/* Under the lock */
struct cc_group *cc_group_get(const struct sock *sk);
struct cc_group_conn *cc_group_oldest(struct cc_group *group);
u32 cc_group_fair(struct cc_group *group, u64 w_o);
void cc_group_join(struct cc_group *group, struct cc_group_conn *conn,
		   const struct tcp_sock *tp);
void cc_group_drop(u64 *last_us, u32 *gap_us, u64 now_us);

/* Without it */
void cc_group_leave(struct cc_group_conn *conn);
void cc_groups_exit(void);

void cc_pace_begin(struct sock *sk, u32 cwnd, u32 rtt_us);
void cc_pace_end(struct sock *sk);

#endif /* WARPBED_CC_GROUP_H */
