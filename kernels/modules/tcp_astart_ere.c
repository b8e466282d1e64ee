// SPDX-License-Identifier: GPL-2.0-only
/*
 * Astart with ERE, the eligible rate estimate
 *
 * Slow start up to an estimate of what the path gives this flow: when the window
 * has reached the first ssthresh, ssthresh = max(ssthresh, estimate x least RTT).
 *
 * Wang, Pau, Yamada, Sanadidi and Gerla, "TCP startup performance in large
 * bandwidth delay networks", INFOCOM 2004, as Yu 2009 (dissertation, University
 * of Florida) s4.6 compares with it:
 *  - the sample is what was delivered over T_k = RTT (W/Rmin - rate) / (W/Rmin),
 *    rate being what was delivered over the latest RTT (unfiltered, as Yu has it),
 *    through Westwood's low-pass filter with cut-off 1 / tau, tau = 1 s.
 *
 * Differences from the paper
 *  - Rates are in packets; an ACK that comes in the same microsecond as the one
 *    before belongs to the next sample.
 *  - The first ssthresh is init_ssthresh (32, as in Yu's simulations).
 *  - Losses are Reno's affair, and end the estimate also if they are undone.
 *  - A connection that comes to this algorithm after its first data segment is
 *    Reno from there on.
 *  - Yu's two timers expire whether ACKs come or not, and so do they here: the ACK
 *    after them makes up for it, with samples of nothing for the periods in which
 *    none came.  Spans that only an ACK ends overestimate: after a burst the mean
 *    of the last sample and the next, which Westwood's filter takes, counts for
 *    the whole silence.  On an idle path of 50 Mbit/s and 440 ms (Yu's table 4-1,
 *    where ERE stays below 32) they made ssthresh 2095 within 15 s.
 *  - T_k is at least 1 ms: where the rate fills the window it would be zero.
 *
 * Readings
 *  - When the estimate is taken.  Wang et al. take it with each ACK until the first
 *    loss (each_ack = 1): where it rises later, slow start goes on.  Yu compares
 *    estimates that each start makes once, as it comes to the window that Reno
 *    would end at, and does not say so of Astart; table 4-1 does: its ERE is
 *    15 to 20 packets at all rates, which is what an RTT brings at a window of 32.
 *
 * Cost: until it is taken an ACK is 2.2 times CUBIC's (9.9 ns beside 4.6), after
 * it 1.2 times: each ACK is an RTT and asks both timers; 64-bit divisions come with
 * their expiry and where ssthresh rises. A loss (1.5 times) also ends the estimate.
 */
#include "cc_astart.h"

#define TRACE_SYSTEM tcp_astart_ere
#define CREATE_TRACE_POINTS
#include "cc_trace.h"
#include "cc_reno.h"

#define ERE_LEAST_US	1000U
#define ERE_SETTLED	16		/* tau, after which nothing is left */
#define ERE_STEPS	8		/* of the filter per tau without ACKs */

/* A timer that is set again as soon as it expires */
struct ere_span {
	u64 begun_us;
	u32 delivered;			/* tp->delivered when it began */
	u32 length_us;
};

struct ere {
	struct astart_filter filter;
	struct ere_span rate_span;	/* one RTT each */
	struct ere_span sample_span;	/* T_k each */
	s64 rate;
	struct cc_rtt rtt;
	u32 rtt_us;			/* the latest */
	u32 delivered;			/* tp->delivered before this ACK */
	u8 over;			/* estimated no more */
};

static void ere_init(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct ere *ca = inet_csk_ca(sk);

	memset(ca, 0, sizeof(*ca));
	cc_rtt_begin(&ca->rtt, tp);
	ca->over = !cc_is_new(tp);
	if (!ca->over)
		tp->snd_ssthresh = cc_route_metric(sk, RTAX_SSTHRESH,
						   READ_ONCE(astart_init_ssthresh));
	trace_cc_hook(sk, CC_INIT, 0, -1);
}

static void ere_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	struct ere *ca = inet_csk_ca(sk);

	if (!ca->over)
		ca->rtt_us = cc_rtt_sample(&ca->rtt, tcp_sk(sk), sample) ?:
			     ca->rtt_us;
	trace_cc_hook(sk, CC_SAMPLE, sample->pkts_acked, sample->rtt_us);
}

static void ere_span_begin(struct ere_span *span, const struct tcp_sock *tp)
{
	span->begun_us = tp->tcp_mstamp;
	span->delivered = tp->delivered;
}

/*
 * How often the timer has expired before this ACK; *packets came before it did
 * so first, none later.  An ACK at the very time of the expiry comes before it.
 */
