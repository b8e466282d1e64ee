// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the process sees of a connection that warp_rxbatch reads, see rxbatch_recv.h
 */
#include <asm/ioctls.h>
#include <net/tcp.h>
#include "rxbatch_params.h"
#include "rxbatch_read.h"
#include "rxbatch_recv.h"

bool warp_is_readable(struct sock *sk)
{
	const struct warp_sock *ws;
	bool readable;

	rcu_read_lock();
	ws = warp_sk(sk);
	readable = ws && warp_may_read(sk, ws);
	rcu_read_unlock();
	return readable;
}

/* sleep until there is more than seen_bytes to read */
static int warp_wait(struct sock *sk, struct warp_sock *ws, long *timeo,
		     u32 seen_bytes)
{
	DEFINE_WAIT_FUNC(wait, woken_wake_function);
	int err;

	add_wait_queue(sk_sleep(sk), &wait);
	sk_set_bit(SOCKWQ_ASYNC_WAITDATA, sk);
	err = sk_wait_event(sk, timeo,
			    (ws->ready && ws->held_bytes > seen_bytes) ||
			    (!ws->active &&
			     !skb_queue_empty(&sk->sk_receive_queue)) ||
			    warp_ended(sk), &wait);
	sk_clear_bit(SOCKWQ_ASYNC_WAITDATA, sk);
	remove_wait_queue(sk_sleep(sk), &wait);
	return err < 0 ? err : 0;
}

static void warp_take(struct warp_sock *ws, u32 n)
{
	ws->held_bytes -= n;
	ws->held_since = jiffies;
	ws->read_bytes += n;
}

/* copy up to len held bytes; what was copied is no longer held unless peeked at */
static int warp_copy(struct warp_sock *ws, struct msghdr *msg, size_t len, int flags)
{
	struct sk_buff *skb, *next;
	size_t copied = 0;

	if (ws->counts) {
		copied = min_t(size_t, len, ws->held_bytes);
		if (!(flags & MSG_PEEK))
			warp_take(ws, copied);
	}

	skb_queue_walk_safe(&ws->queue, skb, next) {
		struct warp_cb *cb = WARP_CB(skb);
		u32 n = min_t(size_t, cb->len, len - copied);

		if (!n)
			break;
		if (!(flags & MSG_TRUNC) &&
		    skb_copy_datagram_msg(skb, cb->off, msg, n))
			return copied ? : -EFAULT;
		copied += n;
		if (flags & MSG_PEEK)
			continue;

		cb->off += n;
		cb->len -= n;
		warp_take(ws, n);
		if (!cb->len) {
			__skb_unlink(skb, &ws->queue);
			consume_skb(skb);
		}
	}
	if (!ws->held_bytes)
		ws->ready = false;
	return copied;
}

/* why a read that got nothing ends now, or 0 if it has to wait */
static int warp_why_stop(struct sock *sk, long timeo)
{
	if (!timeo)
		return -EAGAIN;
	if (signal_pending(current))
		return sock_intr_errno(timeo);
	return 0;
}

/*
 * A process that blocks has asked for len bytes.  Would it get the first of them
 * at once, it would come back for the rest: a buffer that is filled in a loop is
 * full at the same instant.  Small reads get a batch.
 */
static void warp_ask(struct sock *sk, struct warp_sock *ws, size_t len)
{
	u32 batch = READ_ONCE(warp_batch_bytes);

	if (len == ws->missing_bytes || len >= WARP_LARGE_READ)
		ws->want_bytes = min_t(size_t, len, batch);
	else
		ws->want_bytes = batch;

	ws->ready = ws->held_bytes &&
		    (ws->held_bytes >= ws->want_bytes ||
		     time_after_eq(jiffies, ws->held_since +
				   msecs_to_jiffies(READ_ONCE(warp_hold_ms))));
	warp_hold(sk, ws);
}

