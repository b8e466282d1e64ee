// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reading in place of the process, see rxbatch_read.h
 */
#include <linux/ktime.h>
#include <net/tcp.h>
#include "compat.h"
#include "rxbatch_params.h"
#include "rxbatch_read.h"

/* IPv4 and IPv6 */
static struct warp_ops warp_opses[2];
static LIST_HEAD(warp_pending);
static DEFINE_SPINLOCK(warp_lock);	/* of both */
static bool warp_second_pass;

static void warp_tasklet_fn(struct tasklet_struct *unused);
static DECLARE_TASKLET(warp_tasklet, warp_tasklet_fn);

static void warp_wake(struct sock *sk, struct warp_sock *ws)
{
	if (!ws->ready) {
		ws->ready = true;
		ws->ready_ns = ktime_get_ns();
		warp_batches++;
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

void warp_unschedule(struct warp_sock *ws)
{
	bool queued;

	spin_lock_bh(&warp_lock);
	queued = !list_empty(&ws->node);
	list_del_init(&ws->node);
	spin_unlock_bh(&warp_lock);
	if (queued)
		sock_put(ws->sk);
}

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
	if (!ws->counts) {
		clone = skb_clone(skb, GFP_ATOMIC);
		if (!clone)
			return 0;	/* stays in TCP's queue, like slow reading */
		WARP_CB(clone)->off = off;
		WARP_CB(clone)->len = len;
		__skb_queue_tail(&ws->queue, clone);
	}
	if (!ws->held_bytes)
		ws->held_since = jiffies;
	ws->held_bytes += len;
	desc->written += len;
	return len;
}

bool warp_unread(const struct warp_sock *ws)
{
	return ws->held_bytes && ws->ready && ws->ready_ns < ktime_get_ns();
}

/* what is held now must not wait for longer than the hold time */
void warp_hold(struct sock *sk, struct warp_sock *ws)
{
	if (ws->held_bytes && !ws->ready && !timer_pending(&ws->timer))
		sk_reset_timer(sk, &ws->timer, ws->held_since +
			       msecs_to_jiffies(READ_ONCE(warp_hold_ms)));
}

/* called with the socket locked, by the tasklet or by the process */
void warp_read(struct sock *sk, struct warp_sock *ws)
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

void warp_timer_fn(struct timer_list *timer)
{
	struct warp_sock *ws = timer_container_of(ws, timer, timer);
	struct sock *sk = ws->sk;
	unsigned long end;

	bh_lock_sock(sk);
	end = ws->held_since + msecs_to_jiffies(READ_ONCE(warp_hold_ms));
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

	return tp->bytes_received >= READ_ONCE(warp_start_bytes) &&
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
	ws->counts = ws->unseen && ws->reads_large && skb_queue_empty(&ws->queue);
	ws->active = true;
}

void warp_data_ready(struct sock *sk)
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

void warp_release_cb(struct sock *sk)
{
	struct warp_sock *ws = warp_sk(sk);

	ws->orig->release_cb(sk);
	if (ws->again) {
		ws->again = false;
		warp_schedule(sk, ws);
	}
}

/* For the module's exit, when no connection is hooked any more */
void warp_read_exit(void)
{
	tasklet_kill(&warp_tasklet);
}
