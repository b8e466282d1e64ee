// SPDX-License-Identifier: GPL-2.0-only
/*
 * TTFWC: tunable TCP-friendly window-based congestion control, and TFWC
 *
 * The window follows from the average loss interval (ALI) by TCP's throughput
 * equation, so it stays flat after a loss and rises slowly once the running
 * interval is long enough to raise the average.  TTFWC adds a share tp of what
 * Reno would have gained meanwhile.
 *
 * Midori Kato, bachelor's thesis, Keio University, 2012 ("Kato").  p = 1 / ALI:
 *   cwnd = 1 / (sqrt(2p/3) + 12 sqrt(3p/8) p (1 + 32 p^2))	(eq 2.1)
 *   ALI  = weighted mean of the last n loss intervals, the larger of those with
 *          and without the running one; "flat" while the former is not larger
 *   tp < 0.5   smooth mode: n = 16, base cwnd += tp^2 delta
 *   tp >= 0.5  responsive mode: n = 8, base cwnd += tp delta	(s3.2, s3.3)
 *   delta = Reno's window - TFWC's at the end of the flat period, if the loss
 *   before it cost less than a threshold share		(eq 3.1)
 * Reno in slow start, after a timeout until ssthresh, and where the equation
 * gives less than two packets (s3.4).
 *
 * Four names, so that flows of different tp run beside each other: tfwc is
 * tp = 0; ttfwc, ttfwc2 and ttfwc3 take tp, tp2 and tp3.  A connection keeps the
 * value that it began with.
 *
 * Differences from the paper
 *  - eq 2.1 with the square root over 3p/8 that the copy lost (it is that of the
 *    TCP equation the thesis cites, as in RFC 5348).
 *  - Weights: the thesis has an "EWMA" whose mean rises by one per 5.3 packets
 *    (16 intervals) and 2.8 (8), s4.1.  That is the sum of the weights where the
 *    newest has 1, so they fall by the factors 0.8191 and 0.6549.  weights=1
 *    takes RFC 5348's for n intervals, with sums of 12 and 6: one very short
 *    interval then costs 4.3 % and 8.9 % of the window, not 10.1 % and 20.2 %.
 *  - Eq 3.1's threshold is that of Kato's listing: the new window must be more
 *    than ratio_smooth (81 %, 1 - 1 / 5.3) or ratio_responsive (72 %) of the old
 *    one, and less than all of it.  72 % fits neither 2.8 (64 %) nor RFC 5348's 6.
 *    A single short interval stays above both, so eq 3.1 nearly always holds.
 *  - Whether a window that has risen at a loss passes.  By eq 3.1 and its reason,
 *    not to add after a loss that comes early, it does; by Kato's listing nothing
 *    is added then, which leaves out nearly every loss past the flat period.
 *    rises=0 (default) is the listing; rises=1 with ratio_responsive=64 (1 - 1 /
 *    2.8) is eq 3.1. Kato's numbers do not decide: the published gain of 10 % with
 *    tp = 0.9 beside as many TCP flows comes with neither.
 *  - The cheap ALI update of s4.1: past the flat period the ALI rises by one
 *    packet per step_smooth (6) or step_responsive (3) delivered packets; 0 is
 *    the exact mean.
 *  - Reno's window is estimated from the middle of the flat period, where it
 *    crosses TFWC's if both send equally much (Kato fig 3.2).
 *  - Intervals are counted in delivered packets, those of a recovery included,
 *    but not those ACKed while the window was not in use, as in Kato's listing;
 *    so the window does not jump after a time without data.
 *  - A loss that was none (open in the thesis) leaves everything as it was.
 *
 * Fixed point: ALI 32.8, the equation's factors and the weights 2^16; intervals
 * are cut at 2^31 - 1 packets (a window of 56 756), so the square root's
 * argument stays below 2^63 and a weighted sum below 2^58.
 *
 * Cost: past the flat period each ACK evaluates the equation (4 to 8 times
 * CUBIC's ACK, 21 to 36 ns; before, 0.9 times). A loss (17 to 24 times, 33 to
 * 45 ns) weighs up to 16 intervals three times and evaluates the equation, as
 * Kato Table 5.2 has it (12 times CUBIC's).
 */
