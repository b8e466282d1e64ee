// SPDX-License-Identifier: GPL-2.0-only
/*
 * warp_red: random early detection that counts packets
 *
 * In a nutshell: RED as Floyd and Jacobson (IEEE/ACM ToN 1(4), 1993) wrote it, in
 * front of one child that holds the packets (a shaper with its buffer).  At each
 * arrival the average becomes avg + w_q (q - avg), or, where the queue was empty,
 * (1 - w_q)^(m + 1) avg with m the packets that could have been sent meanwhile (the
 * paper has m; ns-2, in which the theses measure, counts the arrival as well).
 * Below min_th nothing is dropped; up to max_th packets are with
 *
 *	p_b = max_p (avg - min_th) / (max_th - min_th),  p_a = p_b / (1 - count p_b)
 *
 * where count packets have passed since the last one dropped, be it by the child;
 * above, all of them, or, if gentle, with a share that rises to 1 at 2 max_th
 * (Floyd 2000).
 *
 * Differences from sch_red: queues are in packets, so a packet's length does not
 * matter; w_q and max_p are exact and no powers of two; thresholds are bounded by
 * the number of packets and not by the bits of an average of 32.
 *
 * Fixed point: the average is in packets * 2^-32 (64 bits hold 2^31 packets), w_q
 * and probabilities are in 2^-32.
 *
 * Random numbers come from a generator of its own, seeded from the kernel's.
 * Configured by rtnetlink (network/qdisc_netlink.py), since tc does not know it.
 */

#include <linux/module.h>
#include <linux/prandom.h>
#include <linux/random.h>
#include <net/inet_ecn.h>
#include <net/pkt_sched.h>

#include "compat.h"
#include "warp_child.h"
#include "warp_share.h"

#define WARP_RED_ONE		BIT_ULL(32)
#define WARP_RED_MAX_PACKETS	BIT(24)
#define WARP_RED_MAX_IDLE	U32_MAX		/* packets */

enum {
	WARP_RED_UNSPEC,
	WARP_RED_PARAMS,	/* struct warp_red_params */
	__WARP_RED_MAX,
};

#define WARP_RED_MAX (__WARP_RED_MAX - 1)

#define WARP_RED_ECN	BIT(0)
#define WARP_RED_GENTLE	BIT(1)

struct warp_red_params {
	u32	min_packets;
	u32	max_packets;
	u32	max_p;		/* 2^-32 */
	u32	weight;		/* 2^-32 */
	u32	packet_ns;	/* that sending a packet takes, for idle times */
	u32	flags;
};

static const struct nla_policy warp_red_policy[WARP_RED_MAX + 1] = {
	[WARP_RED_PARAMS]	= NLA_POLICY_EXACT_LEN(sizeof(struct warp_red_params)),
};

struct warp_red {
	struct Qdisc		*child;
	struct warp_red_params	p;
	struct rnd_state	random;
	u64			average;	/* packets * 2^-32 */
	u64			idle_since_ns;	/* 0: not idle */
	u32			passed;		/* since the last drop; the paper's count */
	bool			between;	/* the last average was above min_th */
	struct tc_red_xstats	told;
};

WARP_CHILD_FIRST(struct warp_red);

static void warp_red_average(struct warp_red *q, u32 waiting)
{
	u64 now = (u64)waiting << 32;

	if (q->idle_since_ns) {
		u64 slots = div_u64(ktime_get_ns() - q->idle_since_ns, q->p.packet_ns);
		u64 kept = (WARP_RED_ONE - q->p.weight) << 32;	/* 1 - w_q, 2^-64 */

		slots = min_t(u64, slots, WARP_RED_MAX_IDLE);
		q->average = mul_u64_u64_shr(q->average, warp_power(kept, slots), 64);
		q->idle_since_ns = 0;
	}
	if (now >= q->average)
		q->average += mul_u64_u32_shr(now - q->average, q->p.weight, 32);
	else
		q->average -= mul_u64_u32_shr(q->average - now, q->p.weight, 32);
}

/* p_b in 2^-32: 0 below min_th, at least 1 where all have to go */
static u64 warp_red_share(const struct warp_red *q)
{
	u64 least = (u64)q->p.min_packets << 32, most = (u64)q->p.max_packets << 32;
	u64 above;

	if (q->average < least)
		return 0;
	if (q->average < most) {
		above = div64_u64(q->average - least, q->p.max_packets - q->p.min_packets);
		return mul_u64_u32_shr(above, q->p.max_p, 32);
	}
	if (!(q->p.flags & WARP_RED_GENTLE) || q->average >= 2 * most)
		return WARP_RED_ONE;
	above = div64_u64(q->average - most, q->p.max_packets);
	return q->p.max_p + mul_u64_u64_shr(above, WARP_RED_ONE - q->p.max_p, 32);
}

