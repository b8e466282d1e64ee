/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Loss recovery as Reno had it before NewReno and SACK (RFC 2581), on a stack
 * that has both.  Fast recovery ends with the first ACK of new data: a second
 * loss in a window needs three duplicate ACKs of its own and halves the window
 * again, and a third one waits for the timer ("TCP Reno retransmits the first two
 * packets by the fast retransmit algorithm, and then the timeout occurs",
 * Tokuda 2003 s4.2; Fall and Floyd 1996).
 *
 * How, with hooks only:
 *  - The connection forgets that SACK was agreed on, so the stack counts
 *    duplicate ACKs; there is no RACK and no tail loss probe then.
 *  - high_seq right behind snd_una: any ACK of new data ends the recovery, and
 *    with it the duplicate ACKs that were counted.
 *  - prior_cwnd at its largest makes proportional rate reduction what it replaced:
 *    it repairs one packet and then sends nothing until less than ssthresh is in
 *    flight.  (From ssthresh x ACKs = 2^32 on it sends one packet too many.)
 *  - No undo, no F-RTO.
 *  - After `most` fast retransmits in a window, the dupACK threshold is out of
 *    reach until all that was sent before the first is ACKed.
 *
 * What stays the kernel's: limited transmit (RFC 3042), and after a timeout no
 * fast retransmit until all that was sent before it is ACKed, as in RFC 2582.
 */
#ifndef WARPBED_CC_CLASSIC_H
#define WARPBED_CC_CLASSIC_H

#include "cc_common.h"

#define CC_CLASSIC_NEVER	1000000000U	/* duplicate ACKs */

struct cc_classic {
	u32 recover;			/* snd_nxt at the window's first loss */
	u8 retransmits;			/* fast ones in this window */
	u8 sack_ok:3;			/* the stack's, to be given back */
	u8 on:1;
};

static inline u32 cc_classic_dupacks(const struct sock *sk)
{
	return READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_reordering);
}

/* SACK can only be given up or back while nothing is counted in its terms. */
static inline bool cc_classic_quiet(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	return inet_csk(sk)->icsk_ca_state == TCP_CA_Open &&
	       !tp->sacked_out && !tp->lost_out && !tp->retrans_out;
}

static inline void cc_classic_forget_sack(struct sock *sk, struct cc_classic *c)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (tp->rx_opt.sack_ok && cc_classic_quiet(sk)) {
		c->sack_ok = tp->rx_opt.sack_ok;
		tp->rx_opt.sack_ok = 0;
	}
}

/* init() */
static inline void cc_classic_begin(struct sock *sk, struct cc_classic *c)
{
	memset(c, 0, sizeof(*c));
	c->on = 1;
	cc_classic_forget_sack(sk, c);
}

/* release() */
static inline void cc_classic_end(struct sock *sk, const struct cc_classic *c)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (!c->on)
		return;
	tp->reordering = cc_classic_dupacks(sk);
	if (c->sack_ok && cc_classic_quiet(sk))
		tp->rx_opt.sack_ok = c->sack_ok;
}

/* in_ack_event(): comes before the stack judges the ACK */
static inline void cc_classic_ack(struct sock *sk, struct cc_classic *c, u32 most)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (!c->on)
		return;
	cc_classic_forget_sack(sk, c);
	tp->frto = 0;
	if (c->retransmits && !before(tp->snd_una, c->recover))
		c->retransmits = 0;
	tp->reordering = most && c->retransmits >= most ? CC_CLASSIC_NEVER :
							  cc_classic_dupacks(sk);
}

/* set_state(), before the module's own reaction */
static inline void cc_classic_state(struct sock *sk, struct cc_classic *c,
				    u8 new_state)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (!c->on || new_state < TCP_CA_Recovery)
		return;
	tp->undo_marker = 0;
	tp->prior_ssthresh = 0;
	if (new_state == TCP_CA_Recovery) {
		if (!c->retransmits)
			c->recover = tp->snd_nxt;
		c->retransmits++;
		tp->high_seq = tp->snd_una + 1;
		tp->prior_cwnd = U32_MAX;
		return;
	}
	c->retransmits = 0;
	if (tp->prior_cwnd == U32_MAX) {	/* timeout during fast recovery */
		tp->prior_cwnd = tp->snd_ssthresh;
		tp->snd_ssthresh = max(tp->snd_ssthresh >> 1, 2U);
	}
}

/* cwnd_event(): the stack itself sets cwnd only where it could undo that */
static inline void cc_classic_event(struct sock *sk, const struct cc_classic *c,
				    enum tcp_ca_event event)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (!c->on || event != CA_EVENT_COMPLETE_CWR ||
	    tp->snd_ssthresh >= TCP_INFINITE_SSTHRESH)
		return;
	tp->prior_cwnd = tp->snd_ssthresh;
	tcp_snd_cwnd_set(tp, tp->snd_ssthresh);
}

#endif /* WARPBED_CC_CLASSIC_H */
