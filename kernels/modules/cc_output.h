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
 * two or three of a connection, or what its pacing rate sends in a millisecond,
 * wait here.
 *
 * Packets are placed, queued and sent by whoever has the socket's lock.  The timer
 * waits for a moment in which nobody has it; while it is armed it holds a
 * reference to the socket and to the stage.
 *
 * What the sender's own queue refuses is said to TCP, as without a stage.
 */
#ifndef WARPBED_CC_OUTPUT_H
#define WARPBED_CC_OUTPUT_H

#include <linux/hrtimer.h>
#include <net/inet_connection_sock.h>
#include "cc_common.h"

struct cc_output {
	struct hrtimer timer;
	spinlock_t lock;		/* of armed, due_ns, closed */
	bool armed;			/* the timer has its references */
	bool closed;
	u64 due_ns;			/* its expiry */
	struct sock *sk;
	/* of the socket before the stage */
	const struct inet_connection_sock_af_ops *orig;
	struct sk_buff_head queue;	/* in the order of departure */
	struct sk_buff *held;		/* waits for the packet after it */
	/* decide on a packet of new data: hold it or give it a departure */
	void (*place)(struct sock *sk, struct sk_buff *skb);
	u64 held_until_ns;
	ktime_t stamp;			/* of the last packet that left */
	const struct sk_buff *current_skb;	/* under transmission by TCP */
	int current_err;		/* and what became of it */
	bool refused;			/* a packet was, by the queue below */
	u32 high_seq;			/* end of the newest data seen */
	refcount_t refs;
};

/* The first member of the private area of every module that has a stage. */
struct cc_output_private {
	struct cc_output *out;		/* NULL: none */
};

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

/* For place() */
void cc_output_send(struct cc_output *out, struct sk_buff *skb);
void cc_output_at(struct cc_output *out, struct sk_buff *skb, u64 at_ns);
void cc_output_hold(struct cc_output *out, struct sk_buff *skb, u64 until_ns);
bool cc_output_more(const struct sock *sk);

/* For init(), release() and the module's exit */
struct cc_output *cc_output_start(struct sock *sk, size_t size,
				  void (*place)(struct sock *sk,
						struct sk_buff *skb));
void cc_output_stop(struct sock *sk);
void cc_output_exit(void);

#endif /* WARPBED_CC_OUTPUT_H */
