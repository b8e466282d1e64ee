// SPDX-License-Identifier: GPL-2.0-only
/*
 * Medley TCP
 *
 * A loss-based and a delay-based component share one increment.  Once per
 * round trip the window grows by I packets, and I itself grows by two per
 * round as long as the backlog that the flow sees is no more than the growth
 * alone explains; otherwise the window shrinks by one packet, or creeps up by
 * half a packet where the last loss was one of congestion.  There is no
 * separate slow start: without a queue W_i = i^2 - i + 2 (eq 4.3).
 *
 * Cheng-Yuan Ho, "Design and Performance Evaluation of an End-to-end Congestion
 * Control Algorithm", dissertation, National Chiao Tung University, 2008
 * ("Ho").  d is the least RTT seen, D the mean RTT of a round, W the window:
 *
 *   backlog   Delta = W (D - d) / D				(eq 2.1)
 *   influence Gamma = W I / (2 A d + I), A = W / D, if I > 0	(eq 3.3)
 *   increment I = 2    if Delta <= Gamma and I < 0, or
 *                      Delta > Gamma and I = -1 and Delta < Delta_last
 *             I += 2   if Delta <= Gamma and I >= 0
 *             I = 1/2  if Delta > Gamma and R
 *             I = -1   otherwise					(s3.2.3)
 *   window    W = min(W + I, 2 W) per round, W = 3/4 W on a loss (s3.2.3)
 *   R         on a loss: Delta > Gamma (congestion), else false (random)
 *
 * Differences from the paper
 *  - Order: at the end of a round I comes first and is applied at once (Ho
 *    Table 4.2).  The first round has nothing to judge and leaves I at 0,
 *    which gives the 2 2 4 8 14 ... of Ho Table 4.1.
 *  - The growth is applied at the round's start, as in Ho s4.1 (eq 4.2), not
 *    spread over its ACKs.  The queue of that burst is what makes Delta exceed
 *    Gamma at about half of the path's capacity instead of beyond all of it.
 *  - Gamma before any growth is taken for I = 2; the paper leaves it open.
 *  - Retransmission is the kernel's RACK-TLP with proportional rate reduction,
 *    today's successor of the fine-grained timer of Vegas.  The loss of a
 *    retransmission (W / 2 instead of 3/4 W, Ho s2.4) is seen for the packet at
 *    the head of the retransmission queue.
 *  - Timeout: the paper says "quite similar to Vegas", so W = 2 (parameter
 *    timeout_cwnd); growth then begins as at the start, since there is no slow
 *    start.  d is kept.
 *  - A round in which the application did not fill the window changes nothing,
 *    nor does one without an RTT of a full packet.  After an idle time the kernel
 *    shrinks the window (RFC 2861), and growth begins as at the start.
 *
 * Readings
 *  - d is "the minimum-observed packet round-trip time", and eqs 3.1 and 4.1 say of
 *    which packet: one of full size (cc_rtt.h).  With all of the stack's samples d
 *    is too small for ever after a small first message or after a retransmission
 *    whose ACK is timed in whole milliseconds: utilisation 0.983 at 100 Mbit/s and
 *    40 or 100 ms, and 0.874 at 37 Mbit/s, 73 ms and a buffer of 33 packets; 1.000
 *    in all three with full packets' only.
 *  - Delta and Gamma are counted in whole packets, the nearest each.  The text does
 *    not say so; ns-2's Vegas, to whose recovery Medley's is "quite similar"
 *    (s3.2.3), counts its Delta so, and so do the printed numbers: t_2 = 28 and
 *    W = 422 of s4.3, two flows' index of 92.47 %, and a short queue with several
 *    flows (Tables 5.1 to 5.4).  By real numbers (parameter whole_packets = 0) the
 *    rules, and eqs 4.6 and 4.7, give 27 and 410 from the same t_1 = 20 and W = 382,
 *    two flows 99.99 %, and three and more flows fill any buffer: after one fall of
 *    all of them Delta is a little smaller already, and each rises by two.
 *    kernels/reference/README.md has the numbers side by side.
 *  - A burst of I packets has to fit the buffer.  With the rules above it does where
 *    2 t_1 - 4 packets do; where far less fits, the window falls by a quarter
 *    again and again before it fills the path (kernels/reference/medley_rounds.py
 *    says for which paths, benchmarks/medley_paths.py measures it).
 *  - D contains what hosts add to an RTT, d only the least of it.  Where that is so
 *    many packets' time as Gamma allows, about one for I = 2, a path that is not full
 *    looks full: growth then is -1, -1, 2 with luck.  At 50 Mbit/s and 100 ms with
 *    even draws at both hosts of up to 80 and of 162 us (half a packet's
 *    time and one): utilisation 1.00 and 0.94 to 1.00 in the second minute, by real
 *    numbers 1.00 and 0.76.
 *
 * Fixed point: I in half packets, Delta and Gamma in 1/1024 packet, D in 1/8 us.
 * W < 2^20, I < 2^12 packets and D < 2^24 us keep every product below 2^61.
 *
 * Cost: a loss is 3.2 times CUBIC's: a 64-bit division judges whether it was
 * one of congestion.
 */
