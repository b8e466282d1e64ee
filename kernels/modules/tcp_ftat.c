// SPDX-License-Identifier: GPL-2.0-only
/*
 * TCP FTAT: Fast Transmit Adaptive Transmission
 *
 * A loss does not cut the window.  It starts a measurement of one round trip,
 * in which every delivered packet lets one more be sent, and the window becomes
 * what was delivered meanwhile.
 *
 * Mohammed Afifi, master's thesis, Cleveland State University, 2014 ("Afifi"),
 * s3.5.2:
 *  - Start: cwnd = 64 KB; after one round trip cwnd = what was ACKed in it.
 *  - Additive Increase: one packet per ACK below cwndthreshold (the window just
 *    before the last loss) or below 64 KB, else one per round trip.
 *  - Adaptive Transmission, from the detection of a loss: the lost packet is sent
 *    again, one new packet per ACK or duplicate ACK, and one round trip later
 *    cwnd = max(1, packets delivered in it).
 *  - A timeout inside of it ends it with the count so far; in Additive Increase
 *    a timeout sets cwnd to one packet.
 *
 * Differences from the paper
 *  - Losses are those that the kernel finds (RACK-TLP, SACK), not only three
 *    duplicate ACKs; each loss found outside of a measurement starts one, also
 *    while the kernel's recovery goes on.
 *  - The window stands still during a measurement; since the kernel counts lost
 *    and delivered packets out of it, that sends one packet for each of them.
 *  - The first measurement begins with the first ACK (nothing is ACKed in the
 *    round trip before it) and the round trip is the smoothed RTT, of full packets
 *    sent once (cc_rtt.h).  What comes later than it is not counted.
 *  - A measurement during which the application had nothing to send, which the
 *    paper does not consider, leaves the window as it is.  One that the receiver's
 *    window or the send buffer limited counts.
 *  - Counted is what the receiver did not have before: a duplicate that it reports
 *    (DSACK) is not data, whether the sender or the path has made it.
 *  - An ECN mark starts a measurement as a loss does.
 *
 * Readings
 *  - 64 KB is the least window of fast growth in Additive Increase as well as the
 *    first one, so it decides what random losses leave: at 20 Mbit/s, 100 ms and 2 %
 *    of loss utilisation from the tenth to the twentieth second is 0.351, and 0.235
 *    with 15 000 bytes (init_bytes), each with one seed.
 *
 * Bytes are counted in packets of the connection's MSS.  The smoothed RTT (gain
 * 1/8) has 19 fraction bits, 2^24 us fill 43 bits of it.
 *
 * Cost: an ACK is 2.1 to 3.3 times CUBIC's: as cong_control() it also keeps
 * the pacing rate (a 64-bit division), which the stack does for the others,
 * and a loss (2.0 times) notes where the measurement begins.
 */
#include "cc_rtt.h"
#include "cc_timeout.h"

#define TRACE_SYSTEM tcp_ftat
#define CREATE_TRACE_POINTS
#include "cc_trace.h"

static unsigned int init_bytes __read_mostly = 65536;
CC_PARAM_RANGE(init_bytes_ops, 536, 4194304);
module_param_cb(init_bytes, &init_bytes_ops, &init_bytes, 0644);
MODULE_PARM_DESC(init_bytes, "first window and least one of linear growth, bytes, 536-4194304 (65536)");

#define FTAT_SRTT_SHIFT	19		/* a gain of 1/8 loses 2^-18 us */

enum ftat_phase {
	FTAT_START,			/* nothing ACKed yet */
	FTAT_MEASURE,			/* counting for one round trip */
	FTAT_INCREASE,
};

struct ftat {
	struct cc_rtt rtt;
	u64 srtt;			/* smoothed RTT, 45.19 us */
	u64 begun_us;			/* measurement: start, */
	u32 period_us;			/* length */
	u32 delivered;			/* and ftat_arrived() before it */
	u32 reported;			/* tp->dsack_dups so far, */
	u32 twice;			/* of which in tp->delivered */
	u32 threshold;			/* cwndthreshold, packets */
	u32 init_cwnd;			/* 64 KB in packets */
	u32 growth;			/* packets ACKed towards the next one */
	u32 cwnd;			/* window after the last ACK or before a loss */
	u8 phase;
	u8 app_limited:1;
	u8 reduced:1;			/* ssthresh() was called */
};

