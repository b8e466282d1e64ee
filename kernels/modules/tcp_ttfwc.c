// SPDX-License-Identifier: GPL-2.0-only
/*
 * TTFWC: tunable TCP-friendly window-based congestion control, and TFWC
 *
 * The window follows from the average loss interval (ALI) by TCP's throughput
 * equation, so it stays flat after a loss and rises slowly once the running
 * interval is long enough to raise the average.  TTFWC adds a share tp of what
 * Reno would have gained meanwhile.
 *
 * Junji Kato, master's thesis, Keio University, 2012 ("Kato").  p = 1 / ALI:
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
 *  - Weights: RFC 5348's for n intervals (open in the thesis).
 *  - Eq 3.1's threshold is that of Kato's listing: the new window must be more
 *    than ratio_smooth (81 %) or ratio_responsive (72 %) of the old one, and
 *    less than all of it.
 *  - The cheap ALI update of s4.1: past the flat period the ALI rises by one
 *    packet per step_smooth (6) or step_responsive (3) delivered packets; 0 is
 *    the exact mean (12 and 6 with RFC 5348's weights).
 *  - Reno's window is estimated from the middle of the flat period, where it
 *    crosses TFWC's if both send equally much (Kato fig 3.2).
 *  - Intervals are counted in delivered packets, those of a recovery included.
 *
 * Fixed point: ALI and cwnd 24.8, the equation's factors 2^16; intervals are cut
 * at 2^24 - 1 packets, so the square root's argument stays below 2^56.
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
#define TTFWC_LI_MAX	((1U << 24) - 1)
#define TTFWC_SQRT_2_3	53510U		/* sqrt(2/3) x 2^16 */
#define TTFWC_12SQRT	481589U		/* 12 sqrt(3/8) x 2^16 */

static unsigned int tp_1 __read_mostly = 40;
static unsigned int tp_2 __read_mostly = 90;
static unsigned int tp_3 __read_mostly = 70;
static unsigned int ratio_smooth __read_mostly = 81;
static unsigned int ratio_responsive __read_mostly = 72;
static unsigned int step_smooth __read_mostly = 6;
static unsigned int step_responsive __read_mostly = 3;

CC_PARAM_RANGE(percent_ops, 0, 99);
CC_PARAM_RANGE(step_ops, 0, 100);
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

struct ttfwc {
	u32 li[TTFWC_INTERVALS];	/* closed loss intervals, newest first */
	u32 begun;			/* delivered when the open one began */
	u32 flat;			/* its length while the window is flat */
	u32 ali;			/* ALI of the closed ones, 24.8 */
	u32 reno_cwnd;			/* estimate of Reno's window */
	u32 reno_from;			/* open interval at its last increase */
	u32 extra;			/* added to the equation's window */
	u8 count;			/* closed intervals known */
	u8 tp;				/* percent */
	u8 reno:1;			/* the equation gave less than two */
	u8 tunable:1;			/* eq 3.1 held at the last loss */
	u8 added:1;			/* extra is settled for this interval */
};

static bool ttfwc_responsive(const struct ttfwc *ca)
{
	return ca->tp >= 50;
}

static u32 ttfwc_n(const struct ttfwc *ca)
{
	return ttfwc_responsive(ca) ? 8 : 16;
}

/* RFC 5348 s5.4 in units of 1 / (n/2 + 1): full for the newer half, then falling */
static u32 ttfwc_weight(u32 i, u32 n)
{
	return i < n / 2 ? n / 2 + 1 : n - i;
}

/* Weighted mean of the count intervals from li[0] on, 24.8 */
static u32 ttfwc_mean(const u32 *li, u32 count, u32 n)
{
	u64 sum = 0;
	u32 weights = 0, i;

	for (i = 0; i < min(count, n); i++) {
		sum += (u64)ttfwc_weight(i, n) * li[i];
		weights += ttfwc_weight(i, n);
	}
	return weights ? div_u64(sum << 8, weights) : 0;
}

/*
 * The mean with an open interval x in front is (w_0 x + older) / weights; it
 * exceeds the closed ones' from x = (ali weights - older) / w_0 on.
 */
static void ttfwc_shifted(const struct ttfwc *ca, u64 *older, u32 *weights)
{
	u32 n = ttfwc_n(ca), i;

	*older = 0;
	*weights = ttfwc_weight(0, n);
	for (i = 1; i <= min_t(u32, ca->count, n - 1); i++) {
		*older += (u64)ttfwc_weight(i, n) * ca->li[i - 1];
		*weights += ttfwc_weight(i, n);
	}
}

static u32 ttfwc_flat(const struct ttfwc *ca)
{
	u32 w0 = ttfwc_weight(0, ttfwc_n(ca)), weights;
	u64 older, needed;

	ttfwc_shifted(ca, &older, &weights);
	needed = (u64)ca->ali * weights >> 8;
	return needed > older ? div_u64(needed - older, w0) : 0;
}

