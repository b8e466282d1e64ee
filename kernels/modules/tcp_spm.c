// SPDX-License-Identifier: GPL-2.0-only
/*
 * SPM: slow start with packet pair measurements
 *
 * During slow start packets leave as pairs with a gap between them.  A gap that
 * comes out wider than it went in was narrower than what the path has to spare
 * for this flow; the narrowest one that does not is the estimate, and ssthresh
 * the window that sends at that spacing.
 *
 * Yu 2009 (dissertation, University of Florida), s4.5:
 *  - y0 is the output gap of a pair sent back to back.  Further pairs have input
 *    gaps y0, 1.5 y0, 2 y0 and 4 y0 in turn.
 *  - gamma0 is the least tested gap whose mean output gap is at most beta times
 *    itself, beta = 1.05.  If it is the first, gamma = gamma0; else a line
 *    y = a x + b through the samples with x <= gamma0 meets y = x at
 *    b / (1 - a), and gamma = min(gamma0, b / (1 - a)).
 *  - ssthresh = R / gamma, from at least 12 samples and if a < 1, else it stays.
 *  - The first ssthresh is 32; measuring ends when cwnd reaches 32 or with a loss.
 *  - Pairs are inverted (n + 1, n), so that receivers which delay ACKs answer both
 *    at once, and an ACK counts for at most two packets (limited byte counting).
 *
 * Differences from the paper
 *  - How pairs are inverted and spaced: a stage between TCP and IP of the
 *    connection itself (cc_output.h says why neither a qdisc nor a patch).
 *  - The time between pairs, which the copy has lost, is spacing percent of the
 *    time per pair at cwnd per RTT: 2 R / cwnd.
 *  - If no gap qualifies, which the paper leaves open, ssthresh stays.  Of the
 *    three readings (unqualified) this one's means come nearest to Table 4-1's
 *    where packet pairs are sent in ns-2 (docs/reproduction.md).
 *  - The expected duplicate ACK of a pair raises cwnd, as in SSIPP (tcp_ssipp.c);
 *    the ACKs of a pair then release a pair each.  Without SACK it may bring
 *    another window (cc_invert.h).
 *  - Input gaps are those that the pairs were given; a gap is cut at 1 s and an
 *    output gap at 16 times y0.
 *  - R is the least RTT.  Packets before y0 is known leave in order.
 *  - Samples that are still under way when cwnd reaches end_cwnd are waited for.
 *  - The kernel would take n for lost while it waits for its gap: cc_invert.h
 *    says how it is kept from that.  At 1 Mbit/s and 108 ms, where the widest gap
 *    is 32 ms, it did, and repaired packets on a path that loses none.
 *  - A loss ends measuring for good, also one that is found to be none and undone.
 *  - Congestion avoidance and losses are Reno's.
 *
 * Fixed point: gaps in 1/1024 y0, inputs up to 2^12, outputs below 2^14.  With n
 * samples, 256 at most, d is below (n 2^11)^2 and a below n^2 2^11 2^13, so the
 * products with the sums are below 2^61.
 *
 * Cost: a loss is 2.3 times CUBIC's, for it also ends what is sent in pairs or
 * trains and measured on them.
 */
#include "cc_invert.h"
#include "cc_output.h"
#include "cc_rtt.h"
#include "cc_single.h"

#define TRACE_SYSTEM tcp_spm
#define CREATE_TRACE_POINTS
#include "cc_trace.h"
#include "cc_reno.h"

#define SPM_GAPS	4
#define SPM_BACK_TO_BACK SPM_GAPS	/* the kind of the first pair */
#define SPM_SHIFT	10		/* gaps relative to y0, 22.10 */
#define SPM_OUT_MAX	(16U << SPM_SHIFT)
#define SPM_SAMPLES_MAX	64		/* per gap */
#define SPM_GAP_MAX_US	1000000U
#define SPM_NO_ESTIMATE	0		/* values of unqualified */
#define SPM_BOUNDED	2

static unsigned int beta __read_mostly = 105;
CC_PARAM_RANGE(beta_ops, 100, 400);
module_param_cb(beta, &beta_ops, &beta, 0644);
MODULE_PARM_DESC(beta, "widening that a gap may have to qualify, percent, 100-400 (105)");

static unsigned int least_samples __read_mostly = 12;
CC_PARAM_RANGE(least_samples_ops, 2, 256);
module_param_cb(least_samples, &least_samples_ops, &least_samples, 0644);
MODULE_PARM_DESC(least_samples, "samples that an estimate needs, 2-256 (12)");

