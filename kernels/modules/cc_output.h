/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A stage between one connection's TCP and IP, which may delay its new data and
 * change its order (SSIPP and SPM send pairs inverted, PaSt sends trains).
 *
 * It takes the place of icsk_af_ops->queue_xmit() of that socket, as MPTCP does.
 * Neither a qdisc nor a patch of the kernel is needed: a qdisc would have to be
 * put on every interface, would see other flows' packets, knows nothing of cwnd
 * and ssthresh and shares its queue with what else is below IP; a patch would
 * keep the modules from the kernels of a distribution.
 *
 * Only new data in packets of one segment is held.  Anything else (ACKs, FIN,
 * retransmissions, GSO) first lets go what is held, so nothing is overtaken that
 * the algorithm does not want overtaken, and nothing is held for good: a timer
 * sends it.  A held packet still counts for TCP small queues, so no more than
 * two or three of a connection wait here.
 *
 * All of it runs under the socket's lock.  The timer holds a reference to the
 * socket and to the stage while it is queued, each expiry or cancelling gives
 * them back.
 */
#ifndef WARPBED_CC_OUTPUT_H
#define WARPBED_CC_OUTPUT_H

#include <linux/hrtimer.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <net/inet_connection_sock.h>
#include <net/mptcp.h>
#include "cc_common.h"

#define CC_OUTPUT_FAMILIES	4	/* IPv4, IPv6, IPv4-mapped, one more */
#define CC_OUTPUT_BUSY_NS	(100 * NSEC_PER_USEC)

struct cc_output {
	struct hrtimer timer;
	struct sock *sk;
	struct sk_buff_head queue;	/* in the order of departure */
	struct sk_buff *held;		/* waits for the packet after it */
	/* decide on a packet of new data: hold it or give it a departure */
	void (*place)(struct sock *sk, struct sk_buff *skb);
	u64 held_until_ns;
	u32 high_seq;			/* end of the newest data seen */
	refcount_t refs;
	bool closed;
};

/* The first member of the private area of every module that has a stage. */
struct cc_output_private {
	struct cc_output *out;		/* NULL: none */
};

struct cc_output_family {
	struct inet_connection_sock_af_ops ops;
	const struct inet_connection_sock_af_ops *orig;
};

static struct cc_output_family cc_output_families[CC_OUTPUT_FAMILIES];
static DEFINE_SPINLOCK(cc_output_lock);

static inline struct cc_output *cc_output(const struct sock *sk)
{
	return ((struct cc_output_private *)inet_csk_ca(sk))->out;
}

/* The departure of a queued packet; IP uses the beginning of the area. */
static inline u64 *cc_output_departure(struct sk_buff *skb)
{
	BUILD_BUG_ON(max(sizeof(struct inet_skb_parm),
			 sizeof(struct inet6_skb_parm)) > 32);
	return (u64 *)(skb->cb + 32);
}

static inline void cc_output_put(struct cc_output *out)
{
	if (refcount_dec_and_test(&out->refs))
		kfree(out);
}

static inline void cc_output_send(struct sock *sk, struct sk_buff *skb)
{
	struct cc_output_family *family;

	if (sk->sk_state == TCP_CLOSE) {
		kfree_skb(skb);
		return;
	}
	*cc_output_departure(skb) = 0;
	family = container_of(inet_csk(sk)->icsk_af_ops,
			      struct cc_output_family, ops);
	family->orig->queue_xmit(sk, skb, &inet_sk(sk)->cork.fl);
}

static inline void cc_output_arm(struct cc_output *out, u64 at_ns)
{
	if (hrtimer_is_queued(&out->timer)) {
		if (ktime_to_ns(hrtimer_get_expires(&out->timer)) <= at_ns)
			return;
		if (hrtimer_try_to_cancel(&out->timer) == 1) {
			__sock_put(out->sk);
			cc_output_put(out);
		}
	}
	sock_hold(out->sk);
	refcount_inc(&out->refs);
	hrtimer_start(&out->timer, ns_to_ktime(at_ns),
		      HRTIMER_MODE_ABS_PINNED_SOFT);
}

/* Send what is due and wait for what is not. */
static inline void cc_output_due(struct cc_output *out)
{
	u64 now_ns = ktime_get_ns();
	struct sk_buff *skb;

	while ((skb = skb_peek(&out->queue)) &&
	       *cc_output_departure(skb) <= now_ns)
		cc_output_send(out->sk, __skb_dequeue(&out->queue));
	if (out->held && out->held_until_ns <= now_ns && !skb) {
		skb = out->held;
		out->held = NULL;
		cc_output_send(out->sk, skb);
		return;
	}
	if (skb)
		cc_output_arm(out, *cc_output_departure(skb));
	else if (out->held)
		cc_output_arm(out, out->held_until_ns);
}

static inline enum hrtimer_restart cc_output_expired(struct hrtimer *timer)
{
	struct cc_output *out = container_of(timer, struct cc_output, timer);
	struct sock *sk = out->sk;

	bh_lock_sock(sk);
	if (out->closed)
		;
	else if (sock_owned_by_user(sk))
		cc_output_arm(out, ktime_get_ns() + CC_OUTPUT_BUSY_NS);
	else
		cc_output_due(out);
	bh_unlock_sock(sk);
	cc_output_put(out);
	sock_put(sk);
	return HRTIMER_NORESTART;
}