#include "cc_rtt.h"
#include "cc_single.h"
#include "cc_timeout.h"

#define TRACE_SYSTEM tcp_medley
#define CREATE_TRACE_POINTS
#include "cc_trace.h"
#include "cc_reno.h"

#define MEDLEY_SHIFT	10		/* fraction bits of Delta and Gamma */
#define MEDLEY_W_MAX	((1U << 20) - 1)
#define MEDLEY_I_MAX	(2 * ((1 << 12) - 1))	/* half packets */
#define MEDLEY_STEP	4		/* two packets, in half packets */
#define MEDLEY_MINUS	(-2)		/* minus one packet */
#define MEDLEY_HALF	1		/* half a packet */

static unsigned int init_cwnd __read_mostly = 2;
CC_PARAM_RANGE(init_cwnd_ops, 1, 100);
module_param_cb(init_cwnd, &init_cwnd_ops, &init_cwnd, 0644);
MODULE_PARM_DESC(init_cwnd, "initial window W_0, packets, 1-100 (2)");

static unsigned int timeout_cwnd __read_mostly = 2;
CC_PARAM_RANGE(timeout_cwnd_ops, 1, 100);
module_param_cb(timeout_cwnd, &timeout_cwnd_ops, &timeout_cwnd, 0644);
MODULE_PARM_DESC(timeout_cwnd, "window after a timeout, packets, 1-100 (2)");

static unsigned int whole_packets __read_mostly = 1;
CC_PARAM_RANGE(whole_packets_ops, 0, 1);
module_param_cb(whole_packets, &whole_packets_ops, &whole_packets, 0644);
MODULE_PARM_DESC(whole_packets, "Delta and Gamma are whole packets (1) or real numbers (0), 0-1 (1)");

struct medley {
	struct cc_rtt_mean mean;	/* of this round: D */
	struct cc_rtt rtt;		/* its least one is d */
	struct cc_round round;
	u32 delta;			/* backlog, 22.10 packets */
	u32 delta_last;
	u32 gamma;			/* influence of I, 22.10 packets */
	s32 incr;			/* I, half packets */
	u32 rexmit_seq;			/* head retransmitted at rexmit_us */
	u32 rexmit_us;
	u8 congested:1;			/* R */
	u8 judged:1;			/* a round has been measured */
	u8 half:1;			/* half a packet is owed to W */
	u8 rexmit:1;			/* rexmit_seq is valid */
	u8 halved:1;			/* a retransmission was lost */
	u8 reduced:1;			/* ssthresh() was called */
};

static u32 medley_window(const struct tcp_sock *tp)
{
	return clamp_t(u32, tcp_snd_cwnd(tp), 1, MEDLEY_W_MAX);
}

/* Delta or Gamma as it is compared: where so asked, the nearest whole packet */
static u32 medley_counted(u32 packets)
{
	u32 half = 1U << (MEDLEY_SHIFT - 1);

	if (!READ_ONCE(whole_packets))
		return packets;
	return (packets + half) & ~(2 * half - 1);
}

/* Delta = W (D - d) / D, eq 2.1; below 2^20 x 2^10 x 2^27 */
static u32 medley_delta(u32 cwnd, u32 rtt_us8, u32 base_us8)
{
	u64 num = ((u64)cwnd << MEDLEY_SHIFT) * (rtt_us8 - base_us8);

	return medley_counted(div_u64(num, rtt_us8));
}

