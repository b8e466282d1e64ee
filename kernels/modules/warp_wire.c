// SPDX-License-Identifier: GPL-2.0-only
/*
 * warp_wire: delay and loss that change with time, loss by bit errors, processing times
 *
 * In a nutshell: a queueing discipline that drops a packet with the probability
 * of the moment, and hands on the others after the delay of the moment, in order.
 * It may have a child (netem for jitter, bursts of loss, constant delay …), which
 * a packet passes between the two.
 *
 * - Loss by time: a timeline of probabilities in units of 2^-32.
 * - Bit errors: a packet of L bytes survives with (1 - BER)^(8 L).  User space
 *   gives the survival of one byte in units of 2^-64; the power is taken by
 *   squaring, its error is below 2^-50.
 * - Delay by time: a timeline of ns.  A packet never overtakes another one: where
 *   the delay falls, packets leave together with the one before them, as on a
 *   link that resequences.
 * - Rate: the last bit of a packet leaves when the link has sent those before it,
 *   which netem's rate does too.
 * - Processing time: each packet is late by an even draw between nothing and the
 *   moment's largest time.  It comes behind the rate, so that packets that follow
 *   one another without a gap keep their own draws, and is part of the one time at
 *   which the packet is due: no timer runs for it.
 *
 * - Ahead of time: a packet may come before it leaves the queue in front of the
 *   wire (um_link.c); skb->tstamp then says when it does, and everything above
 *   counts from there.  Until then it is not among those that the wire holds.
 *
 * Senders are not told of losses.  Random numbers come from a generator of its
 * own, seeded from one draw of the kernel's for all wires and the interface's name:
 * neither other queues' draws nor the order in which wires are made move them.
 *
 * Configured by rtnetlink (network/qdisc_netlink.py), since tc does not know it.
 */

#include <linux/module.h>
#include <linux/net.h>
#include <linux/prandom.h>
#include <linux/prefetch.h>
#include <linux/random.h>
#include <linux/siphash.h>
#include <net/pkt_sched.h>

#include "compat.h"
#include "warp_child.h"
#include "warp_share.h"
#include "warp_timeline.h"

enum {
	WARP_WIRE_UNSPEC,
	WARP_WIRE_ANCHOR,	/* u64, ns of CLOCK_MONOTONIC, of both timelines */
	WARP_WIRE_LIMIT,	/* u32, packets */
	WARP_WIRE_SURVIVAL,	/* u64, of one byte in units of 2^-64; 0: no bit errors */
	WARP_WIRE_DELAYS,	/* struct warp_step[], ns */
	WARP_WIRE_DELAY_PERIOD,	/* u64, ns; 0 once */
	WARP_WIRE_LOSSES,	/* struct warp_step[], units of 2^-32 */
	WARP_WIRE_LOSS_PERIOD,	/* u64, ns; 0 once */
	WARP_WIRE_OVERHEADS,	/* struct warp_step[], ns, largest processing time */
	WARP_WIRE_RATE,		/* u64, bit/s; 0: as fast as packets come */
	WARP_WIRE_AHEAD,	/* flag: skb->tstamp, CLOCK_MONOTONIC, is when a packet comes */
	__WARP_WIRE_MAX,
};

#define WARP_WIRE_MAX (__WARP_WIRE_MAX - 1)

static const struct nla_policy warp_wire_policy[WARP_WIRE_MAX + 1] = {
	[WARP_WIRE_ANCHOR]		= { .type = NLA_U64 },
	[WARP_WIRE_LIMIT]		= { .type = NLA_U32 },
	[WARP_WIRE_SURVIVAL]		= { .type = NLA_U64 },
	[WARP_WIRE_DELAYS]		= { .type = NLA_BINARY },
	[WARP_WIRE_DELAY_PERIOD]	= { .type = NLA_U64 },
	[WARP_WIRE_LOSSES]		= { .type = NLA_BINARY },
	[WARP_WIRE_LOSS_PERIOD]		= { .type = NLA_U64 },
	[WARP_WIRE_OVERHEADS]		= { .type = NLA_BINARY },
	[WARP_WIRE_RATE]		= { .type = NLA_U64 },
	[WARP_WIRE_AHEAD]		= { .type = NLA_FLAG },
};

