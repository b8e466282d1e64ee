// SPDX-License-Identifier: GPL-2.0-only
/*
 * PaSt: paced start
 *
 * Slow start in rounds of 2, 4, 8, 16 and 32 packets, each a train with a given
 * gap between its packets.  A train that comes out wider than it went in was
 * faster than what the path has to spare; the next one has twice the gap that came
 * out of it.  The first that does not come out wider ends the search.
 * ssthresh = R / gap.
 *
 * Hu and Steenkiste, "Improving TCP startup performance using active
 * measurements: algorithm and evaluation", ICNP 2003, as Yu 2009 (dissertation,
 * University of Florida) s4.6 and algorithm 3 compare with it:
 *  - The first round is sent back to back, each later one with twice the gap that
 *    came out of the one before.
 *  - A round is over when all of its ACKs are there; its output gap is the mean
 *    over the train.
 *
 * Differences from the paper
 *  - Algorithm 3 is garbled in the copy.  The rule: a train whose output gap is
 *    wider than its input gap is followed by one of twice the output gap; the
 *    first one that does not come out wider ends the search with its gap, and the
 *    last round does, then with its output gap.
 *  - Gaps are compared in nanoseconds and strictly, so one foreign packet within
 *    a train can make it wider.
 *  - All of a train has its gap, as the thesis has it ("transmitted in order with
 *    a specified interval between them"): while its ACKs come in, cwnd is what is
 *    left of it, so that they release nothing.  With a window that stands the
 *    ACKs clock out the next train's first half: it leaves with the last one's
 *    output gap, and half of what is averaged says nothing of the new input gap.
 *  - How: a stage between TCP and IP of the connection itself spaces the packets
 *    (cc_output.h says why neither a qdisc nor the kernel's pacing, which leaves a
 *    connection's first ten packets alone).
 *  - The mean output gap counts delivered packets, so a receiver that delays ACKs
 *    blurs it but does not double it.  The paper's fails there, and so does this
 *    one if a whole round is answered by one ACK: slow start then goes on as
 *    Reno's.
 *  - R is the least RTT.
 *  - A round that the application does not fill (a first message) is sent again.
 *  - A loss ends it all, also one that is found to be none and undone, and halves
 *    the train.
 *  - Losses and congestion avoidance are Reno's.
 *
 * Readings
 *  - The gap after a round.  Of the line of algorithm 3 the copy has "out gap2".
 *    It shows fractions with a space ("3 2y0") and a slash as "="; a sign of
 *    multiplication is lost.  So it is twice the output gap; second_gap = 50 is
 *    half of it.  On Yu's parking lots at 25, 50 and 100 Mbit/s, where most trains
 *    come out wider, half gave 155, 181 and 410 packets and twice gave 74, 89 and
 *    122, both with refine = 1; table 4-1 has 39.5, 46.4 and 54.2.
 *  - How the search ends.  "The state machine terminates when terminate is
 *    reached"; the copy has lost the condition.  refine = 1 goes on to the last
 *    round, as the paper by Hu and Steenkiste: the gap halves its distance to the
 *    widest one that came out wider.  That finds all of an idle path, 2646 packets
 *    where 2644 fit, and the table has a mean of 1321 (deviation 593), half of
 *    them: an idle path lets the second train through with twice its own gap.
 *    At 200 Mbit/s five starts with refine = 1 had 1705 on average, seven as it is
 *    have 985; the table has 1095.
 *  - The later rounds' gaps.  "out gap2" stands before the comparison, so it is
 *    read as a line of each round and not of the second alone.  With twice the
 *    last input gap, 5, 5 and 7 starts at 25, 50 and 100 Mbit/s had 68, 89 and
 *    122 packets; with this they have 38, 51 and 84.
 *
 * Cost: a loss is 2.4 times CUBIC's, for it also ends what is sent in pairs or
 * trains and measured on them.
 */