/*
 * Gamma = W I / (2 A d + I) = 2I D / (4 d + 2I D / W), eq 3.3, with 2I = incr:
 * the numerator is below 2^(13 + 27 + 20)
 */
static u32 medley_gamma(u32 cwnd, u32 incr, u32 rtt_us8, u32 base_us8)
{
	u64 growth = ((u64)incr * rtt_us8) << MEDLEY_SHIFT;
	u64 den = ((u64)base_us8 << (MEDLEY_SHIFT + 2)) + div_u64(growth, cwnd);

	return medley_counted(div64_u64(growth << MEDLEY_SHIFT, den));
}

/* The increment for the next round, s3.2.3. */
static s32 medley_increment(const struct medley *ca)
{
	if (ca->delta <= ca->gamma) {
		if (ca->incr < 0)
			return MEDLEY_STEP;
		return min(ca->incr + MEDLEY_STEP, MEDLEY_I_MAX);
	}
	if (ca->incr == MEDLEY_MINUS && ca->delta < ca->delta_last)
		return MEDLEY_STEP;
	return ca->congested ? MEDLEY_HALF : MEDLEY_MINUS;
}

/* W = min(W + I, 2 W); the half packet of I = 1/2 is kept until it is whole. */
static void medley_apply(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct medley *ca = inet_csk_ca(sk);
	s32 cwnd = medley_window(tp);
	s32 halves = min(2 * cwnd + ca->half + ca->incr, 4 * cwnd);

	ca->half = halves & 1;
	cc_set_cwnd(tp, max(halves >> 1, 0), 2);
}

/* Judge the round that is over by the RTTs seen in it. */
static void medley_judge(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct medley *ca = inet_csk_ca(sk);
	u32 rtt_us8 = cc_rtt_mean_us8(&ca->mean);
	u32 base_us8 = ca->rtt.base_us << 3;
	u32 cwnd = medley_window(tp);

	ca->delta_last = ca->delta;
	ca->delta = medley_delta(cwnd, rtt_us8, base_us8);
	if (ca->incr > 0)
		ca->gamma = medley_gamma(cwnd, ca->incr, rtt_us8, base_us8);
	else if (!ca->gamma)
		ca->gamma = medley_gamma(cwnd, MEDLEY_STEP, rtt_us8, base_us8);
}

static void medley_next_round(struct sock *sk)
{
	struct medley *ca = inet_csk_ca(sk);

	cc_rtt_mean_reset(&ca->mean);
	cc_round_begin(&ca->round, tcp_sk(sk));
}

static void medley_init(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct medley *ca = inet_csk_ca(sk);

	memset(ca, 0, sizeof(*ca));
	cc_rtt_begin(&ca->rtt, tp);
	medley_next_round(sk);
	cc_send_singly(sk);
	/* tcp_init_transfer() has set the kernel's initial window before */
	if (cc_is_new(tp) && !cc_syn_lost(tp))
		cc_set_cwnd(tp, cc_route_metric(sk, RTAX_INITCWND,
						READ_ONCE(init_cwnd)), 1);
	trace_cc_hook(sk, CC_INIT, 0, -1);
}

/* W / 2 if the head of the queue has been retransmitted twice, Ho s2.4. */
static void medley_check_rexmit(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct medley *ca = inet_csk_ca(sk);
	const struct sk_buff *head = tcp_rtx_queue_head(sk);
	u32 seq, sent_us;

	if (!head || !(TCP_SKB_CB(head)->sacked & TCPCB_EVER_RETRANS))
		return;
	seq = TCP_SKB_CB(head)->seq;
	sent_us = tcp_skb_timestamp_us(head);
	if (ca->rexmit && seq == ca->rexmit_seq && sent_us != ca->rexmit_us) {
		ca->halved = 1;
		tp->snd_ssthresh = max(tp->prior_cwnd >> 1, 2U);
		trace_cc_hook(sk, CC_REXMIT_LOST, tp->snd_ssthresh, -1);
	}
	ca->rexmit = 1;
	ca->rexmit_seq = seq;
	ca->rexmit_us = sent_us;
}

static void medley_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	struct medley *ca = inet_csk_ca(sk);

	cc_rtt_measure(&ca->rtt, &ca->mean, tcp_sk(sk), sample);
	if (inet_csk(sk)->icsk_ca_state == TCP_CA_Recovery && !ca->halved)
		medley_check_rexmit(sk);
	trace_cc_hook(sk, CC_SAMPLE, sample->pkts_acked, sample->rtt_us);
}

