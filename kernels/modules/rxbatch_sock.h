/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What warp_rxbatch knows of a connection, and what follows from it
 */
#ifndef WARPBED_RXBATCH_SOCK_H
#define WARPBED_RXBATCH_SOCK_H

#include <net/tcp.h>

#include "rxbatch_params.h"

/* a read of at least this much is one of a large piece, and a batch of its own, in bytes */
#define WARP_LARGE_READ	(64 * 1024)

/* what a socket had before, and what the module puts there instead */
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
	bool			unseen;		/* nobody looks at what it reads in large pieces */
	bool			reads_large;	/* has asked for one */
	bool			counts;		/* holds no data, only their number */
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

static inline struct warp_sock *warp_sk(const struct sock *sk)
{
	return (struct warp_sock *)((uintptr_t)READ_ONCE(sk->sk_user_data) &
				    SK_USER_DATA_PTRMASK);
}

static inline u32 warp_bound(void)
{
	return 2 * READ_ONCE(warp_batch_bytes);
}

/* no more data will come, or an error waits to be reported */
static inline bool warp_ended(const struct sock *sk)
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
static inline u32 warp_goal(const struct warp_sock *ws)
{
	if (ws->waiting)
		return ws->want_bytes;
	return ws->polls ? READ_ONCE(warp_batch_bytes) : 1;
}

static inline bool warp_may_read(const struct sock *sk, const struct warp_sock *ws)
{
	return ws->held_bytes && (ws->ready || warp_ended(sk));
}

#endif /* WARPBED_RXBATCH_SOCK_H */
