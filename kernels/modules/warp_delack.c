// SPDX-License-Identifier: GPL-2.0-only
/*
 * warp_delack: a receiver that acknowledges every second packet from the first on
 *
 * In a nutshell: a queueing discipline in front of a receiver's interface.  TCP
 * acknowledges every packet (route option quickack); here the ACK of one packet
 * waits for the next, which takes its place, but at most for a given time.
 * Linux' own receiver begins with quick ACKs, comes back to them, and chooses its
 * time from what it sees: no setting says either.
 *
 * What waits, as in RFC 1122, RFC 5681 and the delayed ACKs of ns-2: an ACK
 * without data, SYN, FIN or RST that moves on by one packet, while none of its
 * connection waits.  Everything else leaves at once and takes the place of what
 * waits, which it says as well: the next one, duplicates, ACKs with SACK blocks (a
 * hole), a new window, data.  Where the mark of congestion changes, what waits
 * leaves first (RFC 8257).
 *
 * Differences from a TCP that delays
 *  - The time stamp that comes back is that of the second packet of a pair.
 *  - One packet is what the socket takes for a full one (rcv_mss); an ACK of more,
 *    which TCP gives for packets that it looked at together, leaves at once.
 *
 * Connections are told apart by addresses and ports; the table holds the last
 * WARP_DELACK_FLOWS of them.  A child queues what has left.
 *
 * Configured by rtnetlink (network/qdisc_netlink.py), since tc does not know it.
 */

#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/jhash.h>
#include <linux/module.h>
#include <linux/random.h>
#include <net/inet_connection_sock.h>
#include <net/pkt_sched.h>
#include <net/tcp.h>

#include "compat.h"
#include "warp_child.h"

enum {
	WARP_DELACK_UNSPEC,
	WARP_DELACK_TIME,	/* u64, ns */
	__WARP_DELACK_MAX,
};

#define WARP_DELACK_MAX (__WARP_DELACK_MAX - 1)
#define WARP_DELACK_BITS 10
#define WARP_DELACK_FLOWS 4096

static const struct nla_policy warp_delack_policy[WARP_DELACK_MAX + 1] = {
	[WARP_DELACK_TIME]	= { .type = NLA_U64 },
};

struct warp_delack_key {
	struct in6_addr	saddr, daddr;
	__be16		source, dest;
};

/* One direction of a connection. */
struct warp_delack_flow {
	struct hlist_node	node;
	struct list_head	recent;		/* least recently used first */
	struct list_head	waiting;	/* the one that is due first comes first */
	struct sk_buff		*held;
	u64			due_ns;
	u32			hash;
	u32			sent_ack;	/* of what left last */
	struct warp_delack_key	key;
};

struct warp_delack {
	struct Qdisc		*child;
	struct qdisc_watchdog	watchdog;
	struct sk_buff_head	leaving;	/* where there is no child */
	struct list_head	recent, waiting;
	struct hlist_head	flows[1 << WARP_DELACK_BITS];
	u64			time_ns;
	u32			count, seed;
};

WARP_CHILD_FIRST(struct warp_delack);

/* What is to be known of an outgoing TCP packet. */
struct warp_delack_packet {
	struct warp_delack_key	key;
	u32			ack;
	bool			ends;	/* SYN, FIN or RST: a connection begins or ends */
	bool			pure;	/* nothing but an ACK of all that came */
};

/* The TCP header; NULL for everything that is no packet of TCP in one piece. */
static const struct tcphdr *warp_delack_header(const struct sk_buff *skb,
					       struct warp_delack_packet *packet,
					       unsigned int *length)
{
	unsigned int offset = skb_network_offset(skb);
	const struct tcphdr *th;

	memset(&packet->key, 0, sizeof(packet->key));
	if (skb->protocol == htons(ETH_P_IP)) {
		const struct iphdr *iph = ip_hdr(skb);

		if (offset + sizeof(*iph) > skb_headlen(skb) || iph->protocol != IPPROTO_TCP ||
		    ip_is_fragment(iph))
			return NULL;
		ipv6_addr_set_v4mapped(iph->saddr, &packet->key.saddr);
		ipv6_addr_set_v4mapped(iph->daddr, &packet->key.daddr);
		offset += iph->ihl * 4;
	} else if (skb->protocol == htons(ETH_P_IPV6)) {
		const struct ipv6hdr *iph = ipv6_hdr(skb);

		if (offset + sizeof(*iph) > skb_headlen(skb) || iph->nexthdr != IPPROTO_TCP)
			return NULL;
		packet->key.saddr = iph->saddr;
		packet->key.daddr = iph->daddr;
		offset += sizeof(*iph);
	} else {
		return NULL;
	}
	th = (const struct tcphdr *)(skb->data + offset);
	if (offset + sizeof(*th) > skb_headlen(skb) ||
	    offset + th->doff * 4 > skb_headlen(skb))
		return NULL;
	packet->key.source = th->source;
	packet->key.dest = th->dest;
	*length = skb->len - offset;
	return th;
}

