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
#include <net/inet_connection_sock.h>
#include "cc_common.h"

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
void cc_output_send(struct sock *sk, struct sk_buff *skb);
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