/* Eq 2.1 as sqrt(L) / (sqrt(2/3) + 12 sqrt(3/8) (1 + 32 / L^2) / L), 24.8 */
static u32 ttfwc_equation(u32 ali)
{
	u64 root, term, cubed;

	ali = max(ali, 1U << 8);
	root = int_sqrt64((u64)ali << 24);
	term = div_u64((u64)TTFWC_12SQRT << 8, ali);
	cubed = div64_u64(term << (16 + 5), (u64)ali * ali);
	return div64_u64(root << 8, TTFWC_SQRT_2_3 + term + cubed);
}

/* The interval that gives this window: the inverse of eq 2.1 by bisection. */
static u32 ttfwc_inverse(u32 cwnd)
{
	u32 low = 1, high = TTFWC_LI_MAX;

	while (low < high) {
		u32 middle = low + (high - low) / 2;

		if (ttfwc_equation(middle << 8) >> 8 < cwnd)
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
	ca->tp = percent;
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
	if (open < ca->flat / 2)
		return;
	if (!ca->reno_cwnd) {
		ca->reno_cwnd = cwnd;
		ca->reno_from = open;
	}
	while (open - ca->reno_from >= ca->reno_cwnd) {
		ca->reno_from += ca->reno_cwnd;
		ca->reno_cwnd++;
	}
}

/* The flat period is over: delta's share, s3.2 */
static void ttfwc_tune(struct ttfwc *ca, u32 cwnd)
{
	u32 delta = ca->reno_cwnd > cwnd ? ca->reno_cwnd - cwnd : 0;
	u32 share = ttfwc_responsive(ca) ? ca->tp * 100 : ca->tp * ca->tp;

	ca->added = 1;
	if (ca->tunable)
		ca->extra = (u64)delta * share / 10000;
}

/* The ALI with the open interval in it. */
static u32 ttfwc_open_ali(const struct ttfwc *ca, u32 open)
{
	u32 step = ttfwc_responsive(ca) ? READ_ONCE(step_responsive) :
					  READ_ONCE(step_smooth);
	u32 weights;
	u64 older;

	if (step)
		return min_t(u64, ca->ali + ((u64)((open - ca->flat) / step)
					     << 8), U32_MAX);
	ttfwc_shifted(ca, &older, &weights);
	older += (u64)ttfwc_weight(0, ttfwc_n(ca)) * open;
	return max_t(u32, div_u64(older << 8, weights), ca->ali);
}

static void ttfwc_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct ttfwc *ca = inet_csk_ca(sk);
	u32 open = ttfwc_open(sk), cwnd = tcp_snd_cwnd(tp), wanted;
	bool limited = tcp_is_cwnd_limited(sk);

	if (!limited)
		goto out;
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
	wanted = (ttfwc_equation(ttfwc_open_ali(ca, open)) >> 8) + ca->extra;
	if (wanted > cwnd)
		cc_set_cwnd(tp, min(wanted, cwnd + acked), 2);
out:
	trace_cc_hook(sk, CC_AVOID, acked, limited);
}

/* Close the open interval and derive the next window from the history. */
static u32 ttfwc_ssthresh(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct ttfwc *ca = inet_csk_ca(sk);
	u32 cwnd = tcp_snd_cwnd(tp), base, next, ratio;

	if (!ca->count) {
		/* the first loss: as if the half window had been in balance */
		ca->li[0] = ttfwc_inverse(max(cwnd >> 1, 2U));
	} else {
		memmove(ca->li + 1, ca->li,
			sizeof(ca->li) - sizeof(ca->li[0]));
		ca->li[0] = max(ttfwc_open(sk), 1U);
	}
	ca->count = min(ca->count + 1, TTFWC_INTERVALS);
	ca->begun = tp->delivered;
	ca->ali = ttfwc_mean(ca->li, ca->count, ttfwc_n(ca));
	ca->flat = ttfwc_flat(ca);
	next = ttfwc_equation(ca->ali) >> 8;
	ca->reno = next < 2;
	next = max(next, 2U);
	base = max(cwnd, ca->extra + 1) - ca->extra;
	ratio = (u64)next * 100 / base;
	ca->tunable = next < base &&
		      ratio > (ttfwc_responsive(ca) ?
			       READ_ONCE(ratio_responsive) :
			       READ_ONCE(ratio_smooth));
	ca->extra = 0;
	ca->reno_cwnd = 0;
	ca->added = 0;
	trace_cc_hook(sk, CC_LOSS, next, -1);
	return next;
}

/* The loss was none: join the newest interval with the open one again. */
static u32 ttfwc_undo_cwnd(struct sock *sk)
{
	struct ttfwc *ca = inet_csk_ca(sk);
	u32 cwnd = tcp_reno_undo_cwnd(sk);

	if (ca->count > 1) {
		ca->begun -= ca->li[0];
		ca->count--;
		memmove(ca->li, ca->li + 1, sizeof(ca->li) - sizeof(ca->li[0]));
		ca->ali = ttfwc_mean(ca->li, ca->count, ttfwc_n(ca));
		ca->flat = ttfwc_flat(ca);
		ca->reno = 0;
	} else {
		ca->count = 0;
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