int warp_recvmsg(struct sock *sk, struct msghdr *msg, size_t len,
		 int flags COMPAT_ADDR_LEN_PARAM)
{
	struct warp_sock *ws = warp_sk(sk);
	struct proto *orig = ws->orig;
	int copied = 0, target, n = 0;
	u32 seen = 0;
	long timeo;

	/* what is never batched, see warp_may_start() */
	if ((flags & (MSG_ERRQUEUE | MSG_OOB)) ||
	    (!ws->active && (tcp_sk(sk)->recvmsg_inq || tcp_sk(sk)->repair ||
			     sock_flag(sk, SOCK_RCVTSTAMP))))
		return orig->recvmsg(sk, msg, len, flags COMPAT_ADDR_LEN_ARG);

	lock_sock(sk);
	timeo = sock_rcvtimeo(sk, flags & MSG_DONTWAIT);
	target = sock_rcvlowat(sk, flags & MSG_WAITALL, len);
	ws->polls = !timeo;
	if (ws->active && timeo && !(flags & MSG_PEEK))
		warp_ask(sk, ws, len);

	for (;;) {
		if (ws->held_bytes &&
		    (!timeo || warp_may_read(sk, ws)) &&
		    (!(flags & MSG_PEEK) || !timeo || warp_ended(sk) ||
		     ws->held_bytes >= target)) {
			n = warp_copy(ws, msg, len - copied, flags);
			if (n < 0)
				break;
			copied += n;
			if (flags & MSG_PEEK)
				break;
		}
		seen = ws->held_bytes;
		if (copied == len && (len || seen))
			break;

		/* data that was left to TCP while the process was slow */
		if (!seen && ws->active && !skb_queue_empty(&sk->sk_receive_queue)) {
			warp_read(sk, ws);
			if (ws->held_bytes) {
				ws->ready = true;
				continue;
			}
		}
		/* without batches, at the end of the stream, after an error */
		if (!seen && (!copied || !skb_queue_empty(&sk->sk_receive_queue))) {
			release_sock(sk);
			n = orig->recvmsg(sk, msg, len - copied, (flags & ~MSG_WAITALL) |
					  MSG_DONTWAIT COMPAT_ADDR_LEN_ARG);
			lock_sock(sk);
			if (n > 0) {
				copied += n;
				if (flags & MSG_PEEK)
					break;
				ws->read_bytes += n;
			} else if (ws->held_bytes && (!timeo || warp_ended(sk))) {
				continue;	/* came while it was unlocked */
			} else if (n != -EAGAIN) {
				break;
			}
		}
		if (copied >= target)
			break;
		if (warp_ended(sk)) {
			if (copied)
				break;
			continue;
		}

		n = warp_why_stop(sk, timeo);
		if (!n) {
			ws->waiting = true;
			n = warp_wait(sk, ws, &timeo,
				      flags & MSG_PEEK ? seen : 0);
			ws->waiting = false;
		}
		if (n)
			break;
	}

	if (!(flags & MSG_PEEK)) {
		ws->missing_bytes = copied > 0 ? len - copied : 0;
		ws->reads_large |= len >= WARP_LARGE_READ;
	}
	if (!(flags & MSG_PEEK) && !skb_queue_empty(&sk->sk_receive_queue))
		warp_read(sk, ws);
	release_sock(sk);
	return copied ? : n;
}

int warp_ioctl(struct sock *sk, int cmd, compat_ioctl_arg_t arg)
{
	struct warp_sock *ws = warp_sk(sk);
	int bytes;

	if (cmd != SIOCINQ || !ws->active)
		return ws->orig->ioctl(sk, cmd, arg);

	lock_sock(sk);
	bytes = tcp_inq(sk) + ws->held_bytes;
	release_sock(sk);
	return compat_ioctl_put(arg, bytes);
}

int warp_getsockopt(struct sock *sk, int level, int optname,
		    char __user *optval, int __user *optlen)
{
	struct warp_sock *ws = warp_sk(sk);

	if (ws->active && level == SOL_TCP && optname == TCP_ZEROCOPY_RECEIVE)
		return -EOPNOTSUPP;
	return ws->orig->getsockopt(sk, level, optname, optval, optlen);
}
