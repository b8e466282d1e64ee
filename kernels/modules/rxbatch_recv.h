/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the process sees of a connection that warp_rxbatch reads: recvmsg(), ioctl() ...
 */
#ifndef WARPBED_RXBATCH_RECV_H
#define WARPBED_RXBATCH_RECV_H

#include <net/sock.h>
#include "compat.h"

/* In the place of struct proto's own */
bool warp_is_readable(struct sock *sk);
int warp_recvmsg(struct sock *sk, struct msghdr *msg, size_t len,
		 int flags COMPAT_ADDR_LEN_PARAM);
int warp_ioctl(struct sock *sk, int cmd, compat_ioctl_arg_t arg);
int warp_getsockopt(struct sock *sk, int level, int optname,
		    char __user *optval, int __user *optlen);

#endif /* WARPBED_RXBATCH_RECV_H */
