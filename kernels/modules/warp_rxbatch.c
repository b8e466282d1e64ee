// SPDX-License-Identifier: GPL-2.0-only
/*
 * Receivers that wake up once per batch, with the packets of an infinitely
 * fast one
 *
 * In virtual time packets cost little wall time, guest processes that wake up
 * cost much.  A receiver such as iperf3's server wakes up for every packet only
 * to make TCP's books (window, receive buffer tuning, ACKs) go on.
 *
 * In a nutshell: this module is the reader.  At the virtual instant at which the
 * process would read, a tasklet does it in its place with tcp_read_sock(), which
 * keeps TCP's books as tcp_recvmsg() does and sends the same ACKs.  What was
 * read is held in a queue beside the socket, and the process is woken when there
 * is a batch of it, after a time limit, or when the stream ends.
 *
 * - Only connections with a port of either end in "ports", and each only after
 *   "start_bytes" bytes, so that control connections are left alone.
 * - Only streams that are read by recvmsg() and nothing else.  Where splice() or
 *   zero-copy reads come first, nothing changes; once a socket is batched they
 *   fall back to copies or fail with EOPNOTSUPP.
 * - A process that was woken and did not read at that instant is a slow reader:
 *   further data stays in TCP's queue and the window closes.
 * - Held data that the process was told of and did not read before close() makes
 *   close() send a RST, as TCP does for unread data.  Held data that it was not
 *   told of counts as read.
 *
 * Where a port is one of "unseen", too, its program reads for the number of bytes
 * alone (iperf3).  From the first batch on such data is only counted, once the program
 * has asked for a large piece: the packets are freed while they are in the processor's
 * caches, and the program's buffer stays as it is, as with MSG_TRUNC.
 *
 * The tasklet lets the other softirqs run once more before it reads, since a
 * process would only run after them: packets that arrive at the same instant are
 * read together.
 */

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/tracepoint.h>
#include <net/inet_common.h>
#include <net/tcp.h>

#include "compat.h"
#include "rxbatch_params.h"
#include "rxbatch_sock.h"
#include "rxbatch_read.h"
#include "rxbatch_recv.h"

struct warp_prot {
	struct proto		*orig;
	struct proto		prot;
};

/* IPv4 and IPv6; a mapped socket has IPv4's struct proto and IPv6's ops */
static struct warp_prot warp_prots[2];
static DEFINE_SPINLOCK(warp_prots_lock);
static struct tracepoint *warp_tracepoint;

static void warp_destruct(struct sock *sk);

/* give the socket back to TCP; the caller puts the module */
static void warp_unhook(struct sock *sk, struct warp_sock *ws)
{
	sk->sk_data_ready = ws->data_ready;
	if (sk->sk_destruct == warp_destruct)
		sk->sk_destruct = ws->destruct;
	WRITE_ONCE(sk->sk_prot, ws->orig);
	if (ws->ops && sk->sk_socket && sk->sk_socket->ops == &ws->ops->ops)
		sk->sk_socket->ops = ws->ops->orig;
	WRITE_ONCE(sk->sk_user_data, NULL);
	__skb_queue_purge(&ws->queue);
	warp_sockets--;
	kfree_rcu(ws, rcu);
}

static void warp_stop(struct sock *sk, struct warp_sock *ws)
{
	warp_unschedule(ws);
	sk_stop_timer_sync(sk, &ws->timer);
	warp_unhook(sk, ws);
}

/* One packet of what is held, or one that stands for it where it was only counted. */
static struct sk_buff *warp_any_held(struct warp_sock *ws)
{
	return ws->counts ? alloc_skb(0, GFP_KERNEL | __GFP_NOFAIL) : __skb_dequeue(&ws->queue);
}

static void warp_close(struct sock *sk, long timeout)
{
	struct warp_sock *ws = warp_sk(sk);
	struct proto *orig = ws->orig;
	struct sk_buff *skb;

	lock_sock(sk);
	skb = warp_unread(ws) ? warp_any_held(ws) : NULL;
	if (skb) {
		/* tcp_close() sends a RST for data beyond copied_seq */
		memset(skb->cb, 0, sizeof(skb->cb));
		TCP_SKB_CB(skb)->seq = tcp_sk(sk)->copied_seq;
		TCP_SKB_CB(skb)->end_seq = tcp_sk(sk)->copied_seq + 1;
		__skb_queue_tail(&sk->sk_receive_queue, skb);
	}
	warp_stop(sk, ws);
	release_sock(sk);
	orig->close(sk, timeout);
	module_put(THIS_MODULE);
}

