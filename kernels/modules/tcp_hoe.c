// SPDX-License-Identifier: GPL-2.0-only
/*
 * Hoe's slow start: ssthresh from the first packet pair
 *
 * Reno whose first ssthresh is the path's capacity as the first two packets sent
 * back to back show it: ssthresh = R / gap, gap being the time between their ACKs
 * and R the round-trip time.
 *
 * Janey Hoe, "Improving the start-up behavior of a congestion control scheme for
 * TCP", SIGCOMM 1996, as Yu 2009 (dissertation, University of Florida) s4.6
 * compares with it.
 *
 * Differences from the paper
 *  - Back to back means sent within burst_us (50 us) of each other.  The pair is
 *    the first of the connection whose packets are ACKed one by one; a receiver
 *    that delays ACKs may give none, and ssthresh then stays infinite (the paper
 *    says that the method may not work with them).
 *  - R is the RTT of the pair's first packet.
 *  - Only full packets sent once make a pair (cc_rtt.h).
 *  - A loss before the pair ends the estimate, also one that is undone, and a
 *    connection that comes to this algorithm after its first data segment has none.
 *
 * Readings
 *  - How close packets have to leave to be back to back is not said.  Where the
 *    host sends its first window at once it does not matter: 10, 50 and 10 000 us
 *    give an ssthresh of 247 packets at 20 Mbit/s and 100 ms, which is what fits.
 *
 * Cost: a loss is 1.7 times CUBIC's, for it also ends the estimate.
 */
#include "cc_pair.h"

#define TRACE_SYSTEM tcp_hoe
#define CREATE_TRACE_POINTS
#include "cc_trace.h"
#include "cc_reno.h"

static unsigned int burst_us __read_mostly = 50;
CC_PARAM_RANGE(burst_us_ops, 1, 10000);
module_param_cb(burst_us, &burst_us_ops, &burst_us, 0644);
MODULE_PARM_DESC(burst_us, "packets sent within this time are back to back, us, 1-10000 (50)");

struct hoe {
	struct cc_pair pair;
	struct cc_rtt rtt;
	u8 done;			/* estimated, or slow start is over */
};

static void hoe_init(struct sock *sk)
{
	struct hoe *ca = inet_csk_ca(sk);

	memset(ca, 0, sizeof(*ca));
	cc_rtt_begin(&ca->rtt, tcp_sk(sk));
	ca->done = !cc_is_new(tcp_sk(sk));
	trace_cc_hook(sk, CC_INIT, 0, -1);
}

static void hoe_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct hoe *ca = inet_csk_ca(sk);

	if (!ca->done) {
		u32 first_rtt_us = ca->pair.rtt_us;
		u32 rtt_us = cc_rtt_sample(&ca->rtt, tp, sample);
		u32 gap_us = cc_pair_gap(&ca->pair, tp, rtt_us,
					 sample->pkts_acked,
					 READ_ONCE(burst_us));

		if (gap_us) {
			tp->snd_ssthresh = max(first_rtt_us / gap_us, 2U);
			ca->done = 1;
		}
	}
	trace_cc_hook(sk, CC_SAMPLE, sample->pkts_acked, sample->rtt_us);
}

static void hoe_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	bool limited = tcp_is_cwnd_limited(sk);

	tcp_reno_cong_avoid(sk, ack, acked);
	trace_cc_hook(sk, CC_AVOID, acked, limited);
}

static u32 hoe_ssthresh(struct sock *sk)
{
	struct hoe *ca = inet_csk_ca(sk);
	u32 ssthresh = tcp_reno_ssthresh(sk);

	ca->done = 1;
	trace_cc_hook(sk, CC_LOSS, ssthresh, -1);
	return ssthresh;
}

static struct tcp_congestion_ops tcp_hoe __read_mostly = {
	.init		= hoe_init,
	.pkts_acked	= hoe_pkts_acked,
	.cong_avoid	= hoe_cong_avoid,
	.ssthresh	= hoe_ssthresh,
	.set_state	= cc_reno_set_state,
	.undo_cwnd	= cc_reno_undo_cwnd,
	.owner		= THIS_MODULE,
	.name		= "hoe",
};

static int __init hoe_register(void)
{
	BUILD_BUG_ON(sizeof(struct hoe) > ICSK_CA_PRIV_SIZE);
	return tcp_register_congestion_control(&tcp_hoe);
}

static void __exit hoe_unregister(void)
{
	tcp_unregister_congestion_control(&tcp_hoe);
}

module_init(hoe_register);
module_exit(hoe_unregister);

MODULE_DESCRIPTION("Hoe's packet-pair slow start (as in Yu 2009)");
MODULE_LICENSE("GPL");
