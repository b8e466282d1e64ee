// SPDX-License-Identifier: GPL-2.0-only
/*
 * Gentle HighSpeed TCP
 *
 * HighSpeed TCP while the bottleneck has room, Reno once it is full: congestion
 * avoidance is in HighSpeed mode until a statistical test finds that the RTTs
 * rise, and in Reno mode until it finds that they fall.
 *
 * Shingo Tokuda, master's thesis, Osaka University, 2003 ("Tokuda").
 *  - HighSpeed mode: a(w) packets per round, w (1 - b(w)) on a loss (eqs 2-4)
 *  - Reno mode: one packet per round; the reaction to a loss is the same (s5.1.2)
 *  - the mode survives fast retransmit; a timeout leads to slow start (s5.1.2)
 *  - duplicate ACKs in the initial slow start: ssthresh = W / 2, cwnd = W / 4,
 *    and transmission goes on at once (s5.1.1)
 *  - slow start also ends when the first packet of a window is ACKed before the
 *    window has been sent (s5.1.1)
 *
 * Differences from the paper
 *  - The test (open in the paper) is Pearson's correlation of send time and RTT
 *    over n points with Student's t at a one-sided level: a rising trend if
 *    t = r sqrt((n - 2) / (1 - r^2)) > t_crit, a falling one if t < -t_crit.
 *    n is test_points (32), the level test_level (1 %).  A point is the mean of
 *    an eighth of a window, so the bursts within a round do not look like trends
 *    and a test of 32 points spans four rounds.  Points of different tests do
 *    not overlap; a recovery begins a new test.
 *  - "Transmits again from the lost packet": the kernel's SACK recovery resends
 *    what is lost; the rate reduction aims at W / 4, and slow start to W / 2
 *    follows.
 *  - W_low is 31 as in the thesis; w_low=38 is RFC 3649.  a(w) and b(w) come from
 *    a table with linear interpolation, within 0.4 % of eq 3.
 *  - Limited slow start (RFC 3742), which the thesis compares with, is the
 *    parameter max_ssthresh.
 *
 * Fixed point: a(w) 24.8, b(w) 16.16, t in 64 us and RTTs in us relative to the
 * first point.  With n <= 128 points, |t| < 2^20 and |d| < 2^24 every sum of
 * products times n stays below 2^62.
 *
 * Cost: an ACK is 2.8 to 3.4 times CUBIC's, since each is a sample of the
 * trend test, whose mean over a point is two 64-bit divisions, and a(w) is
 * interpolated; a loss (4.6 times) interpolates b(w) and clears the test.
 */
#include "cc_common.h"
#include "cc_highspeed.h"

#define TRACE_SYSTEM tcp_ghighspeed
#define CREATE_TRACE_POINTS
#include "cc_trace.h"

#define GHS_POINTS_PER_WINDOW	8
#define GHS_TIME_MAX	((1U << 20) - 1)	/* 64 us: 67 s */

static unsigned int w_low __read_mostly = 31;
static unsigned int test_points __read_mostly = 32;
static unsigned int test_level __read_mostly = 1;
static unsigned int max_ssthresh __read_mostly;

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

/* Sums over the points of a running test; d is the RTT in us, t the send time. */
struct ghs_test {
	u64 tt;
	u64 dd;
	s64 td;
	u32 t;
	s32 d;
	u32 n;
	u32 first_rtt_us;
	u32 first_sent_us;
};

struct ghighspeed {
	struct ghs_test test;
	u64 point_rtt_us;		/* of the running point: sum of RTTs, */
	u64 point_sent_us;		/* sum of send times after the first */
	u32 point_samples;
	u32 point_size;
	struct cc_round round;
	u32 growth;			/* cwnd's fraction x cwnd, 24.8 */
	u32 ssthresh_after;		/* W / 2 while cwnd goes to W / 4 */
	u8 index;			/* a(w)'s place in the table */
	u8 reno:1;			/* Reno mode */
	u8 lost:1;			/* the initial slow start is over */
};

