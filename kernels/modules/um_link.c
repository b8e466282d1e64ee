// SPDX-License-Identifier: GPL-2.0-only
/*
 * um_link: links of the virtual host with one event per packet
 *
 * In a nutshell: a link lies in the namespace of the wires, between two pairs of
 * veth.  Packets that leave a node go straight into the queueing discipline of the
 * wire, without a hand-over in the middle; and a buffer in front of a fixed rate
 * knows at once when a packet will leave it, so that only the wire's timer runs.
 *
 * The hand-over: veth would give the packet to the wires' end as received, a
 * softirq later, where tc's redirection sends it on.  Nothing looks at it there.
 *
 * um_pace: a queueing discipline that is a token bucket (tbf) with a FIFO below it,
 * to the nanosecond, but holds no packets.  When one comes, its departure is known:
 * the bucket's tokens decide it, and packets behind it cannot.  The packet goes to
 * the wire, which counts its delay from skb->tstamp, the departure (warp_wire.c,
 * WARP_WIRE_AHEAD); what stays here is its length, until then.  So the buffer is
 * full when it would be, and its statistics are those of the moment they are asked.
 *
 * For forwarded packets alone: a sender's own queue must let TCP know when a packet
 * has left it (TCP small queues), and a capture wants to see it then.
 *
 * Parameter, written by agent/kernel_links.py in the namespace of the wires:
 *
 *   link	SOURCE TARGET	what would reach SOURCE is sent by TARGET instead
 *
 * The module stays until the guest ends: devices call it.
 */

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/nsproxy.h>
#include <linux/rtnetlink.h>
#include <net/net_namespace.h>
#include <net/pkt_sched.h>
#include <net/rtnetlink.h>

static struct net_device_ops link_ops;		/* veth's, but for the transmission */

static struct net_device *link_target(const struct net_device *dev)
{
	return dev->netdev_ops == &link_ops ? dev->ml_priv : NULL;
}

static netdev_tx_t link_xmit(struct sk_buff *skb, struct net_device *dev)
{
	dev_sw_netstats_tx_add(dev, 1, skb->len);
	skb->dev = link_target(dev);
	dev_queue_xmit(skb);
	return NETDEV_TX_OK;
}

/* The node's end of the pair whose other end is the wires'. */
static struct net_device *link_peer(const struct net_device *dev)
{
	const struct rtnl_link_ops *ops = dev->rtnl_link_ops;

	if (!ops || strcmp(ops->kind, "veth"))
		return NULL;
	return __dev_get_by_index(ops->get_link_net(dev), dev_get_iflink(dev));
}

static int link_make(const char *val, const struct kernel_param *kp)
{
	char names[2][IFNAMSIZ];
	struct net_device *source, *target, *peer = NULL;
	int err = -ENODEV;

	if (sscanf(val, "%15s %15s", names[0], names[1]) != 2)
		return -EINVAL;
	rtnl_lock();
	source = __dev_get_by_name(current->nsproxy->net_ns, names[0]);
	target = __dev_get_by_name(current->nsproxy->net_ns, names[1]);
	if (source && target)
		peer = link_peer(source);
	if (peer && peer->netdev_ops != &link_ops) {
		if (!link_ops.ndo_start_xmit) {
			link_ops = *peer->netdev_ops;
			link_ops.ndo_start_xmit = link_xmit;
		}
		peer->ml_priv = target;
		peer->netdev_ops = &link_ops;
		err = 0;
	}
	rtnl_unlock();
	return err;
}

static const struct kernel_param_ops link_make_ops = { .set = link_make };

module_param_cb(link, &link_make_ops, NULL, 0200);
MODULE_PARM_DESC(link, "SOURCE TARGET: send what would reach SOURCE by TARGET");

enum {
	UM_PACE_UNSPEC,
	UM_PACE_RATE,		/* u64, bytes per second */
	UM_PACE_BURST,		/* u32, bytes that the bucket holds */
	UM_PACE_LIMIT,		/* u32, what waits at most */
	UM_PACE_PACKETS,	/* flag: the limit counts packets, else bytes */
	__UM_PACE_MAX,
};

#define UM_PACE_MAX (__UM_PACE_MAX - 1)

static const struct nla_policy um_pace_policy[UM_PACE_MAX + 1] = {
	[UM_PACE_RATE]		= { .type = NLA_U64 },
	[UM_PACE_BURST]		= { .type = NLA_U32 },
	[UM_PACE_LIMIT]		= { .type = NLA_U32 },
	[UM_PACE_PACKETS]	= { .type = NLA_FLAG },
};

/* What waits, in chunks: an array would have to grow while packets come. */
#define PACE_CHUNK	254

struct pace_chunk {
	struct pace_chunk	*next;
	struct {
		u64	leaves_ns;
		u32	bytes;
	} packet[PACE_CHUNK];
};

struct um_pace {
	struct psched_ratecfg	rate;
	s64			bucket_ns;	/* time that sending a full bucket takes */
	s64			tokens_ns;	/* in the bucket at left_ns */
	u64			left_ns;	/* when the last packet that came leaves */
	u32			burst, limit;
	bool			in_packets;
	struct pace_chunk	*first, *last, *spare;
	u32			first_at, last_n;
};

static void pace_free(struct um_pace *q, struct pace_chunk *chunk)
{
	kfree(q->spare);
	q->spare = chunk;
}

