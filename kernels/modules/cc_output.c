// SPDX-License-Identifier: GPL-2.0-only
/*
 * A stage between one connection's TCP and IP, see cc_output.h
 *
 * The timer and the owner of the socket may arm it at once on two CPUs, so what
 * says whether it is armed is under the stage's own lock, and exactly while it is
 * armed it holds one reference to the socket and one to the stage.
 * tests/models/cc_output.pml is a model of it, checked for all interleavings.
 */
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <net/mptcp.h>
#include "cc_output.h"
#include "cc_single.h"

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

/*
 * Send by the operations that the socket had, which IPV6_ADDRFORM may have taken
 * away from it since; an IPv4-mapped socket's are those of IPv4.
 *
 * fq sorts a flow's packets by the time that TCP has stamped on them, so the
 * stamps must rise in the order of departure.
 */
void cc_output_send(struct cc_output *out, struct sk_buff *skb)
{
	struct sock *sk = out->sk;
	bool current_one = skb == out->current_skb;
	int err;

	if (sk->sk_state == TCP_CLOSE) {
		kfree_skb(skb);
		return;
	}
	*cc_output_departure(skb) = 0;
	if (ktime_before(skb->tstamp, out->stamp))
		skb->tstamp = out->stamp;
	out->stamp = skb->tstamp;
	err = out->orig->queue_xmit(sk, skb, &inet_sk(sk)->cork.fl);
	if (err > 0)
		out->refused = true;
	if (current_one)
		out->current_err = err;
}

/* Wake up at this time at the latest. */
static void cc_output_arm(struct cc_output *out, u64 at_ns)
{
	spin_lock_bh(&out->lock);
	if (!out->armed || at_ns < out->due_ns) {
		if (!out->armed) {
			sock_hold(out->sk);
			refcount_inc(&out->refs);
		}
		out->armed = true;
		out->due_ns = at_ns;
		hrtimer_start(&out->timer, ns_to_ktime(at_ns),
			      HRTIMER_MODE_ABS_PINNED_SOFT);
	}
	spin_unlock_bh(&out->lock);
}

/* Send what is due and wait for what is not. */
static void cc_output_due(struct cc_output *out)
{
	u64 now_ns = ktime_get_ns();
	struct sk_buff *skb;

	while ((skb = skb_peek(&out->queue)) &&
	       *cc_output_departure(skb) <= now_ns)
		cc_output_send(out, __skb_dequeue(&out->queue));
	if (out->held && out->held_until_ns <= now_ns && !skb) {
		skb = out->held;
		out->held = NULL;
		cc_output_send(out, skb);
		return;
	}
	if (skb)
		cc_output_arm(out, *cc_output_departure(skb));
	else if (out->held)
		cc_output_arm(out, out->held_until_ns);
}

/*
 * The socket is this function's.  What the sender's own queue refuses here TCP
 * hears of as it does for a packet that it sends itself; that ends the stage.
 */
static void cc_output_serve(struct cc_output *out)
{
	out->refused = false;
	cc_output_due(out);
	if (out->refused)
		tcp_enter_cwr(out->sk);
}

static enum hrtimer_restart cc_output_expired(struct hrtimer *timer)
{
	struct cc_output *out = container_of(timer, struct cc_output, timer);
	struct sock *sk = out->sk;
	bool busy;

	bh_lock_sock(sk);
	spin_lock(&out->lock);
	if (hrtimer_is_queued(timer)) {
		/* armed for an earlier time meanwhile: the references are its */
		spin_unlock(&out->lock);
		bh_unlock_sock(sk);
		return HRTIMER_NORESTART;
	}
	busy = !out->closed && sock_owned_by_user(sk);
	if (busy) {
		out->due_ns = ktime_get_ns() + CC_OUTPUT_BUSY_NS;
		hrtimer_set_expires(timer, ns_to_ktime(out->due_ns));
	}
	out->armed = busy;
	spin_unlock(&out->lock);
	if (!busy && !out->closed)
		cc_output_serve(out);
	bh_unlock_sock(sk);
	if (busy)
		return HRTIMER_RESTART;
	cc_output_put(out);
	sock_put(sk);
	return HRTIMER_NORESTART;
}

/* Everything that waits leaves now, in its order. */
static void cc_output_flush(struct cc_output *out)
{
	struct sk_buff *skb;

	while ((skb = __skb_dequeue(&out->queue)))
		cc_output_send(out, skb);
	if (out->held) {
		skb = out->held;
		out->held = NULL;
		cc_output_send(out, skb);
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

/*
 * Returns what became of this packet, as TCP is used to: an error if it was not
 * sent.  NET_XMIT_CN if it was, or waits, and another one was refused.
 */
static int cc_output_xmit(struct sock *sk, struct sk_buff *skb,
			  struct flowi *fl)
{
	const struct tcphdr *th = tcp_hdr(skb);
	struct cc_output *out = cc_output(sk);
	u32 bytes = skb->len - __tcp_hdrlen(th), seq = ntohl(th->seq);

	out->current_skb = skb;
	out->current_err = 0;
	out->refused = false;
	if (!bytes || th->syn || th->fin || th->rst || skb_is_gso(skb) ||
	    before(seq, out->high_seq)) {
		cc_output_flush(out);
		cc_output_send(out, skb);
		if (bytes && after(seq + bytes, out->high_seq))
			out->high_seq = seq + bytes;
	} else {
		out->high_seq = seq + bytes;
		out->place(sk, skb);
	}
	out->current_skb = NULL;
	/*
	 * The limit of one segment was for this transmission.  Left in place it
	 * would make the writer hand over packet by packet, and none would ever
	 * see the one after it.
	 */
	cc_send_gathered(sk);
	if (out->current_err)
		return out->current_err;
	return out->refused ? NET_XMIT_CN : NET_XMIT_SUCCESS;
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
	bool armed;

	if (!out)
		return;
	cc_output_flush(out);
	/* IPV6_ADDRFORM may have replaced the operations */
	if (icsk->icsk_af_ops->queue_xmit == cc_output_xmit)
		icsk->icsk_af_ops = out->orig;
	private->out = NULL;
	spin_lock_bh(&out->lock);
	out->closed = true;
	armed = out->armed && hrtimer_try_to_cancel(&out->timer) == 1;
	if (armed)
		out->armed = false;
	spin_unlock_bh(&out->lock);
	if (armed) {
		__sock_put(sk);
		cc_output_put(out);
	}
	cc_output_put(out);
}

/*
 * For init(): size bytes that begin with a struct cc_output.  On a socket of
 * MPTCP there is none and packets leave in order, as without memory, which the
 * kernel's log says.
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
	if (!ops)
		return NULL;
	out = kzalloc(size, GFP_ATOMIC | __GFP_NOWARN);
	if (!out) {
		net_warn_ratelimited("%s: no memory, port %u starts as Reno\n",
				     icsk->icsk_ca_ops->name,
				     inet_sk(sk)->inet_num);
		return NULL;
	}
	compat_hrtimer_setup(&out->timer, cc_output_expired, CLOCK_MONOTONIC,
			     HRTIMER_MODE_ABS_PINNED_SOFT);
	spin_lock_init(&out->lock);
	__skb_queue_head_init(&out->queue);
	refcount_set(&out->refs, 1);
	out->sk = sk;
	out->orig = icsk->icsk_af_ops;
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
