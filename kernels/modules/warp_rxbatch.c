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
 * The tasklet lets the other softirqs run once more before it reads, since a
 * process would only run after them: packets that arrive at the same instant are
 * read together.
 */

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/tracepoint.h>
#include <asm/ioctls.h>
#include <net/inet_common.h>
#include <net/tcp.h>

#include "compat.h"

#define WARP_MAX_RANGES	16

/* a blocking read of at least this is a batch of its own, in bytes */
#define WARP_LARGE_READ	(64 * 1024)

struct warp_ports {
	struct rcu_head	rcu;
	unsigned int	n;
	struct {
		u16	first;
		u16	last;
	} range[WARP_MAX_RANGES];
};

/* what sockets had before, and what the module puts there instead */
struct warp_prot {
	struct proto		*orig;
	struct proto		prot;
};

struct warp_ops {
	const struct proto_ops	*orig;
	struct proto_ops	ops;
};

struct warp_sock {
	struct rcu_head		rcu;
	struct sock		*sk;
	struct proto		*orig;
	struct warp_ops		*ops;		/* while active */
	void			(*data_ready)(struct sock *sk);
	void			(*destruct)(struct sock *sk);
	struct list_head	node;		/* in warp_pending; holds sk */
	struct timer_list	timer;		/* end of the hold time; holds sk */
	struct sk_buff_head	queue;		/* held data */
	u32			held_bytes;
	u32			first_seq;	/* copied_seq at the start */
	u32			read_bytes;	/* read by recvmsg(), modulo 2^32 */
	unsigned long		held_since;	/* jiffies, while held_bytes */
	u32			want_bytes;	/* wake the waiting reader for this */
	u32			missing_bytes;	/* what the last read fell short of */
	u64			ready_ns;	/* when ready became true */
	bool			active;		/* the module reads */
	bool			ready;		/* the process has been told */
	bool			waiting;	/* it sleeps in recvmsg() */
	bool			polls;		/* its last read did not block */
	bool			again;		/* was owned by a process */
};

/* per held skb: the part of it that belongs to the stream */
struct warp_cb {
	u32	off;
	u32	len;
};

#define WARP_CB(skb) ((struct warp_cb *)(skb)->cb)

static struct warp_ports __rcu *warp_ports;
static DEFINE_MUTEX(warp_ports_lock);

static unsigned int batch_bytes = 256 * 1024;
static unsigned int hold_ms = 20;
static unsigned int start_bytes = 1024 * 1024;
static unsigned int sockets;
static unsigned int batches;

/* IPv4 and IPv6; a mapped socket has IPv4's struct proto and IPv6's ops */
static struct warp_prot warp_prots[2];
static struct warp_ops warp_opses[2];
static struct tracepoint *warp_tracepoint;
static LIST_HEAD(warp_pending);
static DEFINE_SPINLOCK(warp_lock);
static bool warp_second_pass;

static void warp_tasklet_fn(struct tasklet_struct *unused);
static DECLARE_TASKLET(warp_tasklet, warp_tasklet_fn);

/* --- parameters --- */

static int warp_parse_ports(const char *val, struct warp_ports *ports)
{
	char buf[256], *rest = buf, *item;

	if (strscpy(buf, val, sizeof(buf)) < 0)
		return -EINVAL;

	while ((item = strsep(&rest, ",")) != NULL) {
		char *dash, *first = strim(item);
		u16 lo, hi;

		if (!*first && !rest && !ports->n)
			return 0;	/* the empty list */
		if (ports->n == WARP_MAX_RANGES)
			return -E2BIG;
		dash = strchr(first, '-');
		if (dash)
			*dash = '\0';
		if (kstrtou16(first, 10, &lo) || !lo)
			return -EINVAL;
		hi = lo;
		if (dash && (kstrtou16(dash + 1, 10, &hi) || hi < lo))
			return -EINVAL;
		ports->range[ports->n].first = lo;
		ports->range[ports->n].last = hi;
		ports->n++;
	}
	return 0;
}