static void ftat_init(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct ftat *ca = inet_csk_ca(sk);

	memset(ca, 0, sizeof(*ca));
	cc_rtt_begin(&ca->rtt, tp);
	ca->reported = tp->dsack_dups;
	ca->init_cwnd = max(READ_ONCE(init_bytes) / max(tp->mss_cache, 1U), 1U);
	if (cc_is_new(tp) && !cc_syn_lost(tp))
		cc_set_cwnd(tp, ca->init_cwnd, 1);
	else
		ca->phase = FTAT_INCREASE;
	ca->cwnd = tcp_snd_cwnd(tp);
	trace_cc_hook(sk, CC_INIT, ca->init_cwnd, -1);
}

/*
 * What the receiver has got, in packets.  A duplicate that it reports (DSACK) is
 * in tp->delivered as well, unless more are reported by then than were sent again
 * (tcp_dsack_seen()): those the path has made.
 */
static u32 ftat_arrived(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct ftat *ca = inet_csk_ca(sk);

	if (ca->reported != tp->dsack_dups &&
	    tp->dsack_dups <= tp->total_retrans)
		ca->twice += tp->dsack_dups - ca->reported;
	ca->reported = tp->dsack_dups;
	return tp->delivered - ca->twice;
}

/* One round trip: the stack's word where no packet has been measured yet */
static u32 ftat_period(const struct ftat *ca, const struct tcp_sock *tp)
{
	return ca->srtt >> FTAT_SRTT_SHIFT ?: tp->srtt_us >> 3 ?: USEC_PER_SEC;
}

static void ftat_begin(struct sock *sk, u32 delivered)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct ftat *ca = inet_csk_ca(sk);

	ca->phase = FTAT_MEASURE;
	ca->begun_us = tp->tcp_mstamp;
	ca->period_us = ftat_period(ca, tp);
	ca->delivered = delivered;
	ca->app_limited = 0;
	ca->growth = 0;
}

/* The window becomes what was delivered; late packets came after the period. */
static void ftat_end(struct sock *sk, u32 late)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct ftat *ca = inet_csk_ca(sk);
	u32 count = ftat_arrived(sk) - ca->delivered;

	ca->phase = FTAT_INCREASE;
	if (!ca->app_limited)
		cc_set_cwnd(tp, count - min(late, count), 1);
}

/* Additive Increase: per ACK below what is known to be safe, else per round */
static void ftat_increase(struct sock *sk, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct ftat *ca = inet_csk_ca(sk);
	u32 cwnd = tcp_snd_cwnd(tp);
	u32 fast = max(ca->threshold, ca->init_cwnd);

	if (cwnd < fast) {
		u32 grown = min(cwnd + acked, fast);

		acked -= grown - cwnd;
		cwnd = grown;
	}
	for (ca->growth += acked; ca->growth >= cwnd; cwnd++)
		ca->growth -= cwnd;
	cc_set_cwnd(tp, cwnd, 1);
}

static void ftat_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	struct ftat *ca = inet_csk_ca(sk);
	u64 rtt = cc_rtt_sample(&ca->rtt, tcp_sk(sk), sample);

	if (rtt) {
		rtt <<= FTAT_SRTT_SHIFT;
		if (ca->srtt)
			ca->srtt += (rtt >> 3) - (ca->srtt >> 3);
		else
			ca->srtt = rtt;
	}
	trace_cc_hook(sk, CC_SAMPLE, sample->pkts_acked, sample->rtt_us);
}