#include "cc_output.h"
#include "cc_rtt.h"
#include "cc_single.h"

#define TRACE_SYSTEM tcp_past
#define CREATE_TRACE_POINTS
#include "cc_trace.h"
#include "cc_reno.h"

#define PAST_GAP_MAX_NS	1000000000U

static unsigned int rounds __read_mostly = 5;
CC_PARAM_RANGE(rounds_ops, 2, 10);
module_param_cb(rounds, &rounds_ops, &rounds, 0644);
MODULE_PARM_DESC(rounds, "trains of 2, 4, 8 ... packets, 2-10 (5)");

static unsigned int second_gap __read_mostly = 200;
CC_PARAM_RANGE(second_gap_ops, 1, 1000);
module_param_cb(second_gap, &second_gap_ops, &second_gap, 0644);
MODULE_PARM_DESC(second_gap, "gap of the second train, percent of what comes out of the first, 1-1000 (200)");

static unsigned int refine __read_mostly;
CC_PARAM_RANGE(refine_ops, 0, 1);
module_param_cb(refine, &refine_ops, &refine, 0644);
MODULE_PARM_DESC(refine, "after the first train that does not come out wider: end (0), or go on halving the gap's distance (1), 0-1 (0)");

struct past {
	struct cc_output_private private;
	u64 next_ns;			/* departure of the next packet */
	u64 first_ns;			/* the round's first ACK */
	u32 first_delivered;		/* and what it left delivered */
	u32 begun;			/* delivered before the round */
	u32 gap_ns;			/* input gap of this round */
	u32 low_ns;			/* bounds of the turning point */
	u32 high_ns;			/* 0: none yet */
	struct cc_rtt rtt;
	u8 round;			/* 0 is the first */
	u8 measuring:1;
	u8 acked:1;			/* the round has its first ACK */
};

static u32 past_packets(const struct past *ca)
{
	return 2U << ca->round;
}

/* Each packet of a round leaves a gap after the one before. */
static void past_place(struct sock *sk, struct sk_buff *skb)
{
	struct past *ca = inet_csk_ca(sk);
	u64 at_ns = max(ktime_get_ns(), ca->next_ns);

	ca->next_ns = at_ns + ca->gap_ns;
	cc_output_at(cc_output(sk), skb, at_ns);
}

static void past_round(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct past *ca = inet_csk_ca(sk);

	ca->begun = tp->delivered;
	ca->acked = 0;
	ca->next_ns = 0;
	cc_set_cwnd(tp, past_packets(ca), 2);
}

static void past_init(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct past *ca = inet_csk_ca(sk);

	memset(ca, 0, sizeof(*ca));
	cc_rtt_begin(&ca->rtt, tp);
	if (cc_is_new(tp) && !cc_syn_lost(tp)) {
		ca->measuring = !!cc_output_start(sk, sizeof(struct cc_output),
						  past_place);
		if (ca->measuring)
			past_round(sk);
	}
	trace_cc_hook(sk, CC_INIT, ca->measuring, -1);
}

/* The window is then the last train's. */
static void past_end(struct sock *sk, u32 gap_ns)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct past *ca = inet_csk_ca(sk);

	ca->measuring = 0;
	cc_output_stop(sk);
	cc_set_cwnd(tp, past_packets(ca), 2);
	if (gap_ns)
		tp->snd_ssthresh = max_t(u64, div_u64((u64)ca->rtt.base_us *
						      NSEC_PER_USEC, gap_ns), 2);
	trace_cc_hook(sk, CC_ESTIMATE, tp->snd_ssthresh, gap_ns / NSEC_PER_USEC);
}

static void past_release(struct sock *sk)
{
	cc_output_stop(sk);
	cc_send_gathered(sk);
}