static int warp_set_ports(const char *val, const struct kernel_param *kp)
{
	struct warp_ports *ports, *old;
	int err;

	ports = kzalloc(sizeof(*ports), GFP_KERNEL);
	if (!ports)
		return -ENOMEM;

	err = warp_parse_ports(val, ports);
	if (err) {
		kfree(ports);
		return err;
	}

	mutex_lock(&warp_ports_lock);
	old = rcu_replace_pointer(warp_ports, ports, true);
	mutex_unlock(&warp_ports_lock);
	if (old)
		kfree_rcu(old, rcu);
	return 0;
}

static int warp_get_ports(char *buffer, const struct kernel_param *kp)
{
	const struct warp_ports *ports;
	int len = 0;
	unsigned int i;

	rcu_read_lock();
	ports = rcu_dereference(warp_ports);
	for (i = 0; ports && i < ports->n; i++)
		len += scnprintf(buffer + len, PAGE_SIZE - len, "%s%u-%u",
				 i ? "," : "", ports->range[i].first,
				 ports->range[i].last);
	rcu_read_unlock();
	len += scnprintf(buffer + len, PAGE_SIZE - len, "\n");
	return len;
}

static const struct kernel_param_ops warp_ports_ops = {
	.set = warp_set_ports,
	.get = warp_get_ports,
};

module_param_cb(ports, &warp_ports_ops, NULL, 0644);
MODULE_PARM_DESC(ports, "ports and ranges of them, e.g. 5201-5400,7000; either end of the connection");

static int warp_set_batch(const char *val, const struct kernel_param *kp)
{
	return param_set_uint_minmax(val, kp, 1, 64 << 20);
}

static int warp_set_hold(const char *val, const struct kernel_param *kp)
{
	return param_set_uint_minmax(val, kp, 1, 10000);
}

static const struct kernel_param_ops warp_batch_ops = {
	.set = warp_set_batch,
	.get = param_get_uint,
};

static const struct kernel_param_ops warp_hold_ops = {
	.set = warp_set_hold,
	.get = param_get_uint,
};

module_param_cb(batch_bytes, &warp_batch_ops, &batch_bytes, 0644);
MODULE_PARM_DESC(batch_bytes, "wake the process when it can read this much, or all it asked for (1 to 64 Mi, default 256 Ki)");
module_param_cb(hold_ms, &warp_hold_ops, &hold_ms, 0644);
MODULE_PARM_DESC(hold_ms, "wake it at the latest after this time (1 to 10000, default 20)");
module_param(start_bytes, uint, 0644);
MODULE_PARM_DESC(start_bytes, "leave a connection alone until it has received this much (default 1 Mi)");
module_param(sockets, uint, 0444);
MODULE_PARM_DESC(sockets, "connections with such a port now");
module_param(batches, uint, 0444);
MODULE_PARM_DESC(batches, "times that a process was woken for a batch");

static bool warp_port_listed(u16 port)
{
	const struct warp_ports *ports;
	bool found = false;
	unsigned int i;

	rcu_read_lock();
	ports = rcu_dereference(warp_ports);
	for (i = 0; ports && i < ports->n && !found; i++)
		found = port >= ports->range[i].first &&
			port <= ports->range[i].last;
	rcu_read_unlock();
	return found;
}

/* --- state of a socket --- */

static struct warp_sock *warp_sk(const struct sock *sk)
{
	return (struct warp_sock *)((uintptr_t)READ_ONCE(sk->sk_user_data) &
				    SK_USER_DATA_PTRMASK);
}

static u32 warp_bound(void)
{
	return 2 * READ_ONCE(batch_bytes);
}

/* no more data will come, or an error waits to be reported */
static bool warp_ended(const struct sock *sk)
{
	return sk->sk_err || sk->sk_state == TCP_CLOSE ||
	       (sk->sk_shutdown & RCV_SHUTDOWN) || sock_flag(sk, SOCK_DONE);
}

