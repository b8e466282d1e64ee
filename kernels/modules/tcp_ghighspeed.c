// SPDX-License-Identifier: GPL-2.0-only
/*
 * Gentle HighSpeed TCP, and HighSpeed TCP
 *
 * HighSpeed TCP while the bottleneck has room, Reno once it is full: congestion
 * avoidance is in HighSpeed mode until a statistical test finds that the RTTs
 * rise, and in Reno mode until it finds that they fall.
 *
 * Koichi Tokuda, master's thesis, Osaka University, 2003 ("Tokuda").
 *  - HighSpeed mode: a(w) packets per round, w (1 - b(w)) on a loss (eqs 2-4)
 *  - Reno mode: one packet per round; the reaction to a loss is the same (s5.1.2)
 *  - the mode survives fast retransmit; a timeout leads to slow start (s5.1.2)
 *  - duplicate ACKs in the initial slow start: ssthresh = W / 2, cwnd = W / 4,
 *    and transmission goes on at once (s5.1.1)
 *  - slow start also ends when the first packet of a window is ACKed before the
 *    window has been sent (s5.1.1); that takes an interface of the sender's own
 *    that is no faster than the path, as the thesis' fast hosts have
 *
 * `hstcp` is HighSpeed TCP as the thesis compares with it: W_low = 31 and nothing
 * of the above but the first line.  The kernel's own `highspeed` has W_low = 38.
 *
 * Differences from the paper
 *  - The test (open in the paper) is Pearson's correlation of send time and RTT
 *    over n points with Student's t at a one-sided level: a rising trend if
 *    t = r sqrt((n - 2) / (1 - r^2)) > t_crit, a falling one if t < -t_crit.
 *    n is test_points (32), the level test_level (1 %).  A point is the mean of
 *    an eighth of a window, so the bursts within a round do not look like trends
 *    and a test of 32 points spans four rounds.  Points of different tests do
 *    not overlap; a recovery begins a new test.  A packet that was overtaken
 *    counts as sent with the first one of the test.
 *  - A loss in Reno mode: "identical with TCP Reno" and "identical to that in the
 *    HighSpeed mode" (both s5.1.2) contradict each other where b(w) < 1/2.
 *    reno_loss=0 takes the second, 1 the first.
 *  - The mode after a timeout (Fig 8 is lost) is that before it.
 *  - "Transmits again from the lost packet": the kernel's SACK recovery resends
 *    what is lost; the rate reduction aims at W / 4, and slow start to W / 2
 *    follows.  classic=1 has the thesis' recovery without SACK, see cc_classic.h:
 *    the third loss in a window waits for a timeout and a window of one packet.
 *  - W_low is 31 as in the thesis; w_low=38 is RFC 3649.  W_high, P_high and
 *    b_high (83 000, 10^-7, 0.1) are RFC 3649's; the thesis prints the last two.
 *    a(w) and b(w) come from a table with linear interpolation, within 0.4 % of
 *    eq 3, and stay what they are above W_high.
 *  - Limited slow start (RFC 3742), which the thesis compares with, is the
 *    parameter max_ssthresh.
 *
 * Fixed point: a(w) 24.8, b(w) 16.16.
 *
 * Cost: an ACK is 2.8 to 3.4 times CUBIC's, since each is a sample of the
 * trend test, whose mean over a point is two 64-bit divisions, and a(w) is
 * interpolated; a loss (4.6 times) interpolates b(w) and clears the test.
 */
#include "cc_classic.h"
#include "cc_highspeed.h"
#include "cc_rtt.h"
#include "cc_timeout.h"
#include "cc_trend.h"

#define TRACE_SYSTEM tcp_ghighspeed
#define CREATE_TRACE_POINTS
#include "cc_trace.h"

#define GHS_POINTS_PER_WINDOW	8
#define GHS_POINT_MAX	((u32)U16_MAX)
#define GHS_FAST_RETRANSMITS	2	/* in a window, s4.2 */

static unsigned int w_low __read_mostly = 31;
static unsigned int test_points __read_mostly = 32;
static unsigned int test_level __read_mostly = 1;
static unsigned int max_ssthresh __read_mostly;
static unsigned int reno_loss __read_mostly;
static unsigned int classic __read_mostly;