/* Student's t for one-sided levels of 1 ... 10 %: the normal quantile in 1/1024 */
static const u16 ghs_normal[] = {
	2382, 2103, 1926, 1793, 1684, 1592, 1511, 1439, 1373, 1312,
};

/* t_crit^2, 22.10: t = z + (z^3 + z) / 4 df + (5 z^5 + 16 z^3 + 3 z) / 96 df^2 */
static u32 ghs_t_crit2(u32 level, u32 df)
{
	u64 z = ghs_normal[clamp(level, 1U, 10U) - 1];
	u64 z2 = z * z >> 10;
	u64 first = (z2 + 1024) * z >> 10;
	u64 second = ((5 * z2 * z2 >> 10) + 16 * z2 + 3 * 1024) * z >> 10;
	u64 t = z + div_u64(first, 4 * df) + div_u64(second, 96 * df * df);

	return t * t >> 10;
}

/*
 * The sign of a significant trend, 0 for none.  With X, Y, Z the centred sums
 * times n, t^2 = (n - 2) Z^2 / (X Y - Z^2).  X and Y are brought below 2^24, so
 * X Y < 2^48, times n - 2 < 2^7 or, 2^10 less, times t_crit^2 < 2^14.
 */
static int ghs_trend(const struct ghs_test *test, u32 level)
{
	u64 n = test->n;
	s64 x = n * test->tt - (u64)test->t * test->t;
	s64 y = n * test->dd - (s64)test->d * test->d;
	s64 z = (s64)n * test->td - (s64)test->t * test->d;
	int shift_x = max(fls64(x) - 24, 0), shift_y = max(fls64(y) - 24, 0);
	u64 xy, zz;

	if (n < 3 || x <= 0 || y <= 0)
		return 0;
	/* z^2 <= x y: shifting z by half of both shifts keeps that */
	if ((shift_x + shift_y) & 1)
		shift_x++;
	xy = (u64)(x >> shift_x) * (u64)(y >> shift_y);
	zz = abs(z) >> ((shift_x + shift_y) / 2);
	zz = min(zz * zz, xy);
	if ((zz * (n - 2)) < ((xy - zz) >> 10) * ghs_t_crit2(level, n - 2))
		return 0;
	return z > 0 ? 1 : -1;
}

static void ghs_test_begin(struct ghighspeed *ca)
{
	memset(&ca->test, 0, sizeof(ca->test));
	ca->point_rtt_us = 0;
	ca->point_sent_us = 0;
	ca->point_samples = 0;
}

static void ghs_test_point(struct ghs_test *test, u32 rtt_us, u32 sent_us)
{
	u32 t = min(sent_us >> 6, GHS_TIME_MAX);
	s64 d;

	if (!test->n)
		test->first_rtt_us = rtt_us;
	d = (s32)(rtt_us - test->first_rtt_us);
	test->n++;
	test->t += t;
	test->d += d;
	test->tt += (u64)t * t;
	test->dd += d * d;
	test->td += (s64)t * d;
}

/* One RTT sample: part of a point; n points make a test, which sets the mode. */
static void ghs_sample(struct sock *sk, u32 rtt_us)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct ghighspeed *ca = inet_csk_ca(sk);
	u32 sent_us = (u32)tp->tcp_mstamp - rtt_us;
	int trend;

	if (!ca->test.n && !ca->point_samples)
		ca->test.first_sent_us = sent_us;
	if (!ca->point_samples)
		ca->point_size = max(tcp_snd_cwnd(tp) / GHS_POINTS_PER_WINDOW,
				     1U);
	ca->point_rtt_us += rtt_us;
	ca->point_sent_us += sent_us - ca->test.first_sent_us;
	if (++ca->point_samples < ca->point_size)
		return;
	ghs_test_point(&ca->test,
		       div_u64(ca->point_rtt_us, ca->point_samples),
		       div_u64(ca->point_sent_us, ca->point_samples));
	ca->point_rtt_us = 0;
	ca->point_sent_us = 0;
	ca->point_samples = 0;
	if (ca->test.n < READ_ONCE(test_points))
		return;
	trend = ghs_trend(&ca->test, READ_ONCE(test_level));
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