/*
 * How much has to be held to wake the process.  One that sleeps in recvmsg() gets
 * what it asked for.  One that reads without blocking gets a batch.  One that
 * blocks, but not now, may wait in select() for the first byte, then block until
 * it has filled its buffer, and look at other sockets only after that.
 */
static u32 warp_goal(const struct warp_sock *ws)
{
	if (ws->waiting)
		return ws->want_bytes;
	return ws->polls ? READ_ONCE(batch_bytes) : 1;
}

static bool warp_may_read(const struct sock *sk, const struct warp_sock *ws)
{
	return ws->held_bytes && (ws->ready || warp_ended(sk));
}

static void warp_wake(struct sock *sk, struct warp_sock *ws)
{
	if (!ws->ready) {
		ws->ready = true;
		ws->ready_ns = ktime_get_ns();
		batches++;
	}
	if (!sock_flag(sk, SOCK_DEAD))
		ws->data_ready(sk);
}

static void warp_schedule(struct sock *sk, struct warp_sock *ws)
{
	spin_lock_bh(&warp_lock);
	if (list_empty(&ws->node)) {
		sock_hold(sk);
		list_add_tail(&ws->node, &warp_pending);
	}
	tasklet_schedule(&warp_tasklet);
	spin_unlock_bh(&warp_lock);
}

static void warp_unschedule(struct warp_sock *ws)
{
	bool queued;

	spin_lock_bh(&warp_lock);
	queued = !list_empty(&ws->node);
	list_del_init(&ws->node);
	spin_unlock_bh(&warp_lock);
	if (queued)
		sock_put(ws->sk);
}

/* --- reading in place of the process --- */

static int warp_actor_none(read_descriptor_t *desc, struct sk_buff *skb,
			   unsigned int off, size_t len)
{
	return 0;
}

static int warp_actor(read_descriptor_t *desc, struct sk_buff *skb,
		      unsigned int off, size_t len)
{
	struct warp_sock *ws = desc->arg.data;
	struct sk_buff *clone;

	/*
	 * tcp_recvmsg() tunes the receive buffer after each skb, tcp_read_sock()
	 * only at its end.  A call that reads nothing does just that.
	 */
	if (desc->written) {
		read_descriptor_t none = { .count = 1 };

		tcp_read_sock(ws->sk, &none, warp_actor_none);
	}

	if (ws->held_bytes >= warp_bound())
		return 0;
	clone = skb_clone(skb, GFP_ATOMIC);
	if (!clone)
		return 0;	/* stays in TCP's queue, like slow reading */

	WARP_CB(clone)->off = off;
	WARP_CB(clone)->len = len;
	if (!ws->held_bytes)
		ws->held_since = jiffies;
	__skb_queue_tail(&ws->queue, clone);
	ws->held_bytes += len;
	desc->written += len;
	return len;
}

static bool warp_unread(const struct warp_sock *ws)
{
	return ws->held_bytes && ws->ready && ws->ready_ns < ktime_get_ns();
}

/* what is held now must not wait for longer than the hold time */
static void warp_hold(struct sock *sk, struct warp_sock *ws)
{
	if (ws->held_bytes && !ws->ready && !timer_pending(&ws->timer))
		sk_reset_timer(sk, &ws->timer, ws->held_since +
			       msecs_to_jiffies(READ_ONCE(hold_ms)));
}

/* called with the socket locked, by the tasklet or by the process */
static void warp_read(struct sock *sk, struct warp_sock *ws)
{
	read_descriptor_t desc = { .arg.data = ws, .count = 1 };

	if (!ws->active || sk->sk_state == TCP_CLOSE)
		return;

	/* told before, and did not read: it is no infinitely fast reader now */
	if (!warp_unread(ws) && ws->held_bytes < warp_bound())
		tcp_read_sock(sk, &desc, warp_actor);

	if (warp_ended(sk) || ws->held_bytes >= warp_goal(ws) ||
	    !skb_queue_empty(&sk->sk_receive_queue))
		warp_wake(sk, ws);
	else
		warp_hold(sk, ws);
}

