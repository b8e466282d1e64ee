// SPDX-License-Identifier: GPL-2.0-only
/*
 * Astart with BWE, the bandwidth estimate of Westwood
 *
 * Slow start up to an estimate of what the path gives this flow: when the window
 * has reached the first ssthresh, ssthresh = max(ssthresh, estimate x least RTT).
 *
 * Wang, Pau, Yamada, Sanadidi and Gerla, "TCP startup performance in large
 * bandwidth delay networks", INFOCOM 2004, as Yu 2009 (dissertation, University
 * of Florida) s4.6 compares with it:
 *  - per ACK a sample b_k = d_k / (t_k - t_(k-1)) of what was delivered since the
 *    last one, through Westwood's low-pass filter with cut-off 1 / tau, tau = 1 s.
 *
 * Differences from the paper
 *  - Rates are in packets; an ACK that comes in the same microsecond as the one
 *    before belongs to the next sample.
 *  - The first ssthresh is init_ssthresh (32, as in Yu's simulations).
 *  - Losses are Reno's affair, and end the estimate also if they are undone.
 *  - A connection that comes to this algorithm after its first data segment is
 *    Reno from there on.
 *
 * Readings
 *  - When the estimate is taken.  Wang et al. take it with each ACK until the first
 *    loss (each_ack = 1): where it rises later, slow start goes on.  Yu compares
 *    estimates that each start makes once, as it comes to the window that Reno
 *    would end at, and does not say so of Astart; table 4-1 does: on an idle
 *    path of 50 Mbit/s and 440 ms the filter's equation has 1104 packets by the
 *    first ACK behind a window of 32 (982 by the one before it), and 1600 with a
 *    window of 2048; the table has 1071.  With each ACK 1654 packets came out at
 *    200 Mbit/s, where it has 1028.
 *
 * Cost: until it is taken an ACK is 2.2 times CUBIC's (10.1 ns beside 4.6),
 * after it 1.2 times: each ACK is an RTT and a sample, and Westwood's filter needs
 * a sample's rate and its weight, two 64-bit divisions. A third, for the window, is
 * left to the ACKs that raise ssthresh (2.5 times with it). A loss (1.6 times) also
 * ends the estimate.
 */
#include "cc_astart.h"

#define TRACE_SYSTEM tcp_astart_bwe
#define CREATE_TRACE_POINTS
#include "cc_trace.h"
#include "cc_reno.h"

struct bwe {
	struct astart_filter filter;
	u64 last_us;			/* time of the last sample, */
	u32 delivered;			/* and tp->delivered then */
	struct cc_rtt rtt;
	u8 over;			/* estimated no more */
};

static void bwe_init(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct bwe *ca = inet_csk_ca(sk);

	memset(ca, 0, sizeof(*ca));
	cc_rtt_begin(&ca->rtt, tp);
	ca->delivered = tp->delivered;
	ca->over = !cc_is_new(tp);
	if (!ca->over)
		tp->snd_ssthresh = cc_route_metric(sk, RTAX_SSTHRESH,
						   READ_ONCE(astart_init_ssthresh));
	trace_cc_hook(sk, CC_INIT, 0, -1);
}

static void bwe_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	struct bwe *ca = inet_csk_ca(sk);

	if (!ca->over)
		cc_rtt_sample(&ca->rtt, tcp_sk(sk), sample);
	trace_cc_hook(sk, CC_SAMPLE, sample->pkts_acked, sample->rtt_us);
}

static void bwe_sample(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct bwe *ca = inet_csk_ca(sk);
	u32 dt_us = min_t(u64, tp->tcp_mstamp - ca->last_us, ASTART_DT_MAX);
	u32 packets = tp->delivered - ca->delivered;

	if (!dt_us)
		return;
	if (ca->last_us)
		astart_filter_add(&ca->filter, astart_rate(packets, dt_us),
				  dt_us, READ_ONCE(astart_tau_ms) * USEC_PER_MSEC);
	ca->last_us = tp->tcp_mstamp;
	ca->delivered = tp->delivered;
}

static void bwe_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct bwe *ca = inet_csk_ca(sk);
	bool limited = tcp_is_cwnd_limited(sk);

	if (!ca->over) {
		bwe_sample(sk);
		astart_raise(tp, &ca->filter, ca->rtt.base_us, &ca->over);
	}
	if (limited)
		tcp_reno_cong_avoid(sk, ack, acked);
	trace_cc_hook(sk, CC_AVOID, acked, limited);
}

static u32 bwe_ssthresh(struct sock *sk)
{
	struct bwe *ca = inet_csk_ca(sk);
	u32 ssthresh = tcp_reno_ssthresh(sk);

	ca->over = 1;
	trace_cc_hook(sk, CC_LOSS, ssthresh, -1);
	return ssthresh;
}

static struct tcp_congestion_ops tcp_astart_bwe __read_mostly = {
	.init		= bwe_init,
	.pkts_acked	= bwe_pkts_acked,
	.cong_avoid	= bwe_cong_avoid,
	.ssthresh	= bwe_ssthresh,
	.set_state	= cc_reno_set_state,
	.undo_cwnd	= cc_reno_undo_cwnd,
	.owner		= THIS_MODULE,
	.name		= "astart_bwe",
};

static int __init bwe_register(void)
{
	BUILD_BUG_ON(sizeof(struct bwe) > ICSK_CA_PRIV_SIZE);
	return tcp_register_congestion_control(&tcp_astart_bwe);
}

static void __exit bwe_unregister(void)
{
	tcp_unregister_congestion_control(&tcp_astart_bwe);
}

module_init(bwe_register);
module_exit(bwe_unregister);

MODULE_DESCRIPTION("Astart with BWE, the bandwidth estimate of Westwood (as in Yu 2009)");
MODULE_LICENSE("GPL");