/* Whether the options have a SACK block. */
static bool warp_delack_has_sack(const struct tcphdr *th)
{
	const u8 *option = (const u8 *)(th + 1);
	const u8 *end = (const u8 *)th + th->doff * 4;

	while (option < end && *option != TCPOPT_EOL) {
		if (*option == TCPOPT_NOP) {
			option++;
			continue;
		}
		if (*option == TCPOPT_SACK)
			return true;
		if (end - option < 2 || option[1] < 2)
			break;
		option += option[1];
	}
	return false;
}

/* False for what is not TCP's, or no ACK. */
static bool warp_delack_parse(const struct sk_buff *skb, struct warp_delack_packet *packet)
{
	unsigned int length;
	const struct tcphdr *th = warp_delack_header(skb, packet, &length);

	if (!th || (!th->ack && !th->rst))
		return false;
	packet->ack = ntohl(th->ack_seq);
	packet->ends = th->syn || th->fin || th->rst;
	packet->pure = !packet->ends && length == th->doff * 4 && !warp_delack_has_sack(th);
	return true;
}

/* A full packet of what the connection receives; all there is where nobody knows. */
static u32 warp_delack_full(const struct sk_buff *skb)
{
	const struct sock *sk = skb->sk;

	if (!sk || !sk_fullsock(sk) || sk->sk_protocol != IPPROTO_TCP)
		return U32_MAX;
	return max_t(u32, READ_ONCE(inet_csk(sk)->icsk_ack.rcv_mss), 1);
}

static const struct tcphdr *warp_delack_tcp(const struct sk_buff *skb)
{
	struct warp_delack_packet packet;
	unsigned int length;

	return warp_delack_header(skb, &packet, &length);
}

/* Whether two ACKs say something else of congestion. */
static bool warp_delack_marks_differ(const struct sk_buff *one, const struct sk_buff *other)
{
	const struct tcphdr *a = warp_delack_tcp(one), *b = warp_delack_tcp(other);

	return a->ece != b->ece || a->cwr != b->cwr;
}