/* Whether the arriving packet is one to be dropped or marked. */
static bool warp_red_hits(struct warp_red *q, u64 share)
{
	u64 shared, draw;

	if (q->average < (u64)q->p.min_packets << 32) {
		q->between = false;
		return false;
	}
	/* the first one after a time below min_th has count = 0 */
	q->passed = q->between ? q->passed + 1 : 0;
	q->between = true;
	draw = prandom_u32_state(&q->random);
	shared = q->passed * share;	/* below 2^32 before it ends a series */
	if (shared + share < WARP_RED_ONE &&
	    draw >= div64_u64(share << 32, WARP_RED_ONE - shared))
		return false;
	q->passed = 0;
	return true;
}

static int warp_red_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct warp_red *q = qdisc_priv(sch);
	unsigned int len = qdisc_pkt_len(skb);
	u64 share;
	int ret;

	warp_red_average(q, sch->q.qlen);
	share = warp_red_share(q);
	if (warp_red_hits(q, share)) {
		qdisc_qstats_overlimit(sch);
		if (share >= WARP_RED_ONE || !(q->p.flags & WARP_RED_ECN) ||
		    !INET_ECN_set_ce(skb)) {
			q->told.early++;
			return qdisc_drop(skb, sch, to_free);
		}
		q->told.marked++;
	}
	ret = qdisc_enqueue(skb, q->child, to_free);
	if (ret != NET_XMIT_SUCCESS) {
		if (net_xmit_drop_count(ret)) {
			q->told.pdrop++;
			q->passed = 0;
			qdisc_qstats_drop(sch);
		}
		return ret;
	}
	sch->qstats.backlog += len;
	sch->q.qlen++;
	return NET_XMIT_SUCCESS;
}

static struct sk_buff *warp_red_dequeue(struct Qdisc *sch)
{
	struct warp_red *q = qdisc_priv(sch);
	struct sk_buff *skb = q->child->dequeue(q->child);

	if (!skb)
		return NULL;
	sch->q.qlen--;
	qdisc_qstats_backlog_dec(sch, skb);
	qdisc_bstats_update(sch, skb);
	if (!sch->q.qlen)
		q->idle_since_ns = ktime_get_ns();
	return skb;
}

static void warp_red_reset(struct Qdisc *sch)
{
	struct warp_red *q = qdisc_priv(sch);

	qdisc_reset(q->child);
	q->average = 0;
	q->idle_since_ns = 0;
	q->passed = 0;
	q->between = false;
}

static int warp_red_change(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct warp_red *q = qdisc_priv(sch);
	struct nlattr *tb[WARP_RED_MAX + 1];
	struct warp_red_params p;
	int err;

	if (!opt)
		return -EINVAL;
	err = nla_parse_nested(tb, WARP_RED_MAX, opt, warp_red_policy, extack);
	if (err < 0)
		return err;
	if (!tb[WARP_RED_PARAMS])
		return -EINVAL;
	nla_memcpy(&p, tb[WARP_RED_PARAMS], sizeof(p));
	if (p.min_packets >= p.max_packets || p.max_packets > WARP_RED_MAX_PACKETS ||
	    !p.max_p || !p.weight || !p.packet_ns ||
	    p.flags & ~(WARP_RED_ECN | WARP_RED_GENTLE)) {
		NL_SET_ERR_MSG_MOD(extack, "min below max, neither weight nor share nor time 0");
		return -EINVAL;
	}
	sch_tree_lock(sch);
	q->p = p;
	sch_tree_unlock(sch);
	return 0;
}

static int warp_red_init(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct warp_red *q = qdisc_priv(sch);

	q->child = &noop_qdisc;
	prandom_seed_state(&q->random, get_random_u64());
	return warp_red_change(sch, opt, extack);
}

static void warp_red_destroy(struct Qdisc *sch)
{
	struct warp_red *q = qdisc_priv(sch);

	qdisc_put(q->child);
}

static int warp_red_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	struct warp_red *q = qdisc_priv(sch);

	return gnet_stats_copy_app(d, &q->told, sizeof(q->told));
}

static struct Qdisc_ops warp_red_ops = {
	.cl_ops		= &warp_child_class_ops,
	.id		= "warp_red",
	.priv_size	= sizeof(struct warp_red),
	.enqueue	= warp_red_enqueue,
	.dequeue	= warp_red_dequeue,
	.peek		= qdisc_peek_dequeued,
	.init		= warp_red_init,
	.reset		= warp_red_reset,
	.destroy	= warp_red_destroy,
	.change		= warp_red_change,
	.dump		= warp_child_dump,
	.dump_stats	= warp_red_dump_stats,
	.owner		= THIS_MODULE,
};

static int __init warp_red_module_init(void)
{
	return register_qdisc(&warp_red_ops);
}

static void __exit warp_red_module_exit(void)
{
	unregister_qdisc(&warp_red_ops);
}

module_init(warp_red_module_init);
module_exit(warp_red_module_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Random early detection that counts packets");