static void warp_tasklet_fn(struct tasklet_struct *unused)
{
	struct warp_sock *ws;
	struct sock *sk;

	/* first let the other softirqs run once more */
	warp_second_pass = !warp_second_pass;
	if (warp_second_pass) {
		tasklet_schedule(&warp_tasklet);
		return;
	}

	for (;;) {
		spin_lock(&warp_lock);
		ws = list_first_entry_or_null(&warp_pending, struct warp_sock, node);
		if (ws)
			list_del_init(&ws->node);
		spin_unlock(&warp_lock);
		if (!ws)
			break;

		sk = ws->sk;
		bh_lock_sock(sk);
		if (sock_owned_by_user(sk))
			ws->again = true;	/* see warp_release_cb() */
		else
			warp_read(sk, ws);
		bh_unlock_sock(sk);
		sock_put(sk);
	}
}

static void warp_timer_fn(struct timer_list *timer)
{
	struct warp_sock *ws = timer_container_of(ws, timer, timer);
	struct sock *sk = ws->sk;
	unsigned long end;

	bh_lock_sock(sk);
	end = ws->held_since + msecs_to_jiffies(READ_ONCE(hold_ms));
	if (!ws->held_bytes || ws->ready)
		;
	else if (time_before(jiffies, end))
		sk_reset_timer(sk, &ws->timer, end);
	else
		warp_wake(sk, ws);
	bh_unlock_sock(sk);
	sock_put(sk);
}

/* has everything so far been read by recvmsg(), and can the rest be held? */
static bool warp_may_start(const struct sock *sk, const struct warp_sock *ws)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	return tp->bytes_received >= READ_ONCE(start_bytes) &&
	       ws->read_bytes == (u32)(tp->copied_seq - ws->first_seq) &&
	       !tp->urg_data && !tp->recvmsg_inq && !tp->repair &&
	       !sock_flag(sk, SOCK_RCVTSTAMP) && READ_ONCE(sk->sk_peek_off) < 0;
}

static struct warp_ops *warp_find_ops(const struct proto_ops *orig)
{
	struct warp_ops *ops = NULL;
	int i;

	if (orig->poll != tcp_poll)
		return NULL;

	spin_lock_bh(&warp_lock);
	for (i = 0; i < ARRAY_SIZE(warp_opses) && !ops; i++) {
		if (!warp_opses[i].orig) {
			warp_opses[i].ops = *orig;
			/* these would read past what is held */
			warp_opses[i].ops.splice_read = NULL;
			warp_opses[i].ops.mmap = sock_no_mmap;
			warp_opses[i].ops.set_peek_off = NULL;
			warp_opses[i].ops.read_sock = NULL;
			warp_opses[i].ops.read_skb = NULL;
			warp_opses[i].orig = orig;
		}
		if (warp_opses[i].orig == orig)
			ops = &warp_opses[i];
	}
	spin_unlock_bh(&warp_lock);
	return ops;
}

/* not before accept(): without a struct socket nobody reads */
static void warp_start(struct sock *sk, struct warp_sock *ws)
{
	struct warp_ops *ops;

	ops = sk->sk_socket ? warp_find_ops(sk->sk_socket->ops) : NULL;
	if (!ops)
		return;
	sk->sk_socket->ops = &ops->ops;
	ws->ops = ops;
	ws->active = true;
}

static void warp_data_ready(struct sock *sk)
{
	struct warp_sock *ws = warp_sk(sk);

	if (!ws->active && warp_may_start(sk, ws)) {
		warp_start(sk, ws);
	} else if (ws->active && tcp_sk(sk)->urg_data) {
		/* urgent data: leave the rest to TCP */
		ws->active = false;
		warp_wake(sk, ws);
	}

	if (ws->active)
		warp_schedule(sk, ws);
	else
		ws->data_ready(sk);
}

