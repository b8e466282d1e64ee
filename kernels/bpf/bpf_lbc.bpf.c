// SPDX-License-Identifier: GPL-2.0-only
/*
 * LBC in BPF: slow start with limited byte counting
 *
 * The rules of ../modules/tcp_lbc.c (RFC 3465 with L = 2 until the first loss,
 * then Reno), for a kernel that loads no modules of ours.
 *
 * Differences from the module
 *  - no parameters: L is 2, and the first ssthresh the kernel's;
 *  - no trace events, and the module's `perack` is not here.
 */
#include "cc_bpf.h"

#define LIMIT 2	/* most packets that one ACK counts for before the first loss */

struct lbc {
	__u8 lost;	/* a loss has happened */
};

SEC("struct_ops/lbc_init")
void BPF_PROG(lbc_init, struct sock *sk)
{
	struct lbc *ca = cc_private(sk);

	ca->lost = 0;
}

SEC("struct_ops/lbc_cong_avoid")
void BPF_PROG(lbc_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct lbc *ca = cc_private(sk);

	if (!cc_is_limited(tp))
		return;
	if (!cc_in_slow_start(tp))
		tcp_cong_avoid_ai(tp, tp->snd_cwnd, acked);
	else if (ca->lost)
		tcp_slow_start(tp, 1);
	else
		tcp_slow_start(tp, acked < LIMIT ? acked : LIMIT);
}

SEC("struct_ops/lbc_ssthresh")
__u32 BPF_PROG(lbc_ssthresh, struct sock *sk)
{
	struct lbc *ca = cc_private(sk);

	ca->lost = 1;
	return tcp_reno_ssthresh(sk);
}

SEC("struct_ops/lbc_undo_cwnd")
__u32 BPF_PROG(lbc_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

SEC(".struct_ops")
struct tcp_congestion_ops bpf_lbc = {
	.init = (void *)lbc_init,
	.cong_avoid = (void *)lbc_cong_avoid,
	.ssthresh = (void *)lbc_ssthresh,
	.undo_cwnd = (void *)lbc_undo_cwnd,
	.name = "bpf_lbc",
};

char _license[] SEC("license") = "GPL";