static int ghs_w_low_set(const char *val, const struct kernel_param *kp)
{
	unsigned int w;
	int err = kstrtouint(val, 0, &w);

	if (err)
		return err;
	if (w != 31 && w != 38)
		return -EINVAL;
	WRITE_ONCE(w_low, w);
	return 0;
}

static const struct kernel_param_ops ghs_w_low_ops = {
	.set = ghs_w_low_set,
	.get = param_get_uint,
};

module_param_cb(w_low, &ghs_w_low_ops, &w_low, 0644);
MODULE_PARM_DESC(w_low, "window from which HighSpeed differs from Reno, packets, 31 (thesis) or 38 (RFC 3649) (31)");
CC_PARAM_RANGE(test_points_ops, 8, 128);
module_param_cb(test_points, &test_points_ops, &test_points, 0644);
MODULE_PARM_DESC(test_points, "points n of a trend test, 8-128 (32)");
CC_PARAM_RANGE(test_level_ops, 1, 10);
module_param_cb(test_level, &test_level_ops, &test_level, 0644);
MODULE_PARM_DESC(test_level, "one-sided level of the trend test, percent, 1-10 (1)");
CC_PARAM_RANGE(max_ssthresh_ops, 0, 1000000);
module_param_cb(max_ssthresh, &max_ssthresh_ops, &max_ssthresh, 0644);
MODULE_PARM_DESC(max_ssthresh, "limited slow start above this window (RFC 3742), packets, 0-1000000, 0 for none (0)");
CC_PARAM_RANGE(switch_ops, 0, 1);
module_param_cb(reno_loss, &switch_ops, &reno_loss, 0644);
MODULE_PARM_DESC(reno_loss, "what a loss costs in Reno mode, 0-1: b(w) as in HighSpeed mode, or half (0)");
module_param_cb(classic, &switch_ops, &classic, 0644);
MODULE_PARM_DESC(classic, "loss recovery, 0-1: the kernel's, or that of classic Reno (0)");

struct ghighspeed {
	struct cc_trend test;
	u64 point_rtt_us;		/* of the running point: sum of RTTs, */
	u64 point_sent_us;		/* sum of send times after the first */
	u32 first_sent_us;		/* of the test */
	u16 point_samples;
	u16 point_size;
	struct cc_round round;
	struct cc_rtt rtt;
	u32 growth;			/* cwnd's fraction x cwnd, 24.8 */
	u32 ssthresh_after;		/* W / 2 while cwnd goes to W / 4 */
	struct cc_classic classic;
	u8 index;			/* a(w)'s place in the table */
	u8 gentle:1;			/* not HighSpeed TCP itself */
	u8 reno:1;			/* Reno mode */
	u8 lost:1;			/* the initial slow start is over */
	u8 lost_before:1;		/* the same before the last loss */
	u8 reduced:1;			/* ssthresh() was called */
};

static void ghs_test_begin(struct ghighspeed *ca)
{
	memset(&ca->test, 0, sizeof(ca->test));
	ca->point_rtt_us = 0;
	ca->point_sent_us = 0;
	ca->point_samples = 0;
}

/* One RTT sample: part of a point; n points make a test, which sets the mode. */
static void ghs_sample(struct sock *sk, u32 rtt_us)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct ghighspeed *ca = inet_csk_ca(sk);
	u32 sent_us = (u32)tp->tcp_mstamp - rtt_us;
	int trend;

	if (!ca->test.n && !ca->point_samples)
		ca->first_sent_us = sent_us;
	if (!ca->point_samples)
		ca->point_size = clamp(tcp_snd_cwnd(tp) / GHS_POINTS_PER_WINDOW,
				       1U, GHS_POINT_MAX);
	ca->point_rtt_us += rtt_us;
	/* where packets overtake each other, the first is not the first sent */
	ca->point_sent_us += max((s32)(sent_us - ca->first_sent_us), 0);
	if (++ca->point_samples < ca->point_size)
		return;
	cc_trend_point(&ca->test,
		       div_u64(ca->point_rtt_us, ca->point_samples),
		       div_u64(ca->point_sent_us, ca->point_samples));
	ca->point_rtt_us = 0;
	ca->point_sent_us = 0;
	ca->point_samples = 0;
	if (ca->test.n < READ_ONCE(test_points))
		return;
	trend = cc_trend_sign(&ca->test, READ_ONCE(test_level));
	if (trend)
		ca->reno = trend > 0;
	ghs_test_begin(ca);
}