static unsigned int init_ssthresh __read_mostly = 32;
CC_PARAM_RANGE(init_ssthresh_ops, 2, 1000000);
module_param_cb(init_ssthresh, &init_ssthresh_ops, &init_ssthresh, 0644);
MODULE_PARM_DESC(init_ssthresh, "first ssthresh, packets, 2-1000000 (32)");

static unsigned int end_cwnd __read_mostly = 32;
CC_PARAM_RANGE(end_cwnd_ops, 4, 1000);
module_param_cb(end_cwnd, &end_cwnd_ops, &end_cwnd, 0644);
MODULE_PARM_DESC(end_cwnd, "window at which measuring ends, packets, 4-1000 (32)");

static unsigned int init_cwnd __read_mostly = 2;
CC_PARAM_RANGE(init_cwnd_ops, 1, 100);
module_param_cb(init_cwnd, &init_cwnd_ops, &init_cwnd, 0644);
MODULE_PARM_DESC(init_cwnd, "initial window, packets, 1-100 (2)");

static unsigned int spacing __read_mostly = 100;
CC_PARAM_RANGE(spacing_ops, 0, 1000);
module_param_cb(spacing, &spacing_ops, &spacing, 0644);
MODULE_PARM_DESC(spacing, "time between pairs, percent of 2 R / cwnd, 0-1000 (100)");

static unsigned int hold_us __read_mostly = 1000;
CC_PARAM_RANGE(hold_us_ops, 1, 100000);
module_param_cb(hold_us, &hold_us_ops, &hold_us, 0644);
MODULE_PARM_DESC(hold_us, "longest wait of a pair's packet for the other one, us, 1-100000 (1000)");

static unsigned int unqualified __read_mostly = SPM_NO_ESTIMATE;
CC_PARAM_RANGE(unqualified_ops, 0, 2);
module_param_cb(unqualified, &unqualified_ops, &unqualified, 0644);
MODULE_PARM_DESC(unqualified, "no gap qualifies: 0 no estimate, 1 the line's, 2 its, or the widest gap, 0-2 (0)");

struct spm_gap {
	u32 sum;			/* of output gaps, 22.10 y0 */
	u32 count;
};

struct spm {
	struct cc_output_private private;
	u64 next_ns;			/* earliest departure of a pair */
	struct spm_gap gap[SPM_GAPS];
	u32 y0_us;			/* 0: not known */
	struct cc_rtt rtt;
	u8 turn;			/* the next pair's gap */
	u8 grown:1;			/* this ACK has raised cwnd already, */
	u8 one:1;			/* or counts for one packet */
	u8 begun:1;			/* the first packet has left */
	u8 first:1;			/* the pair back to back has left */
	u8 ended:1;			/* no more pairs are sent */
};

/* Input gaps in halves of y0 */
static const u8 spm_halves[SPM_GAPS] = { 2, 3, 4, 8 };

static struct cc_invert *spm_pairs(const struct sock *sk)
{
	return (struct cc_invert *)cc_output(sk);
}

static u32 spm_input(u32 i)
{
	return (u32)spm_halves[i] << (SPM_SHIFT - 1);
}

static void spm_send_pair(struct sock *sk, struct sk_buff *skb)
{
	struct cc_invert *inv = spm_pairs(sk);
	struct spm *ca = inet_csk_ca(sk);
	u64 at_ns = max(ktime_get_ns(), ca->next_ns), pause_ns;
	u32 cwnd = max(tcp_snd_cwnd(tcp_sk(sk)), 1U);
	struct cc_invert_pair *pair;
	u32 gap_us = 0;

	/* 2 x 1000 / 100 ns per us and percent: below 2^(24 + 5 + 10) */
	pause_ns = div_u64(20ULL * ca->rtt.base_us * READ_ONCE(spacing), cwnd);
	if (ca->first)
		gap_us = min(ca->y0_us * spm_halves[ca->turn] / 2,
			     SPM_GAP_MAX_US);
	pair = cc_invert_send(inv, skb, at_ns, gap_us * NSEC_PER_USEC,
			      ca->first ? ca->turn : SPM_BACK_TO_BACK);
	/* the next pair comes behind this one, y0 apart at least */
	ca->next_ns = at_ns + max_t(u64, pause_ns, (u64)(gap_us + ca->y0_us) *
						   NSEC_PER_USEC);
	if (ca->first)
		ca->turn = (ca->turn + 1) % SPM_GAPS;
	ca->first = 1;
	trace_cc_hook(sk, CC_PAIR, pair->seq, gap_us);
}