static void medley_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct medley *ca = inet_csk_ca(sk);
	bool limited = cc_window_filled(sk);

	if (cc_round_over(&ca->round, tcp_sk(sk))) {
		if (limited && ca->mean.samples) {
			medley_judge(sk);
			if (ca->judged)
				ca->incr = medley_increment(ca);
			ca->judged = 1;
			medley_apply(sk);
		}
		medley_next_round(sk);
	}
	trace_cc_hook(sk, CC_AVOID, acked, limited);
}

/*
 * A loss: was it one of congestion?  The RTTs of the running round know best;
 * where there are none the last round's verdict stands.
 */
static u32 medley_ssthresh(struct sock *sk)
{
	struct medley *ca = inet_csk_ca(sk);
	u32 cwnd = medley_window(tcp_sk(sk));
	u32 ssthresh = max(cwnd - (cwnd >> 2), 2U);

	if (ca->mean.samples)
		ca->delta = medley_delta(cwnd, cc_rtt_mean_us8(&ca->mean),
					 ca->rtt.base_us << 3);
	ca->congested = ca->delta > ca->gamma;
	ca->incr = 0;
	ca->half = 0;
	ca->rexmit = 0;
	ca->halved = 0;
	ca->reduced = 1;
	trace_cc_hook(sk, CC_LOSS, ssthresh, -1);
	return ssthresh;
}

/* Growth begins as at the start. */
static void medley_restart(struct sock *sk)
{
	struct medley *ca = inet_csk_ca(sk);

	ca->incr = 0;
	ca->half = 0;
	ca->judged = 0;
	ca->delta = 0;
	medley_next_round(sk);
}

static void medley_set_state(struct sock *sk, u8 new_state)
{
	struct medley *ca = inet_csk_ca(sk);
	u8 old_state = inet_csk(sk)->icsk_ca_state;

	if (cc_timed_out(sk, new_state, ca->reduced)) {
		medley_restart(sk);
		cc_set_cwnd(tcp_sk(sk), READ_ONCE(timeout_cwnd), 1);
	}
	if (cc_loss_over(new_state))
		ca->reduced = 0;
	/* RTTs and rounds of before and during a recovery say nothing after */
	if (new_state == TCP_CA_Loss ||
	    (new_state == TCP_CA_Open &&
	     (old_state == TCP_CA_CWR || old_state == TCP_CA_Recovery)))
		medley_next_round(sk);
	trace_cc_hook(sk, CC_STATE, new_state, -1);
}

static void medley_cwnd_event(struct sock *sk, enum tcp_ca_event event)
{
	if (event != CA_EVENT_CWND_RESTART)
		return;
	medley_restart(sk);
	trace_cc_hook(sk, CC_EVENT, event, -1);
}

/* The phase is R. */
static size_t medley_get_info(struct sock *sk, u32 ext, int *attr,
			      union tcp_cc_info *info)
{
	const struct medley *ca = inet_csk_ca(sk);

	return cc_phase_info(ext, attr, info, ca->congested);
}

static struct tcp_congestion_ops tcp_medley __read_mostly = {
	.init		= medley_init,
	.release	= cc_send_gathered,
	.pkts_acked	= medley_pkts_acked,
	.cong_avoid	= medley_cong_avoid,
	.ssthresh	= medley_ssthresh,
	.set_state	= medley_set_state,
	.cwnd_event	= medley_cwnd_event,
	.undo_cwnd	= cc_reno_undo_cwnd,
	.min_tso_segs	= cc_single_tso_segs,
	.get_info	= medley_get_info,
	.owner		= THIS_MODULE,
	.name		= "medley",
};

static int __init medley_register(void)
{
	BUILD_BUG_ON(sizeof(struct medley) > ICSK_CA_PRIV_SIZE);
	return tcp_register_congestion_control(&tcp_medley);
}

static void __exit medley_unregister(void)
{
	tcp_unregister_congestion_control(&tcp_medley);
}

module_init(medley_register);
module_exit(medley_unregister);

MODULE_DESCRIPTION("Medley TCP (Ho 2008)");
MODULE_LICENSE("GPL");