/* a(w) and b(w), eq 3, between two points of the table */
static void ghs_response(struct ghighspeed *ca, u32 w, u32 *a, u32 *b)
{
	const struct cc_highspeed_point *t = cc_highspeed_w31;
	u32 last = ARRAY_SIZE(cc_highspeed_w31) - 1;
	u32 i = ca->index;

	if (READ_ONCE(w_low) == 38) {
		t = cc_highspeed_w38;
		last = ARRAY_SIZE(cc_highspeed_w38) - 1;
	}
	i = min(i, last);
	while (i < last && w >= t[i + 1].w)
		i++;
	while (i && w < t[i].w)
		i--;
	ca->index = i;
	*a = t[i].a;
	*b = t[i].b;
	if (i < last && w > t[i].w) {
		*a += (t[i + 1].a - t[i].a) * (w - t[i].w) /
		      (t[i + 1].w - t[i].w);
		*b -= (t[i].b - t[i + 1].b) * (w - t[i].w) /
		      (t[i + 1].w - t[i].w);
	}
}

static void ghs_begin(struct sock *sk, bool gentle)
{
	struct ghighspeed *ca = inet_csk_ca(sk);

	memset(ca, 0, sizeof(*ca));
	ca->gentle = gentle;
	if (READ_ONCE(classic))
		cc_classic_begin(sk, &ca->classic);
	cc_rtt_begin(&ca->rtt, tcp_sk(sk));
	cc_round_begin(&ca->round, tcp_sk(sk));
	trace_cc_hook(sk, CC_INIT, gentle, -1);
}

static void ghs_init(struct sock *sk)
{
	ghs_begin(sk, true);
}

static void hstcp_init(struct sock *sk)
{
	ghs_begin(sk, false);
}

static void ghs_release(struct sock *sk)
{
	struct ghighspeed *ca = inet_csk_ca(sk);

	cc_classic_end(sk, &ca->classic);
}

static void ghs_in_ack_event(struct sock *sk, u32 flags)
{
	struct ghighspeed *ca = inet_csk_ca(sk);

	cc_classic_ack(sk, &ca->classic, GHS_FAST_RETRANSMITS);
}

static void ghs_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	struct ghighspeed *ca = inet_csk_ca(sk);
	u32 rtt_us = cc_rtt_sample(&ca->rtt, tcp_sk(sk), sample);

	if (ca->gentle && rtt_us &&
	    inet_csk(sk)->icsk_ca_state <= TCP_CA_Disorder &&
	    !tcp_in_slow_start(tcp_sk(sk)))
		ghs_sample(sk, rtt_us);
	trace_cc_hook(sk, CC_SAMPLE, sample->pkts_acked, sample->rtt_us);
}

/* w += a(w) / w per ACKed packet; a(w) is 1 in Reno mode */
static void ghs_grow(struct sock *sk, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct ghighspeed *ca = inet_csk_ca(sk);
	u32 w = tcp_snd_cwnd(tp), a, b;

	ghs_response(ca, w, &a, &b);
	if (ca->reno)
		a = 1 << 8;
	ca->growth += a * acked;
	while (ca->growth >= w << 8) {
		ca->growth -= w << 8;
		w++;
	}
	cc_set_cwnd(tp, w, 1);
}

static void ghs_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct ghighspeed *ca = inet_csk_ca(sk);
	u32 left = acked;
	bool limited = tcp_is_cwnd_limited(sk);

	if (cc_round_over(&ca->round, tp)) {
		/* a window's first packet is ACKed before the window is sent */
		if (ca->gentle && tcp_in_slow_start(tp) && cc_window_unsent(sk))
			tp->snd_ssthresh = tcp_snd_cwnd(tp);
		cc_round_begin(&ca->round, tp);
	}
	if (limited) {
		if (tcp_in_slow_start(tp))
			left = cc_limited_slow_start(tp, acked,
						     READ_ONCE(max_ssthresh));
		if (left)
			ghs_grow(sk, left);
	}
	trace_cc_hook(sk, CC_AVOID, acked, limited);
}

/*
 * w (1 - b(w)), or w / 2 in Reno mode where reno_loss says so.  In Gentle
 * HighSpeed's initial slow start the recovery aims at W / 4 and ssthresh becomes
 * W / 2 when it is over; a timeout uses the latter alone.
 */
