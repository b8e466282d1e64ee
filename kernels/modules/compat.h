/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The only place where the modules look at the kernel's version.
 *
 * Supported: 6.1 (Debian 12) and later.  Write the modules against the newest
 * kernel and teach the older ones here.
 */
#ifndef WARPBED_COMPAT_H
#define WARPBED_COMPAT_H

#include <linux/version.h>
#include <net/tcp.h>

/*
 * cong_control() got the ACK number and the FLAG_* bits in 6.10.  Modules
 * define it with CC_CONTROL_ARGS and use neither of the two new arguments.
 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0)
#define CC_CONTROL_ARGS struct sock *sk, u32 ack, int flag, \
	const struct rate_sample *rs
#else
#define CC_CONTROL_ARGS struct sock *sk, const struct rate_sample *rs
#endif

#endif /* WARPBED_COMPAT_H */
