// SPDX-License-Identifier: GPL-2.0-only
/*
 * warp_rate: a link whose rate changes with time
 *
 * In a nutshell: a queueing discipline with one child (the buffer) that takes a
 * packet out of the child when the link is free, holds it for as long as sending
 * it takes, and hands it on at the end of its last bit.  Two kinds of links:
 *
 * - steps: the rate is a function of time; a packet under way when the rate
 *   changes is sent partly at the one and partly at the other.  Rate 0 is an
 *   outage: the packet goes on after it.
 * - opportunities: as in Mahimahi (Netravali et al., USENIX ATC 2015): at each
 *   given millisecond one MTU of bytes can leave.  What is not used is lost,
 *   several small packets share an opportunity, a large one takes several.
 *
 * Nothing wakes up while the queue is empty, and with packets waiting only at
 * their ends, so a trace with an opportunity every millisecond costs no more than
 * its packets.  A link that is late (real time) starts the next packet where the
 * last one should have ended: the rate is kept, and no burst exceeds the lateness.
 *
 * Configured by rtnetlink (network/qdisc_netlink.py), since tc does not know it.
 */

#include <linux/module.h>
#include <net/pkt_sched.h>

#include "compat.h"
#include "warp_child.h"
#include "warp_timeline.h"

/* steps that are looked at in one go; beyond them the watchdog goes on */
#define WARP_MAX_SEGMENTS	64

enum {
	WARP_RATE_UNSPEC,
	WARP_RATE_ANCHOR,	/* u64, ns of CLOCK_MONOTONIC */
	WARP_RATE_PERIOD,	/* u64, ns; 0 once */
	WARP_RATE_STEPS,	/* struct warp_step[]; what is there is appended to */
	WARP_RATE_CHANCES,	/* flag: values are bytes that can leave at once, else bit/s */
	__WARP_RATE_MAX,
};

#define WARP_RATE_MAX (__WARP_RATE_MAX - 1)

static const struct nla_policy warp_rate_policy[WARP_RATE_MAX + 1] = {
	[WARP_RATE_ANCHOR]	= { .type = NLA_U64 },
	[WARP_RATE_PERIOD]	= { .type = NLA_U64 },
	[WARP_RATE_STEPS]	= { .type = NLA_BINARY },
	[WARP_RATE_CHANCES]	= { .type = NLA_FLAG },
};

struct warp_rate {
	struct Qdisc		*child;
	struct qdisc_watchdog	watchdog;
	struct warp_timeline	line;
	bool			by_chances;	/* values are bytes at once, else bit/s */
	struct sk_buff		*skb;		/* under way */
	u64			left;		/* of it: bits * 10^9, or bytes */
	u64			at_ns;		/* up to here the link has worked */
	u32			credit_bytes;	/* of the opportunity at at_ns */
	bool			busy;		/* packets waited all the time since */
};

WARP_CHILD_FIRST(struct warp_rate);

/* The first step that begins at or after a time, and the bytes that can leave then. */
static u64 warp_chance_from(const struct warp_timeline *t, u64 from_ns, u32 *credit_bytes)
{
	u64 base = t->anchor_ns, cycles, since;
	u32 low = 0, high = t->n;

	if (from_ns < base)	/* the trace goes on backwards from its start */
		base -= min(base, (div64_u64(base - from_ns, t->period_ns) + 1) * t->period_ns);
	cycles = div64_u64_rem(from_ns - base, t->period_ns, &since);
	base += cycles * t->period_ns;
	while (low < high) {
		u32 middle = low + (high - low) / 2;

		if (t->step[middle].at_ns < since)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == t->n) {
		base += t->period_ns;
		low = 0;
	}
	*credit_bytes = t->step[low].value;
	return base + t->step[low].at_ns;
}

/*
 * Whether the packet under way has been sent by now; else *next_ns is when to
 * look again: its end, unless that is many steps away.
 */
static bool warp_sent_by_steps(struct warp_rate *q, u64 now_ns, u64 *next_ns)
{
	u64 at_ns = q->at_ns, left = q->left;
	int i;

	for (i = 1; ; i++) {
		u64 until_ns, rate_bps, need_ns = WARP_FOREVER;

		rate_bps = warp_timeline_at(&q->line, at_ns, &until_ns);
		if (rate_bps)
			need_ns = div64_u64(left + rate_bps - 1, rate_bps);
		if (need_ns <= until_ns - at_ns) {
			at_ns += need_ns;
			break;
		}
		*next_ns = WARP_FOREVER;
		if (until_ns == WARP_FOREVER)
			return false;	/* an outage without an end */
		left -= rate_bps * (until_ns - at_ns);	/* less than left: no overflow */
		at_ns = until_ns;
		if (at_ns > now_ns && i >= WARP_MAX_SEGMENTS)
			break;
	}
	*next_ns = at_ns;
	if (at_ns > now_ns)
		return false;
	q->at_ns = at_ns;
	return true;
}

