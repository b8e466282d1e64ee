/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef WARPBED_CC_HOOKS_H
#define WARPBED_CC_HOOKS_H

/* The letters by which the trace event names the hooks. */
enum cc_hook {
	CC_INIT		= 'I',	/* after init() */
	CC_SAMPLE	= 'P',	/* pkts_acked(): count packets, RTT sample */
	CC_AVOID	= 'A',	/* after cong_avoid(): count packets ACKed; rtt_us is
				 * whether the window was in use before
				 */
	CC_CONTROL	= 'C',	/* after cong_control(): count delivered */
	CC_LOSS		= 'L',	/* ssthresh(): count is the result */
	CC_STATE	= 'S',	/* after set_state(): count is the new state */
	CC_EVENT	= 'E',	/* after cwnd_event(): count is the event */
	CC_UNDO		= 'U',	/* undo_cwnd(): count is the result */
	CC_REXMIT_LOST	= 'X',	/* a retransmission was found lost */
	CC_ESTIMATE	= 'M',	/* ssthresh was measured: count is it */
	CC_PAIR		= 'D',	/* an inverted pair: count is the sequence number of
				 * n, rtt_us the gap between the departures, us
				 */
};

#endif /* WARPBED_CC_HOOKS_H */