static u32 ere_expired(struct ere_span *span, const struct tcp_sock *tp,
		       u32 delivered, u32 *packets)
{
	u64 since_us = tp->tcp_mstamp - span->begun_us;
	u32 count;

	if (since_us <= span->length_us)
		return 0;
	count = min_t(u64, div_u64(since_us - 1, span->length_us), U32_MAX);
	*packets = delivered - span->delivered;
	span->begun_us += (u64)count * span->length_us;
	span->delivered = delivered;
	return count;
}

/* T_k = RTT (1 - rate Rmin / W) */
static u32 ere_length(const struct ere *ca, u32 cwnd)
{
	u64 used = div_u64((u64)ca->rate * ca->rtt.base_us, USEC_PER_SEC);
	u64 all = (u64)cwnd << ASTART_SHIFT;

	if (used >= all)
		return ERE_LEAST_US;
	return max_t(u32, ca->rtt_us - div64_u64(ca->rtt_us * used, all),
		     ERE_LEAST_US);
}

/* count periods of dt_us without an ACK: the first ends the sample before it */
static void ere_filter_idle(struct astart_filter *filter, u32 count, u32 dt_us,
			    u32 tau_us)
{
	u64 rest_us = (u64)(count - 1) * dt_us;

	astart_filter_add(filter, 0, dt_us, tau_us);
	if (rest_us > (u64)ERE_SETTLED * tau_us)
		filter->estimate = 0;
	while (rest_us && filter->estimate) {
		dt_us = min_t(u64, rest_us, max(dt_us, tau_us / ERE_STEPS));
		astart_filter_add(filter, 0, dt_us, tau_us);
		rest_us -= dt_us;
	}
}

static void ere_sample(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct ere *ca = inet_csk_ca(sk);
	u32 tau_us = READ_ONCE(astart_tau_ms) * USEC_PER_MSEC;
	struct ere_span *span = &ca->sample_span;
	u32 count, packets;

	if (!span->begun_us) {
		ere_span_begin(&ca->rate_span, tp);
		ere_span_begin(span, tp);
		ca->rate_span.length_us = max(ca->rtt_us, ERE_LEAST_US);
		span->length_us = ca->rate_span.length_us;
	}
	count = ere_expired(&ca->rate_span, tp, ca->delivered, &packets);
	if (count) {
		ca->rate = count > 1 ? 0 :
			   astart_rate(packets, ca->rate_span.length_us);
		ca->rate_span.length_us = max(ca->rtt_us, ERE_LEAST_US);
	}
	count = ere_expired(span, tp, ca->delivered, &packets);
	if (count) {
		astart_filter_add(&ca->filter,
				  astart_rate(packets, span->length_us),
				  span->length_us, tau_us);
		if (count > 1)
			ere_filter_idle(&ca->filter, count - 1, span->length_us,
					tau_us);
		span->length_us = ere_length(ca, tcp_snd_cwnd(tp));
	}
	ca->delivered = tp->delivered;
}

static void ere_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct ere *ca = inet_csk_ca(sk);
	bool limited = tcp_is_cwnd_limited(sk);

	if (!ca->over) {
		ere_sample(sk);
		astart_raise(tp, &ca->filter, ca->rtt.base_us, &ca->over);
	}
	if (limited)
		tcp_reno_cong_avoid(sk, ack, acked);
	trace_cc_hook(sk, CC_AVOID, acked, limited);
}

static u32 ere_ssthresh(struct sock *sk)
{
	struct ere *ca = inet_csk_ca(sk);
	u32 ssthresh = tcp_reno_ssthresh(sk);

	ca->over = 1;
	trace_cc_hook(sk, CC_LOSS, ssthresh, -1);
	return ssthresh;
}

static struct tcp_congestion_ops tcp_astart_ere __read_mostly = {
	.init		= ere_init,
	.pkts_acked	= ere_pkts_acked,
	.cong_avoid	= ere_cong_avoid,
	.ssthresh	= ere_ssthresh,
	.set_state	= cc_reno_set_state,
	.undo_cwnd	= cc_reno_undo_cwnd,
	.owner		= THIS_MODULE,
	.name		= "astart_ere",
};

static int __init ere_register(void)
{
	BUILD_BUG_ON(sizeof(struct ere) > ICSK_CA_PRIV_SIZE);
	return tcp_register_congestion_control(&tcp_astart_ere);
}

static void __exit ere_unregister(void)
{
	tcp_unregister_congestion_control(&tcp_astart_ere);
}

module_init(ere_register);
module_exit(ere_unregister);

MODULE_DESCRIPTION("Astart with ERE, the eligible rate estimate (as in Yu 2009)");
MODULE_LICENSE("GPL");