struct warp_wire {
	struct Qdisc		*child;
	struct qdisc_watchdog	watchdog;
	struct warp_timeline	delay, loss, overhead;
	struct sk_buff_head	under_way;
	struct sk_buff		*to_come;	/* ahead: the first that has not been counted */
	struct rnd_state	random;
	u64			last_due_ns;
	u64			free_ns;	/* when the link has sent all that came */
	u64			rate_bps;
	u64			survival;
	u32			limit;
	bool			ahead;
};

WARP_CHILD_FIRST(struct warp_wire);

struct warp_wire_cb {
	u64	due_ns;
	u64	comes_ns;
};

static struct warp_wire_cb *warp_wire_cb(struct sk_buff *skb)
{
	qdisc_cb_private_validate(skb, sizeof(struct warp_wire_cb));
	return (struct warp_wire_cb *)qdisc_skb_cb(skb)->data;
}

static u64 warp_wire_comes_ns(const struct warp_wire *q, const struct sk_buff *skb)
{
	return q->ahead ? ktime_to_ns(skb->tstamp) : ktime_get_ns();
}

static bool warp_wire_loses(struct warp_wire *q, const struct sk_buff *skb)
{
	if (q->loss.n) {
		u64 until_ns, comes_ns = warp_wire_comes_ns(q, skb);
		u64 p = warp_timeline_at(&q->loss, comes_ns, &until_ns);

		if (prandom_u32_state(&q->random) < p)
			return true;
	}
	if (q->survival) {
		u64 draw = (u64)prandom_u32_state(&q->random) << 32;

		draw |= prandom_u32_state(&q->random);
		return draw >= warp_power(q->survival, qdisc_pkt_len(skb));
	}
	return false;
}

static void warp_wire_delay(struct warp_wire *q, struct sk_buff *skb)
{
	u64 now_ns = warp_wire_comes_ns(q, skb), until_ns;
	u64 due_ns = now_ns;

	if (q->rate_bps) {
		u64 bits = (u64)qdisc_pkt_len(skb) * 8;

		q->free_ns = max(q->free_ns, now_ns) + div64_u64(bits * NSEC_PER_SEC, q->rate_bps);
		due_ns = q->free_ns;
	}
	if (q->overhead.n) {
		u64 most_ns = warp_timeline_at(&q->overhead, now_ns, &until_ns);

		if (most_ns)
			due_ns += mul_u64_u32_shr(most_ns, prandom_u32_state(&q->random), 32);
	}
	if (q->delay.n)
		due_ns += warp_timeline_at(&q->delay, now_ns, &until_ns);
	/*
	 * On the wire it no longer counts against what a sender may have queued
	 * (TCP small queues): netem does the same.
	 */
	skb_orphan_partial(skb);
	q->last_due_ns = max(q->last_due_ns, due_ns);
	warp_wire_cb(skb)->due_ns = q->last_due_ns;
	warp_wire_cb(skb)->comes_ns = now_ns;
	__skb_queue_tail(&q->under_way, skb);
}

/* Count those of the packets that were given ahead of time that have come by then. */
static void warp_wire_count(struct Qdisc *sch, u64 now_ns)
{
	struct warp_wire *q = qdisc_priv(sch);

	while (q->to_come && warp_wire_cb(q->to_come)->comes_ns <= now_ns) {
		sch->q.qlen++;
		qdisc_qstats_backlog_inc(sch, q->to_come);
		q->to_come = skb_queue_is_last(&q->under_way, q->to_come) ?
			     NULL : skb_queue_next(&q->under_way, q->to_come);
	}
}