#include "cc_common.h"

#define TRACE_SYSTEM tcp_ttfwc
#define CREATE_TRACE_POINTS
#include "cc_trace.h"
#include "cc_reno.h"

#define TTFWC_INTERVALS	16
#define TTFWC_LI_MAX	((1U << 31) - 1)
#define TTFWC_SQRT_2_3	53510U		/* sqrt(2/3) x 2^16 */
#define TTFWC_12SQRT	481589U		/* 12 sqrt(3/8) x 2^16 */

static unsigned int tp_1 __read_mostly = 40;
static unsigned int tp_2 __read_mostly = 90;
static unsigned int tp_3 __read_mostly = 70;
static unsigned int ratio_smooth __read_mostly = 81;
static unsigned int ratio_responsive __read_mostly = 72;
static unsigned int step_smooth __read_mostly = 6;
static unsigned int step_responsive __read_mostly = 3;
static unsigned int weights __read_mostly;
static unsigned int rises __read_mostly;

CC_PARAM_RANGE(percent_ops, 0, 99);
CC_PARAM_RANGE(step_ops, 0, 100);
CC_PARAM_RANGE(reading_ops, 0, 1);
module_param_cb(tp, &percent_ops, &tp_1, 0644);
MODULE_PARM_DESC(tp, "tuning parameter tp of ttfwc, percent, 0-99 (40)");
module_param_cb(tp2, &percent_ops, &tp_2, 0644);
MODULE_PARM_DESC(tp2, "tuning parameter tp of ttfwc2, percent, 0-99 (90)");
module_param_cb(tp3, &percent_ops, &tp_3, 0644);
MODULE_PARM_DESC(tp3, "tuning parameter tp of ttfwc3, percent, 0-99 (70)");
module_param_cb(ratio_smooth, &percent_ops, &ratio_smooth, 0644);
MODULE_PARM_DESC(ratio_smooth, "tp < 0.5: least new/old window for an addition, percent, 0-99 (81)");
module_param_cb(ratio_responsive, &percent_ops, &ratio_responsive, 0644);
MODULE_PARM_DESC(ratio_responsive, "tp >= 0.5: least new/old window for an addition, percent, 0-99 (72)");
module_param_cb(step_smooth, &step_ops, &step_smooth, 0644);
MODULE_PARM_DESC(step_smooth, "tp < 0.5: packets that raise the ALI by one, 0-100, 0 exact (6)");
module_param_cb(step_responsive, &step_ops, &step_responsive, 0644);
MODULE_PARM_DESC(step_responsive, "tp >= 0.5: packets that raise the ALI by one, 0-100, 0 exact (3)");
module_param_cb(weights, &reading_ops, &weights, 0644);
MODULE_PARM_DESC(weights, "weights of loss intervals, 0-1: sums 5.3 and 2.8 (Kato) or RFC 5348's (0)");
module_param_cb(rises, &reading_ops, &rises, 0644);
MODULE_PARM_DESC(rises, "a window that rose at a loss passes eq 3.1, 0-1: no (listing), yes (eq 3.1) (0)");

/* 0.8191^i and 0.6549^i x 2^16: sums 5.3 and 2.8 (Kato s4.1) */
static const u32 ttfwc_falling16[16] = {
	65536, 53678, 43966, 36011, 29495, 24158, 19787, 16207,
	13274, 10872, 8905, 7294, 5974, 4893, 4008, 3283,
};

static const u32 ttfwc_falling8[8] = {
	65536, 42923, 28112, 18412, 12059, 7898, 5173, 3388,
};

/* Reno's window beside this one during an interval, and what follows from it */
struct ttfwc_tuning {
	union {
		u32 reno_cwnd;		/* until settled: estimate of Reno's window */
		u32 extra;		/* then: added to the equation's window */
	};
	u32 reno_from;			/* open interval at its last increase */
};