static bool pace_push(struct um_pace *q, u64 leaves_ns, u32 bytes)
{
	if (!q->last || q->last_n == PACE_CHUNK) {
		struct pace_chunk *chunk = q->spare ?: kmalloc(sizeof(*chunk), GFP_ATOMIC);

		if (!chunk)
			return false;
		q->spare = NULL;
		chunk->next = NULL;
		if (q->last)
			q->last->next = chunk;
		else
			q->first = chunk;
		q->last = chunk;
		q->last_n = 0;
	}
	q->last->packet[q->last_n].leaves_ns = leaves_ns;
	q->last->packet[q->last_n++].bytes = bytes;
	return true;
}

/* Forget the packets that have left by now. */
static void pace_leave(struct Qdisc *sch, u64 now_ns)
{
	struct um_pace *q = qdisc_priv(sch);

	while (sch->q.qlen && q->first->packet[q->first_at].leaves_ns <= now_ns) {
		u32 bytes = q->first->packet[q->first_at].bytes;

		sch->qstats.backlog -= bytes;
		sch->q.qlen--;
		_bstats_update(&sch->bstats, bytes, 1);
		if (++q->first_at == PACE_CHUNK) {
			struct pace_chunk *gone = q->first;

			q->first = gone->next;
			q->first_at = 0;
			if (!q->first)
				q->last = NULL;
			pace_free(q, gone);
		}
	}
}

/* When a packet that comes now leaves; takes its tokens. */
static u64 pace_departure(struct um_pace *q, u32 bytes, u64 now_ns)
{
	u64 from_ns = max(now_ns, q->left_ns);
	s64 tokens_ns = min_t(s64, from_ns - q->left_ns, q->bucket_ns) + q->tokens_ns;

	tokens_ns = min(tokens_ns, q->bucket_ns) - (s64)psched_l2t_ns(&q->rate, bytes);
	if (tokens_ns < 0) {
		from_ns -= tokens_ns;	/* later: they are awaited */
		tokens_ns = 0;
	}
	q->tokens_ns = tokens_ns;
	q->left_ns = from_ns;
	return from_ns;
}

static int um_pace_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct net_device *target = link_target(qdisc_dev(sch));
	struct um_pace *q = qdisc_priv(sch);
	u32 bytes = qdisc_pkt_len(skb);
	u64 now_ns = ktime_get_ns();
	s64 tokens_ns = q->tokens_ns;
	u64 left_ns = q->left_ns;

	pace_leave(sch, now_ns);
	if (!target || bytes > q->burst)
		return qdisc_drop(skb, sch, to_free);
	if (q->in_packets ? sch->q.qlen >= q->limit : (u64)sch->qstats.backlog + bytes > q->limit)
		return qdisc_drop(skb, sch, to_free);
	if (!pace_push(q, pace_departure(q, bytes, now_ns), bytes)) {
		q->tokens_ns = tokens_ns;
		q->left_ns = left_ns;
		return qdisc_drop(skb, sch, to_free);
	}
	sch->qstats.backlog += bytes;
	sch->q.qlen++;
	dev_sw_netstats_tx_add(qdisc_dev(sch), 1, skb->len);
	skb->dev = target;
	skb->tstamp = ns_to_ktime(q->left_ns);
	dev_queue_xmit(skb);
	return NET_XMIT_SUCCESS;
}

/* No packet is ever here. */
static struct sk_buff *um_pace_dequeue(struct Qdisc *sch)
{
	return NULL;
}

static void um_pace_reset(struct Qdisc *sch)
{
	struct um_pace *q = qdisc_priv(sch);

	pace_leave(sch, U64_MAX);
	q->left_ns = ktime_get_ns();
	q->tokens_ns = q->bucket_ns;
}

static int um_pace_init(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct um_pace *q = qdisc_priv(sch);
	struct nlattr *tb[UM_PACE_MAX + 1];
	const struct tc_ratespec none = {};
	int err;

	if (!opt)
		return -EINVAL;
	err = nla_parse_nested(tb, UM_PACE_MAX, opt, um_pace_policy, extack);
	if (err < 0)
		return err;
	if (!tb[UM_PACE_RATE] || !tb[UM_PACE_BURST] || !tb[UM_PACE_LIMIT])
		return -EINVAL;
	if (!nla_get_u64(tb[UM_PACE_RATE]))
		return -EINVAL;
	psched_ratecfg_precompute(&q->rate, &none, nla_get_u64(tb[UM_PACE_RATE]));
	q->burst = nla_get_u32(tb[UM_PACE_BURST]);
	q->limit = nla_get_u32(tb[UM_PACE_LIMIT]);
	q->in_packets = nla_get_flag(tb[UM_PACE_PACKETS]);
	q->bucket_ns = psched_l2t_ns(&q->rate, q->burst);
	q->tokens_ns = q->bucket_ns;
	q->left_ns = ktime_get_ns();
	return 0;
}

static void um_pace_destroy(struct Qdisc *sch)
{
	struct um_pace *q = qdisc_priv(sch);

	while (q->first) {
		struct pace_chunk *gone = q->first;

		q->first = gone->next;
		kfree(gone);
	}
	kfree(q->spare);
}

static int um_pace_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	sch_tree_lock(sch);
	pace_leave(sch, ktime_get_ns());
	sch_tree_unlock(sch);
	return skb->len;
}

static struct Qdisc_ops um_pace_ops = {
	.id		= "um_pace",
	.priv_size	= sizeof(struct um_pace),
	.enqueue	= um_pace_enqueue,
	.dequeue	= um_pace_dequeue,
	.peek		= um_pace_dequeue,
	.init		= um_pace_init,
	.reset		= um_pace_reset,
	.destroy	= um_pace_destroy,
	.dump		= um_pace_dump,
	.owner		= THIS_MODULE,
};

static int __init link_init(void)
{
	return register_qdisc(&um_pace_ops);
}

module_init(link_init);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Links of the virtual host with one event per packet");
