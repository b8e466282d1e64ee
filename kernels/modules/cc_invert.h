/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Inverted packet pairs: packets n and n + 1 leave as n + 1, n.  The receiver
 * answers n + 1 at once with a duplicate ACK for n - 1, also where it delays
 * ACKs, and then n with an ACK for n + 1 (Yu 2009, chapter 3).
 *
 * The pairs under way are kept in a ring; with more than CC_INVERT_PAIRS of them
 * packets leave in order.
 *
 * The kernel's loss detection (RACK, RFC 8985) takes n for lost once n + 1 is
 * SACKed and a quarter of the least RTT has gone by, which a gap between the two
 * may well last; ns-2's Reno, in which the thesis measures, knows no such clock.
 * So its reordering window is one smoothed RTT while pairs are under way.  A
 * duplicate ACK that no pair explains ends the pairs and this with them, so a
 * real loss waits no longer than without.  Pairs that all came back leave no
 * trace in the kernel's own measure of reordering.
 */
#ifndef WARPBED_CC_INVERT_H
#define WARPBED_CC_INVERT_H

#include "cc_output.h"

#define CC_INVERT_PAIRS	512

struct cc_invert_pair {
	u32 seq;			/* of n */
	u32 answered_us;		/* time of the duplicate ACK */
	u32 gap_us;			/* between the departures */
	u8 kind;			/* the module's */
	bool answered;
};

struct cc_invert {
	struct cc_output out;
	u32 begin, end;			/* of the ring, counted on */
	u32 sacked_out, snd_wnd, una;	/* at the last ACK */
	u32 reord_seen;			/* tp->reord_seen without our pairs */
	bool patient;			/* the reordering window is ours */
	struct cc_invert_pair pair[CC_INVERT_PAIRS];
};

/* What an ACK says of the pairs */
enum cc_invert_answer {
	CC_INVERT_OTHER,
	CC_INVERT_FIRST,		/* the duplicate ACK that a pair provokes */
	CC_INVERT_SECOND,		/* a pair is complete */
	CC_INVERT_DUPLICATE,		/* a duplicate ACK that no pair explains */
};

static inline bool cc_invert_full(const struct cc_invert *inv)
{
	return inv->end - inv->begin >= CC_INVERT_PAIRS;
}

static inline bool cc_invert_none(const struct cc_invert *inv)
{
	return inv->end == inv->begin;
}

static inline struct cc_invert_pair *cc_invert_at(struct cc_invert *inv, u32 i)
{
	return &inv->pair[i % CC_INVERT_PAIRS];
}

/* At most srtt, whatever the number of quarters of the least RTT */
static inline void cc_invert_be_patient(struct cc_invert *inv,
					struct tcp_sock *tp)
{
	if (!inv->patient)
		inv->reord_seen = tp->reord_seen;
	inv->patient = true;
	tp->rack.reo_wnd_steps = U8_MAX;
	tp->rack.reo_wnd_persist = TCP_RACK_RECOVERY_THRESH;
}

/* Instead of cc_output_stop() */
static inline void cc_invert_stop(struct sock *sk)
{
	struct cc_invert *inv = (struct cc_invert *)cc_output(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (inv && inv->patient) {
		tp->rack.reo_wnd_steps = 1;
		tp->rack.reo_wnd_persist = 0;
		if (cc_invert_none(inv))
			tp->reord_seen = inv->reord_seen;
	}
	cc_output_stop(sk);
}

/*
 * For place(): skb and the held packet leave as an inverted pair, the held one
 * gap_ns after the other.  cc_invert_full() must be false.
 */
static inline struct cc_invert_pair *
cc_invert_send(struct cc_invert *inv, struct sk_buff *skb, u64 at_ns,
	       u32 gap_ns, u8 kind)
{
	struct cc_invert_pair *pair = cc_invert_at(inv, inv->end++);
	struct sk_buff *first = inv->out.held;

	cc_invert_be_patient(inv, tcp_sk(inv->out.sk));
	inv->out.held = NULL;
	*pair = (struct cc_invert_pair){
		.seq = ntohl(tcp_hdr(first)->seq),
		.gap_us = gap_ns / NSEC_PER_USEC,
		.kind = kind,
	};
	*cc_output_departure(skb) = at_ns;
	__skb_queue_tail(&inv->out.queue, skb);
	cc_output_at(&inv->out, first, at_ns + gap_ns);
	return pair;
}

/*
 * No new data, before TCP judges it.  Without SACK that may be a change of the
 * window as well, which a receiver's duplicate ACKs often bring with them: a pair
 * explains it in any case, and only one with the same window is real without one.
 */
static inline bool cc_invert_is_dup(const struct cc_invert *inv,
				    const struct tcp_sock *tp, u32 acked)
{
	if (acked || !tp->packets_out || tp->snd_una != inv->una)
		return false;
	return !tcp_is_sack(tp) || tp->sacked_out > inv->sacked_out;
}

/*
 * For pkts_acked(): what this ACK is; *pair is the one that it is about.  Valid
 * until the next call.
 */
static inline enum cc_invert_answer
cc_invert_ack(struct cc_invert *inv, const struct tcp_sock *tp, u32 acked,
	      struct cc_invert_pair **pair)
{
	enum cc_invert_answer answer = CC_INVERT_OTHER;
	bool dup = cc_invert_is_dup(inv, tp, acked);
	bool window = !tcp_is_sack(tp) && tp->snd_wnd != inv->snd_wnd;

	inv->sacked_out = tp->sacked_out;
	inv->snd_wnd = tp->snd_wnd;
	inv->una = tp->snd_una;
	*pair = NULL;
	while (!cc_invert_none(inv) &&
	       before(cc_invert_at(inv, inv->begin)->seq, tp->snd_una)) {
		/* only a pair that an ACK ends by itself gives a gap */
		answer = *pair ? CC_INVERT_OTHER : CC_INVERT_SECOND;
		*pair = cc_invert_at(inv, inv->begin++);
	}
	if (!dup)
		return answer;
	*pair = cc_invert_none(inv) ? NULL : cc_invert_at(inv, inv->begin);
	if (!*pair || (*pair)->seq != tp->snd_una || (*pair)->answered)
		return window ? CC_INVERT_OTHER : CC_INVERT_DUPLICATE;
	(*pair)->answered = true;
	(*pair)->answered_us = tp->tcp_mstamp;
	return CC_INVERT_FIRST;
}

/*
 * What the ACK that ends a pair by itself counts for in slow start: one packet, as
 * each of a pair's two ACKs does, also where the kernel has taken the first one for
 * a change of the window and so finds two packets in the second.
 */
static inline bool cc_invert_counts_one(enum cc_invert_answer answer,
					const struct cc_invert_pair *pair)
{
	return answer == CC_INVERT_SECOND && pair->answered;
}

#endif /* WARPBED_CC_INVERT_H */