struct ttfwc {
	u32 li[TTFWC_INTERVALS];	/* closed loss intervals, newest first */
	u64 ali;			/* ALI of the closed ones, 32.8 */
	u32 begun;			/* delivered when the open one began */
	u32 flat;			/* its length while the window is flat */
	struct ttfwc_tuning now;
	struct ttfwc_tuning before;	/* as the last loss found it, for an undo */
	u32 forgotten;			/* the interval that it pushed out, or 0 */
	u8 count;			/* closed intervals known */
	u8 percent;			/* tp */
	u8 reno:1;			/* the equation gave less than two */
	u8 tunable:1;			/* eq 3.1 held at the last loss */
	u8 added:1;			/* now.extra is settled */
	u8 reno_before:1;
	u8 tunable_before:1;
	u8 added_before:1;
};

static bool ttfwc_responsive(const struct ttfwc *ca)
{
	return ca->percent >= 50;
}

static u32 ttfwc_n(const struct ttfwc *ca)
{
	return ttfwc_responsive(ca) ? 8 : 16;
}

/* Of the i-th newest interval, x 2^16; RFC 5348 s5.4 has full ones, then a slope */
static u32 ttfwc_weight(u32 i, u32 n)
{
	if (!READ_ONCE(weights))
		return n == 8 ? ttfwc_falling8[i] : ttfwc_falling16[i];
	return i < n / 2 ? 1 << 16 : ((n - i) << 16) / (n / 2 + 1);
}

/* Weighted mean of the count intervals from li[0] on, 32.8 */
static u64 ttfwc_mean(const u32 *li, u32 count, u32 n)
{
	u64 sum = 0;
	u32 total = 0, i;

	for (i = 0; i < min(count, n); i++) {
		sum += (u64)ttfwc_weight(i, n) * li[i];
		total += ttfwc_weight(i, n);
	}
	return total ? div_u64(sum << 8, total) : 0;
}

/*
 * The mean with an open interval x in front is (w_0 x + older) / total; it
 * exceeds the closed ones' from x = (ali total - older) / w_0 on.
 */
static void ttfwc_shifted(const struct ttfwc *ca, u64 *older, u32 *total)
{
	u32 n = ttfwc_n(ca), i;

	*older = 0;
	*total = ttfwc_weight(0, n);
	for (i = 1; i <= min_t(u32, ca->count, n - 1); i++) {
		*older += (u64)ttfwc_weight(i, n) * ca->li[i - 1];
		*total += ttfwc_weight(i, n);
	}
}

/* ali total: below 2^(39 + 20) */
static u32 ttfwc_flat(const struct ttfwc *ca)
{
	u32 w0 = ttfwc_weight(0, ttfwc_n(ca)), total;
	u64 older, needed;

	ttfwc_shifted(ca, &older, &total);
	needed = ca->ali * total >> 8;
	return needed > older ? min_t(u64, div_u64(needed - older, w0),
				      TTFWC_LI_MAX) : 0;
}

/* Eq 2.1 as sqrt(L) / (sqrt(2/3) + 12 sqrt(3/8) (1 + 32 / L^2) / L), 24.8 */
static u32 ttfwc_equation(u64 ali)
{
	u64 root, term, cubed;

	ali = clamp_t(u64, ali, 1U << 8, (u64)TTFWC_LI_MAX << 8);
	root = int_sqrt64(ali << 24);
	term = div64_u64((u64)TTFWC_12SQRT << 8, ali);
	/* term below 2^19; what two divisions leave is what one by ali^2 would */
	cubed = div64_u64(div64_u64(term << (16 + 5), ali), ali);
	return div64_u64(root << 8, TTFWC_SQRT_2_3 + term + cubed);
}

