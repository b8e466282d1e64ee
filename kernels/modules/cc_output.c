// SPDX-License-Identifier: GPL-2.0-only
/* A stage between one connection's TCP and IP, see cc_output.h */
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <net/mptcp.h>
#include "cc_output.h"

#define CC_OUTPUT_FAMILIES	4	/* IPv4, IPv6, IPv4-mapped, one more */
#define CC_OUTPUT_BUSY_NS	(100 * NSEC_PER_USEC)

struct cc_output_family {
	struct inet_connection_sock_af_ops ops;
	const struct inet_connection_sock_af_ops *orig;
};

static struct cc_output_family cc_output_families[CC_OUTPUT_FAMILIES];
static DEFINE_SPINLOCK(cc_output_lock);

static void cc_output_put(struct cc_output *out)
{
	if (refcount_dec_and_test(&out->refs))
		kfree(out);
}

void cc_output_send(struct sock *sk, struct sk_buff *skb)
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

static void cc_output_arm(struct cc_output *out, u64 at_ns)
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
static void cc_output_due(struct cc_output *out)
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

static enum hrtimer_restart cc_output_expired(struct hrtimer *timer)
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
static void cc_output_flush(struct cc_output *out)
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
void cc_output_at(struct cc_output *out, struct sk_buff *skb, u64 at_ns)
{
	*cc_output_departure(skb) = at_ns;
	__skb_queue_tail(&out->queue, skb);
	cc_output_due(out);
}

/* For place(): keep the packet until the next one comes, or for so long. */
void cc_output_hold(struct cc_output *out, struct sk_buff *skb, u64 until_ns)
{
	out->held = skb;
	out->held_until_ns = until_ns;
	cc_output_arm(out, until_ns);
}

/*
 * For place(): is the packet after this one going to be sent at once?  TCP has
 * not counted the present one, and it is still at the head of the queue.
 */
bool cc_output_more(const struct sock *sk)
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

static int cc_output_xmit(struct sock *sk, struct sk_buff *skb,
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
static const struct inet_connection_sock_af_ops *
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
void cc_output_stop(struct sock *sk)
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
struct cc_output *
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
void cc_output_exit(void)
{
	synchronize_rcu_tasks();
	synchronize_rcu();
}