static void ftat_cong_control(CC_CONTROL_ARGS)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct ftat *ca = inet_csk_ca(sk);
	bool limited = tcp_is_cwnd_limited(sk), ended = false;
	bool loss = rs->losses > 0 &&
		    inet_csk(sk)->icsk_ca_state != TCP_CA_Loss;
	u32 acked = rs->acked_sacked, arrived = ftat_arrived(sk);
	u64 spent_us = tp->tcp_mstamp - ca->begun_us;

	ca->app_limited |= !limited && cc_nothing_to_send(sk);
	if (ca->phase == FTAT_MEASURE && spent_us >= ca->period_us) {
		ftat_end(sk, spent_us > ca->period_us ? acked : 0);
		ended = true;
	}
	if (ca->phase == FTAT_START) {
		if (acked && ca->srtt)
			ftat_begin(sk, arrived - acked);
	} else if (ca->phase == FTAT_INCREASE) {
		if (loss) {
			ca->threshold = tcp_snd_cwnd(tp);
			ftat_begin(sk, arrived);
		} else if (limited && !ended) {
			ftat_increase(sk, acked);
		}
	}
	ca->cwnd = tcp_snd_cwnd(tp);
	cc_update_pacing_rate(sk, 200);
	trace_cc_hook(sk, CC_CONTROL, acked, loss | !limited << 1);
}

/* The kernel asks at the beginning of every recovery: no cut. */
static u32 ftat_ssthresh(struct sock *sk)
{
	struct ftat *ca = inet_csk_ca(sk);
	u32 ssthresh = max(tcp_snd_cwnd(tcp_sk(sk)), 2U);

	ca->cwnd = tcp_snd_cwnd(tcp_sk(sk));
	ca->reduced = 1;
	trace_cc_hook(sk, CC_LOSS, ssthresh, -1);
	return ssthresh;
}

static void ftat_set_state(struct sock *sk, u8 new_state)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct ftat *ca = inet_csk_ca(sk);

	if (cc_timed_out(sk, new_state, ca->reduced)) {
		if (ca->phase == FTAT_MEASURE)
			cc_set_cwnd(tp, ftat_arrived(sk) - ca->delivered, 1);
		else if (inet_csk(sk)->icsk_ca_state != TCP_CA_Loss)
			/* prior_cwnd is older if a recovery is under way */
			ca->threshold = ca->cwnd;
		ca->phase = FTAT_INCREASE;
		ca->growth = 0;
	} else if (new_state == TCP_CA_CWR && ca->phase == FTAT_INCREASE) {
		ca->threshold = tcp_snd_cwnd(tp);
		ftat_begin(sk, ftat_arrived(sk));
	}
	if (cc_loss_over(new_state))
		ca->reduced = 0;
	trace_cc_hook(sk, CC_STATE, new_state, -1);
}

static u32 ftat_undo_cwnd(struct sock *sk)
{
	struct ftat *ca = inet_csk_ca(sk);
	u32 cwnd = tcp_reno_undo_cwnd(sk);

	ca->cwnd = cwnd;
	trace_cc_hook(sk, CC_UNDO, cwnd, -1);
	return cwnd;
}

static size_t ftat_get_info(struct sock *sk, u32 ext, int *attr,
			    union tcp_cc_info *info)
{
	const struct ftat *ca = inet_csk_ca(sk);

	return cc_phase_info(ext, attr, info, ca->phase);
}

static struct tcp_congestion_ops tcp_ftat __read_mostly = {
	.init		= ftat_init,
	.pkts_acked	= ftat_pkts_acked,
	.cong_control	= ftat_cong_control,
	.ssthresh	= ftat_ssthresh,
	.set_state	= ftat_set_state,
	.undo_cwnd	= ftat_undo_cwnd,
	.get_info	= ftat_get_info,
	.owner		= THIS_MODULE,
	.name		= "ftat",
};

static int __init ftat_register(void)
{
	BUILD_BUG_ON(sizeof(struct ftat) > ICSK_CA_PRIV_SIZE);
	return tcp_register_congestion_control(&tcp_ftat);
}

static void __exit ftat_unregister(void)
{
	tcp_unregister_congestion_control(&tcp_ftat);
}

module_init(ftat_register);
module_exit(ftat_unregister);

MODULE_DESCRIPTION("TCP FTAT (Afifi 2014)");
MODULE_LICENSE("GPL");
