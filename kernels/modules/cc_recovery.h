/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Hooks of modules that lose as Reno does, by the parameter classic_retransmits:
 * with the kernel's recovery, or with classic Reno's (cc_classic.h) and a window
 * that grows by ACKs, not by packets, as with the Agent/TCP/Reno of ns-2.
 *
 * A module that includes this is linked with cc_recovery.c (Kbuild) and so has a
 * parameter of its own, which holds for connections that begin after it was set.
 * The connection's part lies at the end of its private area: see
 * CC_RECOVERY_ROOM.  Include it after cc_trace.h.
 */
#ifndef WARPBED_CC_RECOVERY_H
#define WARPBED_CC_RECOVERY_H

#include "cc_classic.h"

/* What is left of the private area for the module */
#define CC_RECOVERY_ROOM	(ICSK_CA_PRIV_SIZE - sizeof(struct cc_classic))

extern unsigned int cc_classic_retransmits;

static inline struct cc_classic *cc_recovery(const struct sock *sk)
{
	return (struct cc_classic *)((u8 *)inet_csk_ca(sk) + CC_RECOVERY_ROOM);
}

/* In init() */
static inline void cc_recovery_begin(struct sock *sk)
{
	if (READ_ONCE(cc_classic_retransmits))
		cc_classic_begin(sk, cc_recovery(sk));
	else
		cc_recovery(sk)->on = 0;
}

/* In release() */
static inline void cc_recovery_end(struct sock *sk)
{
	cc_classic_end(sk, cc_recovery(sk));
}

/* In cong_avoid(): what an ACK of so many packets counts for */
static inline u32 cc_recovery_counts(const struct sock *sk, u32 acked)
{
	return cc_recovery(sk)->on ? 1 : acked;
}

static inline void cc_recovery_in_ack_event(struct sock *sk, u32 flags)
{
	cc_classic_ack(sk, cc_recovery(sk), READ_ONCE(cc_classic_retransmits));
}

static inline void cc_recovery_set_state(struct sock *sk, u8 new_state)
{
	cc_classic_state(sk, cc_recovery(sk), new_state);
	trace_cc_hook(sk, CC_STATE, new_state, -1);
}

static inline void cc_recovery_cwnd_event(struct sock *sk,
					  enum tcp_ca_event event)
{
	if (!cc_recovery(sk)->on || event != CA_EVENT_COMPLETE_CWR)
		return;
	cc_classic_event(sk, cc_recovery(sk), event);
	trace_cc_hook(sk, CC_EVENT, event, -1);
}

#endif /* WARPBED_CC_RECOVERY_H */
