/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The one class of a queueing discipline with one child
 *
 * The private data begins with the child, WARP_CHILD_FIRST() says so to the compiler.
 */
#ifndef WARPBED_WARP_CHILD_H
#define WARPBED_WARP_CHILD_H

#include <net/pkt_sched.h>

#define WARP_CHILD_FIRST(type)	static_assert(offsetof(type, child) == 0)

static inline struct Qdisc **warp_child(struct Qdisc *sch)
{
	return qdisc_priv(sch);
}

/* What it does stands in the run's plan; tc could not print it. */
static int warp_child_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	return skb->len;
}

static int warp_child_dump_class(struct Qdisc *sch, unsigned long cl, struct sk_buff *skb,
				 struct tcmsg *tcm)
{
	tcm->tcm_handle |= TC_H_MIN(1);
	tcm->tcm_info = (*warp_child(sch))->handle;
	return 0;
}

static int warp_child_graft(struct Qdisc *sch, unsigned long arg, struct Qdisc *new,
			    struct Qdisc **old, struct netlink_ext_ack *extack)
{
	*old = qdisc_replace(sch, new ?: &noop_qdisc, warp_child(sch));
	return 0;
}

static struct Qdisc *warp_child_leaf(struct Qdisc *sch, unsigned long arg)
{
	return *warp_child(sch);
}

static unsigned long warp_child_find(struct Qdisc *sch, u32 classid)
{
	return 1;
}

static void warp_child_walk(struct Qdisc *sch, struct qdisc_walker *walker)
{
	if (walker->stop)
		return;
	if (walker->count >= walker->skip && walker->fn(sch, 1, walker) < 0) {
		walker->stop = 1;
		return;
	}
	walker->count++;
}

static const struct Qdisc_class_ops warp_child_class_ops = {
	.graft	= warp_child_graft,
	.leaf	= warp_child_leaf,
	.find	= warp_child_find,
	.walk	= warp_child_walk,
	.dump	= warp_child_dump_class,
};

#endif /* WARPBED_WARP_CHILD_H */