/* The interval that gives this window: the inverse of eq 2.1 by bisection. */
static u32 ttfwc_inverse(u32 cwnd)
{
	u32 low = 1, high = TTFWC_LI_MAX;

	while (low < high) {
		u32 middle = low + (high - low) / 2;

		if (ttfwc_equation((u64)middle << 8) >> 8 < cwnd)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void ttfwc_init(struct sock *sk, u32 percent)
{
	struct ttfwc *ca = inet_csk_ca(sk);

	memset(ca, 0, sizeof(*ca));
	ca->percent = percent;
	ca->begun = tcp_sk(sk)->delivered;
	trace_cc_hook(sk, CC_INIT, percent, -1);
}

static void tfwc_init_0(struct sock *sk)
{
	ttfwc_init(sk, 0);
}

static void ttfwc_init_1(struct sock *sk)
{
	ttfwc_init(sk, READ_ONCE(tp_1));
}

static void ttfwc_init_2(struct sock *sk)
{
	ttfwc_init(sk, READ_ONCE(tp_2));
}

static void ttfwc_init_3(struct sock *sk)
{
	ttfwc_init(sk, READ_ONCE(tp_3));
}

static u32 ttfwc_open(const struct sock *sk)
{
	const struct ttfwc *ca = inet_csk_ca(sk);

	return min(tcp_sk(sk)->delivered - ca->begun, TTFWC_LI_MAX);
}

/* Reno's window meanwhile: TFWC's at half the flat period, then one a round. */
static void ttfwc_follow_reno(struct ttfwc *ca, u32 cwnd, u32 open)
{
	struct ttfwc_tuning *now = &ca->now;

	if (open < ca->flat / 2)
		return;
	if (!now->reno_cwnd) {
		now->reno_cwnd = cwnd;
		now->reno_from = open;
	}
	while (open - now->reno_from >= now->reno_cwnd) {
		now->reno_from += now->reno_cwnd;
		now->reno_cwnd++;
	}
}

/* The flat period is over: delta's share, s3.2 */
static void ttfwc_tune(struct ttfwc *ca, u32 cwnd)
{
	u32 reno = ca->now.reno_cwnd, delta = reno > cwnd ? reno - cwnd : 0;
	u32 share = ttfwc_responsive(ca) ? ca->percent * 100 :
					   ca->percent * ca->percent;

	ca->added = 1;
	ca->now.extra = ca->tunable ? (u64)delta * share / 10000 : 0;
}

/* The ALI with the open interval in it. */
static u64 ttfwc_open_ali(const struct ttfwc *ca, u32 open)
{
	u32 step = ttfwc_responsive(ca) ? READ_ONCE(step_responsive) :
					  READ_ONCE(step_smooth);
	u32 total;
	u64 older;

	if (step)
		return ca->ali + ((u64)((open - ca->flat) / step) << 8);
	ttfwc_shifted(ca, &older, &total);
	older += (u64)ttfwc_weight(0, ttfwc_n(ca)) * open;
	return max(div_u64(older << 8, total), ca->ali);
}

static void ttfwc_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct ttfwc *ca = inet_csk_ca(sk);
	u32 open = ttfwc_open(sk), cwnd = tcp_snd_cwnd(tp), wanted;
	bool limited = tcp_is_cwnd_limited(sk);

	if (!limited) {
		ca->begun += min(acked, tp->delivered - ca->begun);
		goto out;
	}
	if (ca->reno || !ca->count || tcp_in_slow_start(tp)) {
		tcp_reno_cong_avoid(sk, ack, acked);
		goto out;
	}
	if (!ca->added)
		ttfwc_follow_reno(ca, cwnd, open);
	if (open <= ca->flat)
		goto out;
	if (!ca->added)
		ttfwc_tune(ca, cwnd);
	wanted = (ttfwc_equation(ttfwc_open_ali(ca, open)) >> 8) +
		 ca->now.extra;
	if (wanted > cwnd)
		cc_set_cwnd(tp, min(wanted, cwnd + acked), 2);
out:
	trace_cc_hook(sk, CC_AVOID, acked, limited);
}

/* Close the open interval; keep what an undo needs. */
static void ttfwc_close(struct ttfwc *ca, u32 length)
{
	ca->before = ca->now;
	ca->reno_before = ca->reno;
	ca->tunable_before = ca->tunable;
	ca->added_before = ca->added;
	ca->forgotten = ca->count == TTFWC_INTERVALS ?
			ca->li[TTFWC_INTERVALS - 1] : 0;
	memmove(ca->li + 1, ca->li, sizeof(ca->li) - sizeof(ca->li[0]));
	ca->li[0] = length;
	ca->count = min(ca->count + 1, TTFWC_INTERVALS);
	memset(&ca->now, 0, sizeof(ca->now));
	ca->added = 0;
}

static void ttfwc_weigh(struct ttfwc *ca)
{
	ca->ali = ttfwc_mean(ca->li, ca->count, ttfwc_n(ca));
	ca->flat = ttfwc_flat(ca);
}

/* Derive the next window from the history, with the open interval closed. */
static u32 ttfwc_ssthresh(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct ttfwc *ca = inet_csk_ca(sk);
	u32 cwnd = tcp_snd_cwnd(tp), extra = ca->added ? ca->now.extra : 0;
	u32 base = max(cwnd, extra + 1) - extra, next, ratio;

	/* the first loss: as if the half window had been in balance */
	ttfwc_close(ca, ca->count ? max(ttfwc_open(sk), 1U) :
				    ttfwc_inverse(max(cwnd >> 1, 2U)));
	ca->begun = tp->delivered;
	ttfwc_weigh(ca);
	next = ttfwc_equation(ca->ali) >> 8;
	ca->reno = next < 2;
	next = max(next, 2U);
	ratio = (u64)next * 100 / base;
	ca->tunable = (next < base || READ_ONCE(rises)) &&
		      ratio > (ttfwc_responsive(ca) ?
			       READ_ONCE(ratio_responsive) :
			       READ_ONCE(ratio_smooth));
	trace_cc_hook(sk, CC_LOSS, next, -1);
	return next;
}

/* The loss was none: the newest interval and the open one are one again. */
static u32 ttfwc_undo_cwnd(struct sock *sk)
{
	struct ttfwc *ca = inet_csk_ca(sk);
	u32 cwnd = tcp_reno_undo_cwnd(sk);

	if (ca->count) {
		/* the first interval was made up: its packets are not counted */
		if (ca->count > 1)
			ca->begun -= ca->li[0];
		memmove(ca->li, ca->li + 1, sizeof(ca->li) - sizeof(ca->li[0]));
		ca->li[TTFWC_INTERVALS - 1] = ca->forgotten;
		ca->count -= !ca->forgotten;
		ca->forgotten = 0;
		ca->now = ca->before;
		ca->reno = ca->reno_before;
		ca->tunable = ca->tunable_before;
		ca->added = ca->added_before;
		ttfwc_weigh(ca);
	}
	trace_cc_hook(sk, CC_UNDO, cwnd, -1);
	return cwnd;
}

#define TTFWC_OPS(_name, _init) {				\
	.init		= _init,				\
	.pkts_acked	= cc_reno_pkts_acked,			\
	.cong_avoid	= ttfwc_cong_avoid,			\
	.ssthresh	= ttfwc_ssthresh,			\
	.set_state	= cc_reno_set_state,			\
	.undo_cwnd	= ttfwc_undo_cwnd,			\
	.owner		= THIS_MODULE,				\
	.name		= _name,				\
}