static void ghs_init(struct sock *sk)
{
	struct ghighspeed *ca = inet_csk_ca(sk);

	memset(ca, 0, sizeof(*ca));
	cc_round_begin(&ca->round, tcp_sk(sk));
	trace_cc_hook(sk, CC_INIT, 0, -1);
}

static void ghs_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	if (sample->rtt_us > 0 &&
	    inet_csk(sk)->icsk_ca_state <= TCP_CA_Disorder &&
	    !tcp_in_slow_start(tcp_sk(sk)))
		ghs_sample(sk, min_t(u32, sample->rtt_us, CC_RTT_MAX_US));
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
		if (tcp_in_slow_start(tp) && cc_window_unsent(sk))
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
 * w (1 - b(w)).  In the initial slow start the recovery aims at W / 4 and
 * ssthresh becomes W / 2 when it is over; a timeout uses the latter alone.
 */
static u32 ghs_ssthresh(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct ghighspeed *ca = inet_csk_ca(sk);
	u32 w = tcp_snd_cwnd(tp), ssthresh, a, b;

	ca->ssthresh_after = 0;
	if (!ca->lost && tcp_in_slow_start(tp)) {
		ca->ssthresh_after = max(w >> 1, 2U);
		ssthresh = max(w >> 2, 2U);
	} else {
		ghs_response(ca, w, &a, &b);
		ssthresh = max_t(u32, w - ((u64)w * b >> 16), 2U);
	}
	ca->lost = 1;
	ca->growth = 0;
	ghs_test_begin(ca);
	trace_cc_hook(sk, CC_LOSS, ssthresh, -1);
	return ssthresh;
}

static void ghs_set_state(struct sock *sk, u8 new_state)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct ghighspeed *ca = inet_csk_ca(sk);

	if (new_state == TCP_CA_Loss) {
		ca->ssthresh_after = 0;
		ca->growth = 0;
		tp->snd_ssthresh = max(tp->prior_cwnd >> 1, 2U);
		ghs_test_begin(ca);
	}
	trace_cc_hook(sk, CC_STATE, new_state, -1);
}

static void ghs_cwnd_event(struct sock *sk, enum tcp_ca_event event)
{
	struct ghighspeed *ca = inet_csk_ca(sk);

	if (event != CA_EVENT_COMPLETE_CWR)
		return;
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
	trace_cc_hook(sk, CC_UNDO, cwnd, -1);
	return cwnd;
}

static struct tcp_congestion_ops tcp_ghighspeed __read_mostly = {
	.init		= ghs_init,
	.pkts_acked	= ghs_pkts_acked,
	.cong_avoid	= ghs_cong_avoid,
	.ssthresh	= ghs_ssthresh,
	.set_state	= ghs_set_state,
	.cwnd_event	= ghs_cwnd_event,
	.undo_cwnd	= ghs_undo_cwnd,
	.owner		= THIS_MODULE,
	.name		= "ghighspeed",
};

static int __init ghs_register(void)
{
	BUILD_BUG_ON(sizeof(struct ghighspeed) > ICSK_CA_PRIV_SIZE);
	return tcp_register_congestion_control(&tcp_ghighspeed);
}

static void __exit ghs_unregister(void)
{
	tcp_unregister_congestion_control(&tcp_ghighspeed);
}

module_init(ghs_register);
module_exit(ghs_unregister);

MODULE_DESCRIPTION("Gentle HighSpeed TCP (Tokuda 2003)");
MODULE_LICENSE("GPL");
