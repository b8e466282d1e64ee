/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reading in place of the process: at each packet's instant, in softirq
 *
 * A connection whose data has come waits in a list for the tasklet, which reads
 * for it and wakes its process where there is enough.
 */
#ifndef WARPBED_RXBATCH_READ_H
#define WARPBED_RXBATCH_READ_H

#include "rxbatch_sock.h"

/* With the socket locked */
bool warp_unread(const struct warp_sock *ws);
void warp_hold(struct sock *sk, struct warp_sock *ws);
void warp_read(struct sock *sk, struct warp_sock *ws);
void warp_unschedule(struct warp_sock *ws);

/* In the place of the socket's own */
void warp_data_ready(struct sock *sk);
void warp_release_cb(struct sock *sk);
void warp_timer_fn(struct timer_list *timer);

void warp_read_exit(void);

#endif /* WARPBED_RXBATCH_READ_H */