static void spm_place(struct sock *sk, struct sk_buff *skb)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct cc_invert *inv = spm_pairs(sk);
	struct spm *ca = inet_csk_ca(sk);
	bool ready = ca->begun && !ca->ended && (!ca->first || ca->y0_us);

	ca->begun = 1;
	if (inv->out.held)
		spm_send_pair(sk, skb);
	else if (ready && tcp_in_slow_start(tp) && !cc_invert_full(inv) &&
		 cc_output_more(sk))
		cc_output_hold(&inv->out, skb, ktime_get_ns() +
			       READ_ONCE(hold_us) * NSEC_PER_USEC);
	else if (skb_queue_empty(&inv->out.queue))
		cc_output_send(&inv->out, skb);
	else
		cc_output_at(&inv->out, skb, ca->next_ns);
}

static void spm_init(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct spm *ca = inet_csk_ca(sk);

	memset(ca, 0, sizeof(*ca));
	cc_rtt_begin(&ca->rtt, tp);
	ca->ended = 1;
	if (cc_is_new(tp)) {
		if (!cc_syn_lost(tp))
			cc_set_cwnd(tp, cc_route_metric(sk, RTAX_INITCWND,
							READ_ONCE(init_cwnd)), 1);
		tp->snd_ssthresh = cc_route_metric(sk, RTAX_SSTHRESH,
						   READ_ONCE(init_ssthresh));
		ca->ended = !cc_output_start(sk, sizeof(struct cc_invert),
					     spm_place);
	}
	trace_cc_hook(sk, CC_INIT, !ca->ended, -1);
}

static void spm_release(struct sock *sk)
{
	cc_invert_stop(sk);
	cc_send_gathered(sk);
}

/* gamma0: the first gap that qualifies, or the last that has samples at all */
static u32 spm_first_qualified(const struct spm *ca, bool *qualifies)
{
	u32 i, last = 0;

	*qualifies = false;

	for (i = 0; i < SPM_GAPS; i++) {
		u64 limit = (u64)spm_input(i) * ca->gap[i].count *
			    READ_ONCE(beta);

		if (!ca->gap[i].count)
			continue;
		last = i;
		if ((u64)ca->gap[i].sum * 100 <= limit) {
			*qualifies = true;
			break;
		}
	}
	return last;
}

/* gamma in 22.10 y0; 0: no estimate, for a >= 1 */
static u32 spm_gamma(const struct spm *ca)
{
	bool qualifies;
	u32 k = spm_first_qualified(ca, &qualifies), i;
	u32 without = qualifies ? SPM_BOUNDED : READ_ONCE(unqualified);
	s64 n = 0, sx = 0, sy = 0, sxx = 0, sxy = 0, d, a, gamma;

	if (without == SPM_NO_ESTIMATE)
		return 0;
	if (!k)
		return spm_input(0);
	for (i = 0; i <= k; i++) {
		s64 x = spm_input(i), count = ca->gap[i].count;

		n += count;
		sx += count * x;
		sy += ca->gap[i].sum;
		sxx += count * x * x;
		sxy += x * ca->gap[i].sum;
	}
	d = n * sxx - sx * sx;
	a = n * sxy - sx * sy;		/* the slope is a / d */
	if (!d)
		return spm_input(k);
	if (a >= d)
		return 0;
	gamma = div64_s64(div_s64(sy * d - a * sx, n), d - a);
	if (gamma <= 0)
		return spm_input(k);
	return min_t(s64, gamma, without == SPM_BOUNDED ? spm_input(k) : U32_MAX);
}

/* ssthresh = R / gamma, once there are samples enough */
static void spm_estimate(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct spm *ca = inet_csk_ca(sk);
	u32 samples = 0, gamma, i;

	for (i = 0; i < SPM_GAPS; i++)
		samples += ca->gap[i].count;
	if (samples < READ_ONCE(least_samples))
		return;
	gamma = spm_gamma(ca);
	if (gamma)
		tp->snd_ssthresh = max_t(u64, div_u64((u64)ca->rtt.base_us
						      << SPM_SHIFT,
						      gamma) / ca->y0_us, 2);
	trace_cc_hook(sk, CC_ESTIMATE, tp->snd_ssthresh, gamma);
}

