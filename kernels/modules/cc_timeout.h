/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Is set_state(TCP_CA_Loss) a timeout?  Not always: packets that a smaller path
 * MTU does not let through are sent again in that state too
 * (tcp_simple_retransmit()), and neither the path nor the window has changed.
 *
 * A timeout comes after ssthresh(), for this loss or for the recovery that it
 * ends, and leaves a window of one packet more than what is in flight
 * (tcp_enter_loss()).
 */
#ifndef WARPBED_CC_TIMEOUT_H
#define WARPBED_CC_TIMEOUT_H

#include "cc_common.h"

/* For set_state(): reduced says that ssthresh() was called since TCP_CA_Open. */
static inline bool cc_timed_out(const struct sock *sk, u8 new_state,
				bool reduced)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	return new_state == TCP_CA_Loss && reduced &&
	       tcp_snd_cwnd(tp) == tcp_packets_in_flight(tp) + 1;
}

/* For set_state(): is the loss over for which ssthresh() was called? */
static inline bool cc_loss_over(u8 new_state)
{
	return new_state < TCP_CA_CWR;
}

#endif /* WARPBED_CC_TIMEOUT_H */
