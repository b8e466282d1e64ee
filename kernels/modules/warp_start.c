// SPDX-License-Identifier: GPL-2.0-only
/*
 * warp_start: the first ssthresh and the largest window of a connection, from its route
 *
 * In a nutshell: `ip route … ssthresh N cwnd lock M` says both, but Linux only
 * takes them through its cache of what earlier connections to the same address
 * have left.  With this module every connection takes them from its route, whatever its
 * algorithm, and routes can be chosen by port (`ip rule … sport`).
 *
 * - The first ssthresh is set before the first ACK of data is looked at, or when the
 *   application closes before that, with all it has to say in the send buffer, and only where
 *   nothing else has set one: an algorithm that computes its own keeps it (LISS),
 *   and so does a connection that has lost its first packet already.
 * - The largest window is the socket's own limit (snd_cwnd_clamp), which every
 *   algorithm is held to.  It is there before the first window is chosen where the
 *   connection was opened from here, and once more behind the algorithm's own
 *   beginning, since that may have set another one (hybla).
 * - `initcwnd` of a route needs no module.
 *
 * Cost: one comparison per received packet.
 */

#include <linux/module.h>
#include <linux/tracepoint.h>
#include <net/dst.h>
#include <net/tcp.h>

static struct tracepoint *warp_start_received, *warp_start_state;

static void warp_start_limit(struct sock *sk, const struct dst_entry *dst)
{
	u32 most = dst_metric(dst, RTAX_CWND);

	if (most && dst_metric_locked(dst, RTAX_CWND))
		tcp_sk(sk)->snd_cwnd_clamp = most;
}

static void warp_start_begin(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	const struct dst_entry *dst;
	u32 ssthresh;

	/* what the SYN takes in the sequence counts as one byte */
	if (likely(tp->bytes_acked > 1))
		return;
	dst = __sk_dst_get(sk);
	if (!dst)
		return;
	warp_start_limit(sk, dst);
	ssthresh = dst_metric(dst, RTAX_SSTHRESH);
	if (ssthresh && tp->snd_ssthresh == TCP_INFINITE_SSTHRESH)
		WRITE_ONCE(tp->snd_ssthresh, min(ssthresh, tp->snd_cwnd_clamp));
}

/*
 * At every change of a state; holds the socket.  Where a connection opens, its first window
 * comes next.  Once its own side is closed, packets no longer come past warp_start_packet().
 */
static void warp_start_set_state(void *data, const struct sock *sk, const int from, const int to)
{
	const struct dst_entry *dst;

	if (sk->sk_protocol != IPPROTO_TCP)
		return;
	if (from == TCP_ESTABLISHED && to == TCP_FIN_WAIT1)
		warp_start_begin((struct sock *)sk);
	if (from != TCP_SYN_SENT || to != TCP_ESTABLISHED)
		return;
	dst = __sk_dst_get((struct sock *)sk);
	if (dst)
		warp_start_limit((struct sock *)sk, dst);
}

/* At the beginning of every packet that an open connection receives; holds the socket. */
static void warp_start_packet(void *data, struct sock *sk, const struct sk_buff *skb)
{
	warp_start_begin(sk);
}

/* The kernel does not export them, so they are looked for by their names. */
static void warp_start_find(struct tracepoint *point, void *data)
{
	if (!strcmp(point->name, "tcp_probe"))
		warp_start_received = point;
	if (!strcmp(point->name, "inet_sock_set_state"))
		warp_start_state = point;
}

static int __init warp_start_init(void)
{
	int err;

	for_each_kernel_tracepoint(warp_start_find, NULL);
	if (!warp_start_received || !warp_start_state) {
		pr_err("this kernel has no tracepoint tcp_probe or inet_sock_set_state\n");
		return -ENOENT;
	}
	err = tracepoint_probe_register(warp_start_state, warp_start_set_state, NULL);
	if (err)
		return err;
	err = tracepoint_probe_register(warp_start_received, warp_start_packet, NULL);
	if (err) {
		tracepoint_probe_unregister(warp_start_state, warp_start_set_state, NULL);
		tracepoint_synchronize_unregister();
	}
	return err;
}

static void __exit warp_start_exit(void)
{
	tracepoint_probe_unregister(warp_start_received, warp_start_packet, NULL);
	tracepoint_probe_unregister(warp_start_state, warp_start_set_state, NULL);
	tracepoint_synchronize_unregister();
}

module_init(warp_start_init);
module_exit(warp_start_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("First ssthresh and largest window of a connection, from its route");