/* The second ACK of a pair gives its output gap. */
static void spm_sample(struct sock *sk, const struct cc_invert_pair *pair)
{
	struct spm *ca = inet_csk_ca(sk);
	u32 gap_us = (u32)tcp_sk(sk)->tcp_mstamp - pair->answered_us;

	if (!pair->answered || !gap_us)
		return;
	gap_us = min(gap_us, SPM_GAP_MAX_US);
	if (pair->kind == SPM_BACK_TO_BACK) {
		ca->y0_us = gap_us;
	} else if (ca->gap[pair->kind].count < SPM_SAMPLES_MAX) {
		ca->gap[pair->kind].sum +=
			min_t(u64, div_u64((u64)gap_us << SPM_SHIFT, ca->y0_us),
			      SPM_OUT_MAX);
		ca->gap[pair->kind].count++;
	}
}

/* Measuring ends, for good or by a loss. */
static void spm_end(struct sock *sk, bool estimate)
{
	struct spm *ca = inet_csk_ca(sk);

	ca->ended = 1;
	cc_invert_stop(sk);
	if (estimate)
		spm_estimate(sk);
}

static void spm_pairs_acked(struct sock *sk, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct spm *ca = inet_csk_ca(sk);
	struct cc_invert *inv = spm_pairs(sk);
	enum cc_invert_answer answer;
	struct cc_invert_pair *pair;

	answer = cc_invert_ack(inv, tp, acked, &pair);
	ca->one = cc_invert_counts_one(answer, pair);
	switch (answer) {
	case CC_INVERT_FIRST:
		if (tcp_in_slow_start(tp) && tcp_is_cwnd_limited(sk)) {
			tcp_slow_start(tp, 1);
			ca->grown = 1;
		}
		break;
	case CC_INVERT_SECOND:
		spm_sample(sk, pair);
		break;
	case CC_INVERT_DUPLICATE:
		spm_end(sk, false);
		return;
	case CC_INVERT_OTHER:
		break;
	}
	/* without an answer to the first pair another one measures y0 */
	if (cc_invert_none(inv) && !ca->y0_us)
		ca->first = 0;
	if (tcp_snd_cwnd(tp) >= READ_ONCE(end_cwnd))
		ca->ended = 1;
	if (ca->ended && cc_invert_none(inv))
		spm_end(sk, true);
}

static void spm_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	struct spm *ca = inet_csk_ca(sk);

	ca->grown = 0;
	ca->one = 0;
	if (spm_pairs(sk)) {
		cc_rtt_sample(&ca->rtt, tcp_sk(sk), sample);
		spm_pairs_acked(sk, sample->pkts_acked);
	}
	trace_cc_hook(sk, CC_SAMPLE, sample->pkts_acked, sample->rtt_us);
}

static void spm_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct spm *ca = inet_csk_ca(sk);
	bool limited = tcp_is_cwnd_limited(sk) && !ca->grown;

	if (limited)
		tcp_reno_cong_avoid(sk, ack, tcp_in_slow_start(tp) ?
				    min(acked, ca->one ? 1U : 2U) : acked);
	trace_cc_hook(sk, CC_AVOID, acked, limited);
}

static u32 spm_ssthresh(struct sock *sk)
{
	u32 ssthresh = tcp_reno_ssthresh(sk);

	spm_end(sk, false);
	trace_cc_hook(sk, CC_LOSS, ssthresh, -1);
	return ssthresh;
}

static struct tcp_congestion_ops tcp_spm __read_mostly = {
	.init		= spm_init,
	.release	= spm_release,
	.pkts_acked	= spm_pkts_acked,
	.cong_avoid	= spm_cong_avoid,
	.ssthresh	= spm_ssthresh,
	.set_state	= cc_reno_set_state,
	.undo_cwnd	= cc_reno_undo_cwnd,
	.min_tso_segs	= cc_single_tso_segs,
	.owner		= THIS_MODULE,
	.name		= "spm",
};

static int __init spm_register(void)
{
	BUILD_BUG_ON(sizeof(struct spm) > ICSK_CA_PRIV_SIZE);
	return tcp_register_congestion_control(&tcp_spm);
}

static void __exit spm_unregister(void)
{
	tcp_unregister_congestion_control(&tcp_spm);
	cc_output_exit();
}

module_init(spm_register);
module_exit(spm_unregister);

MODULE_DESCRIPTION("SPM slow start (Yu 2009)");
MODULE_LICENSE("GPL");
