/* SPDX-License-Identifier: GPL-2.0-only */
/* Output gaps of packet pairs: the time between the ACKs of two packets. */
#ifndef WARPBED_CC_PAIR_H
#define WARPBED_CC_PAIR_H

#include "cc_rtt.h"

struct cc_pair {
	u64 acked_us;			/* of the last packet ACKed alone */
	u32 rtt_us;			/* and its RTT; 0 for none */
};

/*
 * Note a sample (cc_rtt_sample(), packets ACKed by it) and return the output gap
 * in us if this packet and the one before were ACKed one by one and sent within
 * burst_us, else 0.
 */
static inline u32 cc_pair_gap(struct cc_pair *pair, const struct tcp_sock *tp,
			      u32 rtt_us, u32 packets, u32 burst_us)
{
	u64 now_us = tp->tcp_mstamp;
	u32 gap_us = 0;

	if (packets != 1 || !rtt_us) {
		pair->rtt_us = 0;
		return 0;
	}
	if (pair->rtt_us) {
		s64 sent_apart_us = (now_us - rtt_us) -
				    (pair->acked_us - pair->rtt_us);

		if (sent_apart_us >= 0 && sent_apart_us <= burst_us)
			gap_us = now_us - pair->acked_us;
	}
	pair->acked_us = now_us;
	pair->rtt_us = rtt_us;
	return gap_us;
}

#endif /* WARPBED_CC_PAIR_H */