static int warp_wire_enqueue_ahead(struct sk_buff *skb, struct Qdisc *sch,
				   struct sk_buff **to_free)
{
	struct warp_wire *q = qdisc_priv(sch);

	if (skb_queue_len(&q->under_way) >= q->limit) {
		warp_wire_count(sch, ktime_get_ns());
		if (sch->q.qlen >= q->limit) {
			qdisc_qstats_overlimit(sch);
			return qdisc_drop(skb, sch, to_free);
		}
	}
	warp_wire_delay(q, skb);
	if (!q->to_come)
		q->to_come = skb;
	return NET_XMIT_SUCCESS;
}

static int warp_wire_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct warp_wire *q = qdisc_priv(sch);
	unsigned int len = qdisc_pkt_len(skb);
	int ret;

	if (warp_wire_loses(q, skb)) {
		qdisc_qstats_drop(sch);
		__qdisc_drop(skb, to_free);
		return NET_XMIT_SUCCESS | __NET_XMIT_BYPASS;
	}
	if (q->ahead)
		return warp_wire_enqueue_ahead(skb, sch, to_free);
	if (sch->q.qlen >= q->limit) {
		qdisc_qstats_overlimit(sch);
		return qdisc_drop(skb, sch, to_free);
	}
	if (q->child == &noop_qdisc) {
		warp_wire_delay(q, skb);
	} else {
		ret = qdisc_enqueue(skb, q->child, to_free);
		if (ret != NET_XMIT_SUCCESS) {
			if (net_xmit_drop_count(ret))
				qdisc_qstats_drop(sch);
			return ret;
		}
	}
	sch->qstats.backlog += len;
	sch->q.qlen++;
	return NET_XMIT_SUCCESS;
}

/*
 * Packets that were under way for long are in no cache any more: have the following
 * ones fetched.  Where a packet's headers are is read from its struct sk_buff, and
 * that of the packet behind it from its own, so each is fetched one packet before.
 */
static void warp_wire_prefetch(const struct warp_wire *q)
{
	const struct sk_buff *next = skb_peek(&q->under_way), *after;

	if (!next)
		return;
	prefetch(next->data);
	prefetch(next->data + L1_CACHE_BYTES);
	prefetch(skb_shinfo(next));
	after = skb_peek_next((struct sk_buff *)next, &q->under_way);
	if (!after)
		return;
	prefetch((const char *)after + L1_CACHE_BYTES);
	prefetch((const char *)after + 2 * L1_CACHE_BYTES);
	prefetch((const char *)after + 3 * L1_CACHE_BYTES);
	prefetch(after->next);
}

static struct sk_buff *warp_wire_dequeue(struct Qdisc *sch)
{
	struct warp_wire *q = qdisc_priv(sch);
	struct sk_buff *skb;
	u64 now_ns;

	if (q->child != &noop_qdisc)
		while ((skb = q->child->dequeue(q->child)))
			warp_wire_delay(q, skb);
	skb = skb_peek(&q->under_way);
	if (!skb)
		return NULL;
	now_ns = ktime_get_ns();
	if (warp_wire_cb(skb)->due_ns > now_ns) {
		qdisc_watchdog_schedule_ns(&q->watchdog, warp_wire_cb(skb)->due_ns);
		return NULL;
	}
	if (skb == q->to_come)
		warp_wire_count(sch, now_ns);
	__skb_unlink(skb, &q->under_way);
	warp_wire_prefetch(q);
	sch->q.qlen--;
	qdisc_qstats_backlog_dec(sch, skb);
	qdisc_bstats_update(sch, skb);
	return skb;
}

static void warp_wire_reset(struct Qdisc *sch)
{
	struct warp_wire *q = qdisc_priv(sch);
	struct sk_buff *skb;

	qdisc_reset(q->child);
	while ((skb = __skb_dequeue(&q->under_way)))
		rtnl_kfree_skbs(skb, skb);
	q->to_come = NULL;
	q->last_due_ns = 0;
	q->free_ns = 0;
	qdisc_watchdog_cancel(&q->watchdog);
}