static bool warp_sent_by_chances(struct warp_rate *q, u64 now_ns, u64 *next_ns)
{
	for (;;) {
		u32 part = min_t(u64, q->left, q->credit_bytes), credit_bytes;

		q->left -= part;
		q->credit_bytes -= part;
		if (!q->left)
			return true;
		*next_ns = warp_chance_from(&q->line, q->at_ns + 1, &credit_bytes);
		if (*next_ns > now_ns)
			return false;
		q->at_ns = *next_ns;
		q->credit_bytes = credit_bytes;
	}
}

static void warp_rate_start(struct warp_rate *q, struct sk_buff *skb, u64 now_ns)
{
	q->skb = skb;
	if (!q->by_chances) {
		q->left = (u64)qdisc_pkt_len(skb) * 8 * NSEC_PER_SEC;
		if (!q->busy)
			q->at_ns = now_ns;
		return;
	}
	q->left = qdisc_pkt_len(skb);
	if (!q->busy && q->at_ns < now_ns) {
		q->at_ns = now_ns - 1;	/* an opportunity right now counts */
		q->credit_bytes = 0;
	}
}

static struct sk_buff *warp_rate_dequeue(struct Qdisc *sch)
{
	struct warp_rate *q = qdisc_priv(sch);
	u64 now_ns = ktime_get_ns(), next_ns;
	struct sk_buff *skb;

	if (!q->skb) {
		skb = q->child->dequeue(q->child);
		if (!skb) {
			q->busy = false;
			return NULL;
		}
		warp_rate_start(q, skb, now_ns);
		q->busy = true;
	}
	if (!(q->by_chances ? warp_sent_by_chances(q, now_ns, &next_ns) :
			     warp_sent_by_steps(q, now_ns, &next_ns))) {
		if (next_ns != WARP_FOREVER)
			qdisc_watchdog_schedule_ns(&q->watchdog, next_ns);
		return NULL;
	}
	skb = q->skb;
	q->skb = NULL;
	sch->q.qlen--;
	qdisc_qstats_backlog_dec(sch, skb);
	qdisc_bstats_update(sch, skb);
	if (!sch->q.qlen)
		q->busy = false;
	return skb;
}

static int warp_rate_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct warp_rate *q = qdisc_priv(sch);
	unsigned int len = qdisc_pkt_len(skb);
	int ret = qdisc_enqueue(skb, q->child, to_free);

	if (ret != NET_XMIT_SUCCESS) {
		if (net_xmit_drop_count(ret))
			qdisc_qstats_drop(sch);
		return ret;
	}
	sch->qstats.backlog += len;
	sch->q.qlen++;
	return NET_XMIT_SUCCESS;
}

static void warp_rate_reset(struct Qdisc *sch)
{
	struct warp_rate *q = qdisc_priv(sch);

	qdisc_reset(q->child);
	if (q->skb)
		rtnl_kfree_skbs(q->skb, q->skb);
	q->skb = NULL;
	q->busy = false;
	qdisc_watchdog_cancel(&q->watchdog);
}

static int warp_rate_change(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct warp_rate *q = qdisc_priv(sch);
	struct nlattr *tb[WARP_RATE_MAX + 1];
	int err;

	if (!opt)
		return -EINVAL;
	err = nla_parse_nested(tb, WARP_RATE_MAX, opt, warp_rate_policy, extack);
	if (err < 0)
		return err;
	err = warp_timeline_change(sch, &q->line, tb[WARP_RATE_ANCHOR], tb[WARP_RATE_PERIOD],
				   tb[WARP_RATE_STEPS], extack);
	if (err)
		return err;
	if (tb[WARP_RATE_CHANCES])
		q->by_chances = true;
	return !q->line.n || (q->by_chances && !q->line.period_ns) ? -EINVAL : 0;
}

static int warp_rate_init(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct warp_rate *q = qdisc_priv(sch);

	qdisc_watchdog_init(&q->watchdog, sch);
	q->child = &noop_qdisc;
	q->line.anchor_ns = ktime_get_ns();
	return warp_rate_change(sch, opt, extack);
}

static void warp_rate_destroy(struct Qdisc *sch)
{
	struct warp_rate *q = qdisc_priv(sch);

	qdisc_watchdog_cancel(&q->watchdog);
	qdisc_put(q->child);
	kvfree(q->line.step);
}

static struct Qdisc_ops warp_rate_ops = {
	.cl_ops		= &warp_child_class_ops,
	.id		= "warp_rate",
	.priv_size	= sizeof(struct warp_rate),
	.enqueue	= warp_rate_enqueue,
	.dequeue	= warp_rate_dequeue,
	.peek		= qdisc_peek_dequeued,
	.init		= warp_rate_init,
	.reset		= warp_rate_reset,
	.destroy	= warp_rate_destroy,
	.change		= warp_rate_change,
	.dump		= warp_child_dump,
	.owner		= THIS_MODULE,
};

static int __init warp_rate_module_init(void)
{
	return register_qdisc(&warp_rate_ops);
}

static void __exit warp_rate_module_exit(void)
{
	unregister_qdisc(&warp_rate_ops);
}

module_init(warp_rate_module_init);
module_exit(warp_rate_module_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("A link whose rate changes with time");