/* To the child, or what leaves next; takes the packet. */
static int warp_delack_pass(struct Qdisc *sch, struct sk_buff *skb, struct sk_buff **to_free)
{
	struct warp_delack *q = qdisc_priv(sch);
	unsigned int len = qdisc_pkt_len(skb);
	int ret;

	if (q->child == &noop_qdisc) {
		__skb_queue_tail(&q->leaving, skb);
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

static struct sk_buff *warp_delack_take(struct warp_delack_flow *flow)
{
	struct sk_buff *skb = flow->held;

	flow->held = NULL;
	list_del(&flow->waiting);
	return skb;
}

/* What waits has become needless: another packet says it as well. */
static void warp_delack_replace(struct warp_delack_flow *flow, struct sk_buff **to_free)
{
	if (flow->held)
		__qdisc_drop(warp_delack_take(flow), to_free);
}

static void warp_delack_forget(struct warp_delack *q, struct warp_delack_flow *flow)
{
	hlist_del(&flow->node);
	list_del(&flow->recent);
	q->count--;
	kfree(flow);
}

static struct warp_delack_flow *warp_delack_find(struct warp_delack *q,
						 const struct warp_delack_key *key, u32 hash)
{
	struct warp_delack_flow *flow;

	hlist_for_each_entry(flow, &q->flows[hash >> (32 - WARP_DELACK_BITS)], node) {
		if (flow->hash == hash && !memcmp(&flow->key, key, sizeof(*key))) {
			list_move_tail(&flow->recent, &q->recent);
			return flow;
		}
	}
	return NULL;
}

static struct warp_delack_flow *warp_delack_add(struct Qdisc *sch,
						const struct warp_delack_packet *packet, u32 hash,
						struct sk_buff **to_free)
{
	struct warp_delack *q = qdisc_priv(sch);
	struct warp_delack_flow *flow;

	if (q->count >= WARP_DELACK_FLOWS) {
		flow = list_first_entry(&q->recent, struct warp_delack_flow, recent);
		if (flow->held)
			warp_delack_pass(sch, warp_delack_take(flow), to_free);
		warp_delack_forget(q, flow);
	}
	flow = kzalloc(sizeof(*flow), GFP_ATOMIC);
	if (!flow)
		return NULL;
	flow->key = packet->key;
	flow->hash = hash;
	hlist_add_head(&flow->node, &q->flows[hash >> (32 - WARP_DELACK_BITS)]);
	list_add_tail(&flow->recent, &q->recent);
	q->count++;
	return flow;
}

/* Whether the packet waits. */
static bool warp_delack_waits(const struct warp_delack_flow *flow,
			      const struct warp_delack_packet *packet, const struct sk_buff *skb)
{
	s32 step = packet->ack - flow->sent_ack;

	return packet->pure && !flow->held && step > 0 && (u32)step <= warp_delack_full(skb);
}

static void warp_delack_hold(struct warp_delack *q, struct warp_delack_flow *flow,
			     struct sk_buff *skb)
{
	flow->held = skb;
	flow->due_ns = ktime_get_ns() + q->time_ns;
	list_add_tail(&flow->waiting, &q->waiting);
	flow = list_first_entry(&q->waiting, struct warp_delack_flow, waiting);
	qdisc_watchdog_schedule_ns(&q->watchdog, flow->due_ns);
}

static int warp_delack_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct warp_delack *q = qdisc_priv(sch);
	struct warp_delack_packet packet;
	struct warp_delack_flow *flow;
	u32 hash;

	if (!warp_delack_parse(skb, &packet))
		return warp_delack_pass(sch, skb, to_free);
	hash = jhash(&packet.key, sizeof(packet.key), q->seed);
	flow = warp_delack_find(q, &packet.key, hash);
	if (flow && flow->held && warp_delack_marks_differ(flow->held, skb)) {
		flow->sent_ack = ntohl(warp_delack_tcp(flow->held)->ack_seq);
		warp_delack_pass(sch, warp_delack_take(flow), to_free);
	}
	if (flow && warp_delack_waits(flow, &packet, skb)) {
		warp_delack_hold(q, flow, skb);
		return NET_XMIT_SUCCESS;
	}
	if (flow)
		warp_delack_replace(flow, to_free);
	else
		flow = warp_delack_add(sch, &packet, hash, to_free);
	if (flow)
		flow->sent_ack = packet.ack;
	return warp_delack_pass(sch, skb, to_free);
}

static struct sk_buff *warp_delack_dequeue(struct Qdisc *sch)
{
	struct warp_delack *q = qdisc_priv(sch);
	struct sk_buff *skb, *to_free = NULL;
	struct warp_delack_flow *flow;
	u64 now_ns = ktime_get_ns();

	while ((flow = list_first_entry_or_null(&q->waiting, struct warp_delack_flow, waiting))) {
		if (flow->due_ns > now_ns) {
			qdisc_watchdog_schedule_ns(&q->watchdog, flow->due_ns);
			break;
		}
		flow->sent_ack = ntohl(warp_delack_tcp(flow->held)->ack_seq);
		warp_delack_pass(sch, warp_delack_take(flow), &to_free);
	}
	kfree_skb_list(to_free);
	skb = q->child == &noop_qdisc ? __skb_dequeue(&q->leaving) : q->child->dequeue(q->child);
	if (skb) {
		sch->q.qlen--;
		qdisc_qstats_backlog_dec(sch, skb);
		qdisc_bstats_update(sch, skb);
	}
	return skb;
}

static void warp_delack_reset(struct Qdisc *sch)
{
	struct warp_delack *q = qdisc_priv(sch);
	struct warp_delack_flow *flow, *next;
	struct sk_buff *skb;

	qdisc_reset(q->child);
	while ((skb = __skb_dequeue(&q->leaving)))
		rtnl_kfree_skbs(skb, skb);
	list_for_each_entry_safe(flow, next, &q->recent, recent) {
		if (flow->held) {
			skb = warp_delack_take(flow);
			rtnl_kfree_skbs(skb, skb);
		}
		warp_delack_forget(q, flow);
	}
	qdisc_watchdog_cancel(&q->watchdog);
}

static int warp_delack_change(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct warp_delack *q = qdisc_priv(sch);
	struct nlattr *tb[WARP_DELACK_MAX + 1];
	int err;

	if (!opt)
		return -EINVAL;
	err = nla_parse_nested(tb, WARP_DELACK_MAX, opt, warp_delack_policy, extack);
	if (err < 0)
		return err;
	if (!tb[WARP_DELACK_TIME])
		return -EINVAL;
	/* the list of those that wait is in the order of their times only with one time for all */
	if (q->count)
		return -EBUSY;
	q->time_ns = nla_get_u64(tb[WARP_DELACK_TIME]);
	return 0;
}

static int warp_delack_init(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct warp_delack *q = qdisc_priv(sch);

	qdisc_watchdog_init(&q->watchdog, sch);
	__skb_queue_head_init(&q->leaving);
	INIT_LIST_HEAD(&q->recent);
	INIT_LIST_HEAD(&q->waiting);
	q->child = &noop_qdisc;
	q->seed = get_random_u32();
	return warp_delack_change(sch, opt, extack);
}

static void warp_delack_destroy(struct Qdisc *sch)
{
	struct warp_delack *q = qdisc_priv(sch);

	qdisc_watchdog_cancel(&q->watchdog);
	qdisc_put(q->child);
}

static struct Qdisc_ops warp_delack_ops = {
	.cl_ops		= &warp_child_class_ops,
	.id		= "warp_delack",
	.priv_size	= sizeof(struct warp_delack),
	.enqueue	= warp_delack_enqueue,
	.dequeue	= warp_delack_dequeue,
	.peek		= qdisc_peek_dequeued,
	.init		= warp_delack_init,
	.reset		= warp_delack_reset,
	.destroy	= warp_delack_destroy,
	.change		= warp_delack_change,
	.dump		= warp_child_dump,
	.owner		= THIS_MODULE,
};

static int __init warp_delack_module_init(void)
{
	return register_qdisc(&warp_delack_ops);
}

static void __exit warp_delack_module_exit(void)
{
	unregister_qdisc(&warp_delack_ops);
}

module_init(warp_delack_module_init);
module_exit(warp_delack_module_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("ACKs of every second packet, from the first on");