static void warp_release_cb(struct sock *sk)
{
	struct warp_sock *ws = warp_sk(sk);

	ws->orig->release_cb(sk);
	if (ws->again) {
		ws->again = false;
		warp_schedule(sk, ws);
	}
}

/* --- what the process sees --- */

static bool warp_is_readable(struct sock *sk)
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

/* copy up to len held bytes; what was copied leaves the queue unless peeked at */
static int warp_copy(struct warp_sock *ws, struct msghdr *msg, size_t len, int flags)
{
	struct sk_buff *skb, *next;
	size_t copied = 0;

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
		ws->held_bytes -= n;
		ws->held_since = jiffies;
		ws->read_bytes += n;
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
	u32 batch = READ_ONCE(batch_bytes);

	if (len == ws->missing_bytes || len >= WARP_LARGE_READ)
		ws->want_bytes = min_t(size_t, len, batch);
	else
		ws->want_bytes = batch;

	ws->ready = ws->held_bytes &&
		    (ws->held_bytes >= ws->want_bytes ||
		     time_after_eq(jiffies, ws->held_since +
				   msecs_to_jiffies(READ_ONCE(hold_ms))));
	warp_hold(sk, ws);
}

static int warp_recvmsg(struct sock *sk, struct msghdr *msg, size_t len,
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

	if (!(flags & MSG_PEEK))
		ws->missing_bytes = copied > 0 ? len - copied : 0;
	if (!(flags & MSG_PEEK) && !skb_queue_empty(&sk->sk_receive_queue))
		warp_read(sk, ws);
	release_sock(sk);
	return copied ? : n;
}

static int warp_ioctl(struct sock *sk, int cmd, compat_ioctl_arg_t arg)
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

static int warp_getsockopt(struct sock *sk, int level, int optname,
			   char __user *optval, int __user *optlen)
{
	struct warp_sock *ws = warp_sk(sk);

	if (ws->active && level == SOL_TCP && optname == TCP_ZEROCOPY_RECEIVE)
		return -EOPNOTSUPP;
	return ws->orig->getsockopt(sk, level, optname, optval, optlen);
}

/* --- beginning and end --- */

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
	sockets--;
	kfree_rcu(ws, rcu);
}

static void warp_stop(struct sock *sk, struct warp_sock *ws)
{
	warp_unschedule(ws);
	sk_stop_timer_sync(sk, &ws->timer);
	warp_unhook(sk, ws);
}

static void warp_close(struct sock *sk, long timeout)
{
	struct warp_sock *ws = warp_sk(sk);
	struct proto *orig = ws->orig;
	struct sk_buff *skb;

	lock_sock(sk);
	skb = skb_peek(&ws->queue);
	if (skb && warp_unread(ws)) {
		/* tcp_close() sends a RST for data beyond copied_seq */
		__skb_unlink(skb, &ws->queue);
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

	spin_lock_bh(&warp_lock);
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
	spin_unlock_bh(&warp_lock);
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
	INIT_LIST_HEAD(&ws->node);
	__skb_queue_head_init(&ws->queue);
	timer_setup(&ws->timer, warp_timer_fn, 0);

	WRITE_ONCE(sk->sk_user_data,
		   (void *)((uintptr_t)ws | SK_USER_DATA_NOCOPY));
	sk->sk_data_ready = warp_data_ready;
	sk->sk_destruct = warp_destruct;
	WRITE_ONCE(sk->sk_prot, &prot->prot);
	sockets++;
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
	tasklet_kill(&warp_tasklet);
	kfree(rcu_dereference_protected(warp_ports, true));
}

module_init(warp_init);
module_exit(warp_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Receivers that wake up once per batch, with the packets of an infinitely fast one");