static u32 ghs_ssthresh(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct ghighspeed *ca = inet_csk_ca(sk);
	u32 w = tcp_snd_cwnd(tp), ssthresh, a, b;

	ca->ssthresh_after = 0;
	if (ca->gentle && !ca->lost && tcp_in_slow_start(tp)) {
		ca->ssthresh_after = max(w >> 1, 2U);
		ssthresh = max(w >> 2, 2U);
	} else {
		ghs_response(ca, w, &a, &b);
		if (ca->reno && READ_ONCE(reno_loss))
			b = 1 << 15;
		ssthresh = max_t(u32, w - ((u64)w * b >> 16), 2U);
	}
	ca->lost_before = ca->lost;
	ca->lost = 1;
	ca->reduced = 1;
	ca->growth = 0;
	ghs_test_begin(ca);
	trace_cc_hook(sk, CC_LOSS, ssthresh, -1);
	return ssthresh;
}

static void ghs_set_state(struct sock *sk, u8 new_state)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct ghighspeed *ca = inet_csk_ca(sk);

	cc_classic_state(sk, &ca->classic, new_state);
	if (cc_timed_out(sk, new_state, ca->reduced)) {
		ca->ssthresh_after = 0;
		ca->growth = 0;
		tp->snd_ssthresh = max(tp->prior_cwnd >> 1, 2U);
		ghs_test_begin(ca);
	}
	if (cc_loss_over(new_state))
		ca->reduced = 0;
	trace_cc_hook(sk, CC_STATE, new_state, -1);
}

static void ghs_cwnd_event(struct sock *sk, enum tcp_ca_event event)
{
	struct ghighspeed *ca = inet_csk_ca(sk);

	if (event != CA_EVENT_COMPLETE_CWR)
		return;
	cc_classic_event(sk, &ca->classic, event);
	if (ca->ssthresh_after)
		tcp_sk(sk)->snd_ssthresh = ca->ssthresh_after;
	ca->ssthresh_after = 0;
	cc_round_begin(&ca->round, tcp_sk(sk));
	trace_cc_hook(sk, CC_EVENT, event, -1);
}

static u32 ghs_undo_cwnd(struct sock *sk)
{
	struct ghighspeed *ca = inet_csk_ca(sk);
	u32 cwnd = tcp_reno_undo_cwnd(sk);

	ca->ssthresh_after = 0;
	ca->lost = ca->lost_before;
	trace_cc_hook(sk, CC_UNDO, cwnd, -1);
	return cwnd;
}

#define GHS_OPS(_name, _init) {					\
	.init		= _init,				\
	.release	= ghs_release,				\
	.in_ack_event	= ghs_in_ack_event,			\
	.pkts_acked	= ghs_pkts_acked,			\
	.cong_avoid	= ghs_cong_avoid,			\
	.ssthresh	= ghs_ssthresh,				\
	.set_state	= ghs_set_state,			\
	.cwnd_event	= ghs_cwnd_event,			\
	.undo_cwnd	= ghs_undo_cwnd,			\
	.owner		= THIS_MODULE,				\
	.name		= _name,				\
}

static struct tcp_congestion_ops tcp_ghighspeed __read_mostly =
	GHS_OPS("ghighspeed", ghs_init);
static struct tcp_congestion_ops tcp_hstcp __read_mostly =
	GHS_OPS("hstcp", hstcp_init);

static int __init ghs_register(void)
{
	int err;

	BUILD_BUG_ON(sizeof(struct ghighspeed) > ICSK_CA_PRIV_SIZE);
	err = tcp_register_congestion_control(&tcp_ghighspeed);
	if (err)
		return err;
	err = tcp_register_congestion_control(&tcp_hstcp);
	if (err)
		tcp_unregister_congestion_control(&tcp_ghighspeed);
	return err;
}

static void __exit ghs_unregister(void)
{
	tcp_unregister_congestion_control(&tcp_hstcp);
	tcp_unregister_congestion_control(&tcp_ghighspeed);
}

module_init(ghs_register);
module_exit(ghs_unregister);

MODULE_DESCRIPTION("Gentle HighSpeed TCP and HighSpeed TCP (Tokuda 2003)");
MODULE_LICENSE("GPL");
MODULE_ALIAS("tcp_hstcp");
