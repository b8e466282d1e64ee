// SPDX-License-Identifier: GPL-2.0-only
/*
 * Astart with ERE, the eligible rate estimate
 *
 * Slow start in which ssthresh follows an estimate of what the path gives this
 * flow: ssthresh = max(ssthresh, estimate x least RTT), until the first loss.
 * Above ssthresh the window grows by one packet per round trip, as Reno's; where
 * the estimate then rises, slow start goes on.
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
 *  - Yu's two timers are two spans that end with the first ACK after their time.
 *
 * Cost: two 64-bit divisions per ACK until the first loss, 1.9 times CUBIC's
 * ACK; the filter needs the rate of each sample. A loss (1.7 times) also ends
 * the estimate.
 */
#include "cc_astart.h"

#define TRACE_SYSTEM tcp_astart_ere
#define CREATE_TRACE_POINTS
#include "cc_trace.h"
#include "cc_reno.h"

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
	u8 lost;			/* estimated no more */
};

static void ere_init(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct ere *ca = inet_csk_ca(sk);

	memset(ca, 0, sizeof(*ca));
	cc_rtt_begin(&ca->rtt, tp);
	ca->rate_span.delivered = tp->delivered;
	ca->sample_span.delivered = tp->delivered;
	ca->lost = !cc_is_new(tp);
	if (!ca->lost)
		tp->snd_ssthresh = cc_route_metric(sk, RTAX_SSTHRESH,
						   READ_ONCE(astart_init_ssthresh));
	trace_cc_hook(sk, CC_INIT, 0, -1);
}

static void ere_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	struct ere *ca = inet_csk_ca(sk);

	if (!ca->lost)
		ca->rtt_us = cc_rtt_sample(&ca->rtt, tcp_sk(sk), sample) ?:
			     ca->rtt_us;
	trace_cc_hook(sk, CC_SAMPLE, sample->pkts_acked, sample->rtt_us);
}

/* The length of a span that this ACK ends, or 0; the next one begins. */
static u32 ere_span_over(struct ere_span *span, const struct tcp_sock *tp,
			 u32 *packets)
{
	u32 dt_us = min_t(u64, tp->tcp_mstamp - span->begun_us, ASTART_DT_MAX);
	bool first = !span->begun_us;

	if (!dt_us || (!first && dt_us < span->length_us))
		return 0;
	*packets = tp->delivered - span->delivered;
	span->begun_us = tp->tcp_mstamp;
	span->delivered = tp->delivered;
	return first ? 0 : dt_us;
}

/* T_k = RTT (1 - rate Rmin / W) */
static u32 ere_length(const struct ere *ca, u32 cwnd)
{
	u64 used = div_u64((u64)ca->rate * ca->rtt.base_us, USEC_PER_SEC);
	u64 all = (u64)cwnd << ASTART_SHIFT;

	if (used >= all)
		return 0;
	return ca->rtt_us - div64_u64(ca->rtt_us * used, all);
}

static void ere_sample(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct ere *ca = inet_csk_ca(sk);
	u32 dt_us, packets;

	dt_us = ere_span_over(&ca->rate_span, tp, &packets);
	if (dt_us)
		ca->rate = astart_rate(packets, dt_us);
	ca->rate_span.length_us = ca->rtt_us;
	dt_us = ere_span_over(&ca->sample_span, tp, &packets);
	if (dt_us)
		astart_filter_add(&ca->filter, astart_rate(packets, dt_us),
				  dt_us, READ_ONCE(astart_tau_ms) * USEC_PER_MSEC);
	ca->sample_span.length_us = ere_length(ca, tcp_snd_cwnd(tp));
}

static void ere_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct ere *ca = inet_csk_ca(sk);
	bool limited = tcp_is_cwnd_limited(sk);

	if (!ca->lost) {
		ere_sample(sk);
		tp->snd_ssthresh = max(tp->snd_ssthresh,
				       astart_window(&ca->filter,
						     ca->rtt.base_us));
	}
	if (limited)
		tcp_reno_cong_avoid(sk, ack, acked);
	trace_cc_hook(sk, CC_AVOID, acked, limited);
}

static u32 ere_ssthresh(struct sock *sk)
{
	struct ere *ca = inet_csk_ca(sk);
	u32 ssthresh = tcp_reno_ssthresh(sk);

	ca->lost = 1;
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