/* Algorithm 3: bounds and next gap from this round's output gap */
static void past_judge(struct sock *sk, u32 out_ns)
{
	struct past *ca = inet_csk_ca(sk);
	u32 percent;

	if (out_ns <= ca->gap_ns)
		ca->high_ns = ca->gap_ns;
	else
		ca->low_ns = ca->gap_ns;
	if (ca->round + 1U >= READ_ONCE(rounds) ||
	    (ca->high_ns && !READ_ONCE(refine))) {
		past_end(sk, ca->high_ns ?: out_ns);
		return;
	}
	ca->round++;
	if (ca->high_ns) {
		ca->gap_ns = ca->low_ns + (ca->high_ns - ca->low_ns) / 2;
	} else {
		percent = ca->round == 1 ? READ_ONCE(second_gap) : 200;
		ca->gap_ns = min_t(u64, div_u64((u64)out_ns * percent, 100),
				   PAST_GAP_MAX_NS);
	}
	past_round(sk);
}

/* Are all ACKs of the round there? */
static void past_measure(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct past *ca = inet_csk_ca(sk);
	u32 delivered = tp->delivered - ca->begun;
	u64 span_ns;

	if (!delivered)
		return;
	if (!ca->acked) {
		ca->acked = 1;
		ca->first_ns = tp->tcp_clock_cache;
		ca->first_delivered = tp->delivered;
	}
	if (delivered < past_packets(ca)) {
		/* nothing under way: the application had no more, once again */
		if (!tcp_packets_in_flight(tp))
			past_round(sk);
		else
			cc_set_cwnd(tp, past_packets(ca) - delivered, 1);
		return;
	}
	span_ns = tp->tcp_clock_cache - ca->first_ns;
	delivered = tp->delivered - ca->first_delivered;
	if (!delivered || !span_ns)
		past_end(sk, 0);
	else
		past_judge(sk, min_t(u64, div_u64(span_ns, delivered),
				     PAST_GAP_MAX_NS));
}

static void past_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	struct past *ca = inet_csk_ca(sk);

	if (ca->measuring)
		cc_rtt_sample(&ca->rtt, tcp_sk(sk), sample);
	trace_cc_hook(sk, CC_SAMPLE, sample->pkts_acked, sample->rtt_us);
}

static void past_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct past *ca = inet_csk_ca(sk);
	bool limited = tcp_is_cwnd_limited(sk);

	if (ca->measuring)
		past_measure(sk);
	else if (limited)
		tcp_reno_cong_avoid(sk, ack, acked);
	trace_cc_hook(sk, CC_AVOID, acked, limited);
}

static u32 past_ssthresh(struct sock *sk)
{
	struct past *ca = inet_csk_ca(sk);
	u32 ssthresh = ca->measuring ? max(past_packets(ca) >> 1, 2U) :
				       tcp_reno_ssthresh(sk);

	ca->measuring = 0;
	cc_output_stop(sk);
	trace_cc_hook(sk, CC_LOSS, ssthresh, -1);
	return ssthresh;
}

static struct tcp_congestion_ops tcp_past __read_mostly = {
	.init		= past_init,
	.release	= past_release,
	.pkts_acked	= past_pkts_acked,
	.cong_avoid	= past_cong_avoid,
	.ssthresh	= past_ssthresh,
	.set_state	= cc_reno_set_state,
	.undo_cwnd	= cc_reno_undo_cwnd,
	.min_tso_segs	= cc_single_tso_segs,
	.owner		= THIS_MODULE,
	.name		= "past",
};

static int __init past_register(void)
{
	BUILD_BUG_ON(sizeof(struct past) > ICSK_CA_PRIV_SIZE);
	return tcp_register_congestion_control(&tcp_past);
}

static void __exit past_unregister(void)
{
	tcp_unregister_congestion_control(&tcp_past);
	cc_output_exit();
}

module_init(past_register);
module_exit(past_unregister);

MODULE_DESCRIPTION("PaSt, paced start (as in Yu 2009)");
MODULE_LICENSE("GPL");
