/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One trace event, the same for every module: what a hook was given and the
 * window that it left behind.  The differential tests feed this to the
 * executable specification (tests/harness/harness.py).
 *
 * A module sets TRACE_SYSTEM to its own name (tcp_medley), so the event is
 * tcp_medley:cc_hook, and includes this once with CREATE_TRACE_POINTS.
 *
 * The layout of this file is the one that define_trace.h requires; checkpatch
 * does not know it (stated exception: all of its warnings in this file).
 */
#if !defined(WARPBED_CC_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define WARPBED_CC_TRACE_H

#include <linux/tracepoint.h>
#include <net/tcp.h>
#include "cc_common.h"
#include "cc_hooks.h"

TRACE_EVENT(cc_hook,
	TP_PROTO(const struct sock *sk, enum cc_hook hook, u32 count, s32 rtt_us),
	TP_ARGS(sk, hook, count, rtt_us),

	TP_STRUCT__entry(
		__field(u64, now_us)
		__field(u64, now_ns)
		__field(u32, una)
		__field(u32, nxt)
		__field(u32, cwnd)
		__field(u32, ssthresh)
		__field(u32, count)
		__field(s32, rtt_us)
		__field(u32, in_flight)
		__field(u32, delivered)
		__field(u32, packets_out)
		__field(u32, retrans)
		__field(u32, duplicates)
		__field(u16, mss)
		__field(u16, port)
		__field(u8, hook)
		__field(u8, state)
		__field(u8, limited)
	),

	TP_fast_assign(
		const struct tcp_sock *tp = tcp_sk(sk);

		__entry->now_us = tp->tcp_mstamp;
		__entry->now_ns = tp->tcp_clock_cache;
		__entry->una = tp->snd_una;
		__entry->nxt = tp->snd_nxt;
		__entry->cwnd = tcp_snd_cwnd(tp);
		__entry->ssthresh = tp->snd_ssthresh;
		__entry->count = count;
		__entry->rtt_us = rtt_us;
		__entry->in_flight = tcp_packets_in_flight(tp);
		__entry->delivered = tp->delivered;
		__entry->packets_out = tp->packets_out;
		__entry->retrans = tp->total_retrans;
		__entry->duplicates = tp->dsack_dups;
		__entry->mss = tp->mss_cache;
		__entry->port = inet_sk(sk)->inet_num;
		__entry->hook = hook;
		__entry->state = inet_csk(sk)->icsk_ca_state;
		__entry->limited = tcp_is_cwnd_limited(sk) |
				   cc_window_unsent(sk) << 1 |
				   cc_window_filled(sk) << 2 |
				   cc_nothing_to_send(sk) << 3;
	),

	/* port hook now una nxt cwnd ssthresh count rtt in_flight delivered
	 * packets_out retrans duplicates mss state limited
	 */
	TP_printk("%u %c %llu %u %u %u %u %u %d %u %u %u %u %u %u %u %u",
		  __entry->port, __entry->hook, __entry->now_us, __entry->una,
		  __entry->nxt, __entry->cwnd, __entry->ssthresh,
		  __entry->count, __entry->rtt_us, __entry->in_flight,
		  __entry->delivered, __entry->packets_out, __entry->retrans,
		  __entry->duplicates, __entry->mss, __entry->state,
		  __entry->limited)
);

#endif /* WARPBED_CC_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE cc_trace
#include <trace/define_trace.h>