/* Everything that waits leaves now, in its order. */
static inline void cc_output_flush(struct cc_output *out)
{
	struct sk_buff *skb;

	while ((skb = __skb_dequeue(&out->queue)))
		cc_output_send(out->sk, skb);
	if (out->held) {
		skb = out->held;
		out->held = NULL;
		cc_output_send(out->sk, skb);
	}
}

/* For place(): the packet leaves at this time, after those placed before. */
static inline void cc_output_at(struct cc_output *out, struct sk_buff *skb,
				u64 at_ns)
{
	*cc_output_departure(skb) = at_ns;
	__skb_queue_tail(&out->queue, skb);
	cc_output_due(out);
}

/* For place(): keep the packet until the next one comes, or for so long. */
static inline void cc_output_hold(struct cc_output *out, struct sk_buff *skb,
				  u64 until_ns)
{
	out->held = skb;
	out->held_until_ns = until_ns;
	cc_output_arm(out, until_ns);
}

/*
 * For place(): is the packet after this one going to be sent at once?  TCP has
 * not counted the present one, and it is still at the head of the queue.
 */
static inline bool cc_output_more(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	const struct sk_buff *head = tcp_send_head(sk), *next;

	if (!head || tcp_skb_is_last(sk, head) ||
	    tcp_packets_in_flight(tp) + 2 > tcp_snd_cwnd(tp))
		return false;
	next = skb_queue_next(&sk->sk_write_queue, head);
	return !after(TCP_SKB_CB(next)->seq + min(next->len, tp->mss_cache),
		      tcp_wnd_end(tp));
}

static inline int cc_output_xmit(struct sock *sk, struct sk_buff *skb,
				 struct flowi *fl)
{
	const struct tcphdr *th = tcp_hdr(skb);
	struct cc_output *out = cc_output(sk);
	u32 bytes = skb->len - __tcp_hdrlen(th), seq = ntohl(th->seq);

	if (!bytes || th->syn || th->fin || th->rst || skb_is_gso(skb) ||
	    before(seq, out->high_seq)) {
		cc_output_flush(out);
		cc_output_send(sk, skb);
		if (bytes && after(seq + bytes, out->high_seq))
			out->high_seq = seq + bytes;
		return 0;
	}
	out->high_seq = seq + bytes;
	out->place(sk, skb);
	return 0;
}

/* The operations of this kind of socket with the stage's transmission. */
static inline const struct inet_connection_sock_af_ops *
cc_output_ops(const struct inet_connection_sock_af_ops *orig)
{
	struct cc_output_family *family;

	for (family = cc_output_families;
	     family < cc_output_families + CC_OUTPUT_FAMILIES; family++) {
		if (!family->orig) {
			family->ops = *orig;
			family->ops.queue_xmit = cc_output_xmit;
			family->orig = orig;
		}
		if (family->orig == orig)
			return &family->ops;
	}
	return NULL;
}

/* For release(), and when the stage is no longer needed */
static inline void cc_output_stop(struct sock *sk)
{
	struct inet_connection_sock *icsk = inet_csk(sk);
	struct cc_output_private *private = inet_csk_ca(sk);
	struct cc_output *out = private->out;

	if (!out)
		return;
	if (icsk->icsk_af_ops->queue_xmit == cc_output_xmit) {
		cc_output_flush(out);
		icsk->icsk_af_ops = container_of(icsk->icsk_af_ops,
						 struct cc_output_family,
						 ops)->orig;
	} else {
		/* IPV6_ADDRFORM has replaced the operations */
		__skb_queue_purge(&out->queue);
		kfree_skb(out->held);
	}
	private->out = NULL;
	out->closed = true;
	if (hrtimer_try_to_cancel(&out->timer) == 1) {
		__sock_put(sk);
		cc_output_put(out);
	}
	cc_output_put(out);
}

/*
 * For init(): size bytes that begin with a struct cc_output.  Without memory, or
 * on a socket of MPTCP, there is none and packets leave in order.
 */
static inline struct cc_output *
cc_output_start(struct sock *sk, size_t size,
		void (*place)(struct sock *sk, struct sk_buff *skb))
{
	struct inet_connection_sock *icsk = inet_csk(sk);
	struct cc_output_private *private = inet_csk_ca(sk);
	const struct inet_connection_sock_af_ops *ops;
	struct cc_output *out;

	private->out = NULL;
	if (sk_is_mptcp(sk))
		return NULL;
	spin_lock_bh(&cc_output_lock);
	ops = cc_output_ops(icsk->icsk_af_ops);
	spin_unlock_bh(&cc_output_lock);
	out = ops ? kzalloc(size, GFP_ATOMIC) : NULL;
	if (!out)
		return NULL;
	compat_hrtimer_setup(&out->timer, cc_output_expired, CLOCK_MONOTONIC,
			     HRTIMER_MODE_ABS_PINNED_SOFT);
	__skb_queue_head_init(&out->queue);
	refcount_set(&out->refs, 1);
	out->sk = sk;
	out->place = place;
	out->high_seq = tcp_sk(sk)->snd_nxt;
	icsk->icsk_af_ops = ops;
	private->out = out;
	return out;
}

/*
 * For the module's exit, after unregistering: a system call may just have read
 * the operations of a socket, a timer may just end.
 */
static inline void cc_output_exit(void)
{
	synchronize_rcu_tasks();
	synchronize_rcu();
}

#endif /* WARPBED_CC_OUTPUT_H */