static int warp_disconnect(struct sock *sk, int flags)
{
	struct warp_sock *ws = warp_sk(sk);
	struct proto *orig = ws->orig;
	int err;

	warp_stop(sk, ws);
	err = orig->disconnect(sk, flags);
	module_put(THIS_MODULE);
	return err;
}

/* a socket that nobody closed: neither tasklet nor timer hold it any more */
static void warp_destruct(struct sock *sk)
{
	struct warp_sock *ws = warp_sk(sk);
	void (*destruct)(struct sock *sk) = ws->destruct;

	warp_unhook(sk, ws);
	destruct(sk);
	module_put(THIS_MODULE);
}

static struct warp_prot *warp_find_prot(struct sock *sk)
{
	struct warp_prot *prot;

	if (sk->sk_prot == &tcp_prot)
		prot = &warp_prots[0];
	else if (sk->sk_family == AF_INET6 &&
		 sk->sk_prot->recvmsg == tcp_prot.recvmsg)
		prot = &warp_prots[1];
	else
		return NULL;

	spin_lock_bh(&warp_prots_lock);
	if (!prot->orig) {
		prot->prot = *sk->sk_prot;
		prot->prot.recvmsg = warp_recvmsg;
		prot->prot.sock_is_readable = warp_is_readable;
		prot->prot.ioctl = warp_ioctl;
		prot->prot.getsockopt = warp_getsockopt;
		prot->prot.close = warp_close;
		prot->prot.disconnect = warp_disconnect;
		prot->prot.release_cb = warp_release_cb;
		prot->orig = sk->sk_prot;
	}
	spin_unlock_bh(&warp_prots_lock);
	return prot->orig == sk->sk_prot ? prot : NULL;
}

/* called with the socket locked */
static void warp_hook(struct sock *sk)
{
	struct warp_prot *prot = warp_find_prot(sk);
	struct warp_sock *ws;

	if (!prot || sk->sk_user_data || !try_module_get(THIS_MODULE))
		return;

	ws = kzalloc(sizeof(*ws), GFP_ATOMIC);
	if (!ws) {
		module_put(THIS_MODULE);
		return;
	}

	ws->sk = sk;
	ws->orig = prot->orig;
	ws->data_ready = sk->sk_data_ready;
	ws->destruct = sk->sk_destruct;
	ws->first_seq = tcp_sk(sk)->copied_seq;
	ws->unseen = warp_port_unseen(inet_sk(sk)->inet_num) ||
		     warp_port_unseen(ntohs(inet_sk(sk)->inet_dport));
	INIT_LIST_HEAD(&ws->node);
	__skb_queue_head_init(&ws->queue);
	timer_setup(&ws->timer, warp_timer_fn, 0);

	WRITE_ONCE(sk->sk_user_data,
		   (void *)((uintptr_t)ws | SK_USER_DATA_NOCOPY));
	sk->sk_data_ready = warp_data_ready;
	sk->sk_destruct = warp_destruct;
	WRITE_ONCE(sk->sk_prot, &prot->prot);
	warp_sockets++;
}

static void warp_set_state(void *unused, const struct sock *sk,
			   const int oldstate, const int newstate)
{
	if (newstate != TCP_ESTABLISHED || !sk_fullsock(sk) ||
	    sk->sk_protocol != IPPROTO_TCP || sk->sk_type != SOCK_STREAM)
		return;
	if (warp_port_listed(inet_sk(sk)->inet_num) ||
	    warp_port_listed(ntohs(inet_sk(sk)->inet_dport)))
		warp_hook((struct sock *)sk);
}

static void __init warp_find_tracepoint(struct tracepoint *tp, void *unused)
{
	if (!strcmp(tp->name, "inet_sock_set_state"))
		warp_tracepoint = tp;
}

static int __init warp_init(void)
{
	BUILD_BUG_ON(sizeof(struct warp_cb) > sizeof_field(struct sk_buff, cb));

	for_each_kernel_tracepoint(warp_find_tracepoint, NULL);
	if (!warp_tracepoint) {
		pr_err("no tracepoint inet_sock_set_state: build the kernel with tracepoints\n");
		return -ENOENT;
	}
	return tracepoint_probe_register(warp_tracepoint, warp_set_state, NULL);
}

/* every hooked socket holds the module: here there are none */
static void __exit warp_exit(void)
{
	tracepoint_probe_unregister(warp_tracepoint, warp_set_state, NULL);
	tracepoint_synchronize_unregister();
	warp_read_exit();
	warp_params_exit();
}

module_init(warp_init);
module_exit(warp_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Receivers that wake up once per batch, with the packets of an infinitely fast one");