static int warp_wire_change(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct warp_wire *q = qdisc_priv(sch);
	struct nlattr *tb[WARP_WIRE_MAX + 1];
	int err;

	if (!opt)
		return -EINVAL;
	err = nla_parse_nested(tb, WARP_WIRE_MAX, opt, warp_wire_policy, extack);
	if (err < 0)
		return err;
	err = warp_timeline_change(sch, &q->delay, tb[WARP_WIRE_ANCHOR], tb[WARP_WIRE_DELAY_PERIOD],
				   tb[WARP_WIRE_DELAYS], extack);
	if (!err)
		err = warp_timeline_change(sch, &q->loss, tb[WARP_WIRE_ANCHOR],
					   tb[WARP_WIRE_LOSS_PERIOD], tb[WARP_WIRE_LOSSES], extack);
	if (!err)
		err = warp_timeline_change(sch, &q->overhead, tb[WARP_WIRE_ANCHOR], NULL,
					   tb[WARP_WIRE_OVERHEADS], extack);
	if (err)
		return err;
	if (tb[WARP_WIRE_LIMIT])
		q->limit = nla_get_u32(tb[WARP_WIRE_LIMIT]);
	if (tb[WARP_WIRE_SURVIVAL])
		q->survival = nla_get_u64(tb[WARP_WIRE_SURVIVAL]);
	if (tb[WARP_WIRE_RATE])
		q->rate_bps = nla_get_u64(tb[WARP_WIRE_RATE]);
	if (tb[WARP_WIRE_AHEAD])
		q->ahead = true;
	return 0;
}

static u64 warp_wire_seed(const struct net_device *dev)
{
	static siphash_key_t secret __read_mostly;

	net_get_random_once(&secret, sizeof(secret));
	return siphash(dev->name, strlen(dev->name), &secret);
}

static int warp_wire_init(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct warp_wire *q = qdisc_priv(sch);

	qdisc_watchdog_init(&q->watchdog, sch);
	__skb_queue_head_init(&q->under_way);
	q->child = &noop_qdisc;
	prandom_seed_state(&q->random, warp_wire_seed(qdisc_dev(sch)));
	return warp_wire_change(sch, opt, extack);
}

static void warp_wire_destroy(struct Qdisc *sch)
{
	struct warp_wire *q = qdisc_priv(sch);

	qdisc_watchdog_cancel(&q->watchdog);
	qdisc_put(q->child);
	kvfree(q->delay.step);
	kvfree(q->loss.step);
	kvfree(q->overhead.step);
}

static int warp_wire_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	sch_tree_lock(sch);
	warp_wire_count(sch, ktime_get_ns());
	sch_tree_unlock(sch);
	return warp_child_dump(sch, skb);
}

static struct Qdisc_ops warp_wire_ops = {
	.cl_ops		= &warp_child_class_ops,
	.id		= "warp_wire",
	.priv_size	= sizeof(struct warp_wire),
	.enqueue	= warp_wire_enqueue,
	.dequeue	= warp_wire_dequeue,
	.peek		= qdisc_peek_dequeued,
	.init		= warp_wire_init,
	.reset		= warp_wire_reset,
	.destroy	= warp_wire_destroy,
	.change		= warp_wire_change,
	.dump		= warp_wire_dump,
	.owner		= THIS_MODULE,
};

static int __init warp_wire_module_init(void)
{
	return register_qdisc(&warp_wire_ops);
}

static void __exit warp_wire_module_exit(void)
{
	unregister_qdisc(&warp_wire_ops);
}

module_init(warp_wire_module_init);
module_exit(warp_wire_module_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Delay and loss that change with time, loss by bit errors, processing times");