static struct tcp_congestion_ops tcp_ttfwc[] __read_mostly = {
	TTFWC_OPS("tfwc", tfwc_init_0),
	TTFWC_OPS("ttfwc", ttfwc_init_1),
	TTFWC_OPS("ttfwc2", ttfwc_init_2),
	TTFWC_OPS("ttfwc3", ttfwc_init_3),
};

static void ttfwc_unregister_some(unsigned int count)
{
	while (count--)
		tcp_unregister_congestion_control(&tcp_ttfwc[count]);
}

static int __init ttfwc_register(void)
{
	unsigned int i;
	int err;

	BUILD_BUG_ON(sizeof(struct ttfwc) > ICSK_CA_PRIV_SIZE);
	for (i = 0; i < ARRAY_SIZE(tcp_ttfwc); i++) {
		err = tcp_register_congestion_control(&tcp_ttfwc[i]);
		if (err) {
			ttfwc_unregister_some(i);
			return err;
		}
	}
	return 0;
}

static void __exit ttfwc_unregister(void)
{
	ttfwc_unregister_some(ARRAY_SIZE(tcp_ttfwc));
}

module_init(ttfwc_register);
module_exit(ttfwc_unregister);

MODULE_DESCRIPTION("TTFWC and TFWC (Kato 2012)");
MODULE_LICENSE("GPL");
MODULE_ALIAS("tcp_tfwc");
MODULE_ALIAS("tcp_ttfwc2");
MODULE_ALIAS("tcp_ttfwc3");
