/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Send packets one by one.
 *
 * The stack gathers about 1 ms worth of them (tcp_tso_autosize() and
 * tcp_tso_should_defer()), more below 3 ms of RTT (tcp_tso_rtt_log), even where
 * the interface has TSO and GSO off.  The bursts queue behind themselves (3
 * packets at 50 Mbit/s), which a delay-based algorithm takes for a backlog, and
 * packets that are gathered cannot be put in another order.
 *
 * The socket's own limit of segments ends that at any RTT and pacing rate.  What
 * else rests on the pacing rate, as TCP small queues, stays as it is for other
 * algorithms.  A new route sets the limit again (sk_setup_caps()); the stack
 * asks min_tso_segs() right before each use, which is where it is held.
 */
#ifndef WARPBED_CC_SINGLE_H
#define WARPBED_CC_SINGLE_H

#include "cc_common.h"

/* For init(), together with .min_tso_segs = cc_single_tso_segs. */
static inline void cc_send_singly(struct sock *sk)
{
	sk->sk_gso_max_segs = 1;
}

static inline u32 cc_single_tso_segs(struct sock *sk)
{
	sk->sk_gso_max_segs = 1;
	return 1;
}

/* For release(): the limit that the route gives, as sk_setup_caps() has it */
static inline void cc_send_gathered(struct sock *sk)
{
	const struct dst_entry *dst = __sk_dst_get(sk);

	if (dst && sk_can_gso(sk))
		sk->sk_gso_max_segs =
			max_t(u32, READ_ONCE(READ_ONCE(dst->dev)->gso_max_segs), 1);
}

#endif /* WARPBED_CC_SINGLE_H */
