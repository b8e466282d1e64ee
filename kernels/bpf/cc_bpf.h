/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What an algorithm in BPF C needs of the kernel: parts of its structures, whose
 * places libbpf looks up in the running kernel (CO-RE), and its own helpers.
 */
#ifndef WARPBED_CC_BPF_H
#define WARPBED_CC_BPF_H

#include <stdbool.h>
#include <linux/types.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct sock {	/* whole, for the kernel's functions take no mere name for it */
	unsigned long sk_pacing_rate;
};

struct inet_connection_sock {
	__u64 icsk_ca_priv[13];
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	__u32 snd_cwnd;
	__u32 snd_ssthresh;
	__u32 max_packets_out;
	__u8 is_cwnd_limited:1;
};

struct tcp_congestion_ops {
	char name[16];
	void (*init)(struct sock *sk);
	__u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, __u32 ack, __u32 acked);
	__u32 (*undo_cwnd)(struct sock *sk);
};

#pragma clang attribute pop

extern __u32 tcp_reno_ssthresh(struct sock *sk) __ksym;
extern __u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;
extern __u32 tcp_slow_start(struct tcp_sock *tp, __u32 acked) __ksym;
extern void tcp_cong_avoid_ai(struct tcp_sock *tp, __u32 w, __u32 acked) __ksym;

/* The kernel's tcp_sk(): BPF keeps a socket of TCP under any of its types. */
#define tcp_sk(sk) ((struct tcp_sock *)(sk))

static __always_inline void *cc_private(struct sock *sk)
{
	return tcp_sk(sk)->inet_conn.icsk_ca_priv;
}

static __always_inline bool cc_in_slow_start(const struct tcp_sock *tp)
{
	return tp->snd_cwnd < tp->snd_ssthresh;
}

/* As the kernel judges: in slow start a window that is half used may grow. */
static __always_inline bool cc_is_limited(const struct tcp_sock *tp)
{
	if (BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited))
		return true;
	return cc_in_slow_start(tp) && tp->snd_cwnd < 2 * tp->max_packets_out;
}

#endif
