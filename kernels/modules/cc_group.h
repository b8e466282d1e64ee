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
#include "cc_drops.h"

struct cc_group {
	struct hlist_node node;
	struct list_head conns;		/* oldest first */
	u64 cookie;			/* of the network namespace */
	struct in6_addr prefix;		/* IPv4 as ::ffff:a.b.c.d */
	unsigned long empty_since;	/* jiffies */
	struct cc_drops drops;		/* of any connection */
};

/* A connection's part; lives in its private area and is zero before init(). */
struct cc_group_conn {
	struct list_head node;
	struct cc_group *group;		/* NULL: not in one */
	const struct sock *sk;		/* the one that it is part of */
	struct cc_drops drops;		/* its own */
	u32 cwnd;			/* packets */
	u32 awnd;			/* EWMA of cwnd, 16.16; of ISS */
	u8 steady;			/* in congestion avoidance */
};

/* Pacing of a first window */
struct cc_pace {
	struct cc_round round;		/* in which it is delivered */
	u8 on:1;
	u8 ours:1;			/* nobody had asked for pacing before */
};

#define CC_GROUP_SHIFT	16		/* of w_o and awnd */
#define CC_GROUP_CWND_MAX ((1U << 16) - 1)	/* so that they fit 32 bits */

/* Guards the table and the groups' lists and histories. */
extern spinlock_t cc_groups_lock;

/* A connection writes its own window without the lock. */
static inline void cc_group_publish(struct cc_group_conn *conn,
				    const struct tcp_sock *tp)
{
	WRITE_ONCE(conn->cwnd, tcp_snd_cwnd(tp));
	WRITE_ONCE(conn->steady, !tcp_in_slow_start(tp));
}

/* cwnd as w_o, 16.16 */
static inline u32 cc_group_window(const struct cc_group_conn *conn)
{
	return min_t(u32, READ_ONCE(conn->cwnd), CC_GROUP_CWND_MAX)
	       << CC_GROUP_SHIFT;
}

/* Under the lock */
struct cc_group *cc_group_get(const struct sock *sk);
struct cc_group_conn *cc_group_oldest(struct cc_group *group);
u32 cc_group_fair(struct cc_group *group, u32 w_o);
void cc_group_join(struct cc_group *group, struct cc_group_conn *conn,
		   struct sock *sk);

/* Without it */
void cc_group_leave(struct cc_group_conn *conn);
void cc_groups_exit(void);

void cc_pace_begin(struct sock *sk, struct cc_pace *pace, u32 cwnd);
void cc_pace_acked(struct sock *sk, struct cc_pace *pace);
void cc_pace_end(struct sock *sk, struct cc_pace *pace);

#endif /* WARPBED_CC_GROUP_H */
