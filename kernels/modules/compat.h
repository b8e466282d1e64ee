/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The only place where the modules look at the kernel's version.
 *
 * Supported: 6.1 (Debian 12) and later.  Write the modules against the newest
 * kernel and teach the older ones here.
 */
#ifndef WARPBED_COMPAT_H
#define WARPBED_COMPAT_H

#include <linux/hrtimer.h>
#include <linux/timer.h>
#include <linux/uaccess.h>
#include <linux/version.h>
#include <net/tcp.h>

/* hex2bin() moved here from kernel.h in 6.4 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 4, 0)
#include <linux/hex.h>
#endif

/* from_timer() was renamed in 6.16 */
#ifndef timer_container_of
#define timer_container_of(var, timer, field) from_timer(var, timer, field)
#endif

/* hrtimer_init() and the function's assignment became one call in 6.13 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
#define compat_hrtimer_setup hrtimer_setup
#else
static inline void
compat_hrtimer_setup(struct hrtimer *timer,
		     enum hrtimer_restart (*function)(struct hrtimer *),
		     clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock, mode);
	timer->function = function;
}
#endif

/* proto->recvmsg() had a last argument int *addr_len before 7.0 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 0, 0)
#define COMPAT_ADDR_LEN_PARAM
#define COMPAT_ADDR_LEN_ARG
#else
#define COMPAT_ADDR_LEN_PARAM , int *addr_len
#define COMPAT_ADDR_LEN_ARG , addr_len
#endif

/* proto->ioctl() got a user address before 6.5, and a kernel address since */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 5, 0)
typedef int *compat_ioctl_arg_t;

static inline int compat_ioctl_put(compat_ioctl_arg_t arg, int value)
{
	*arg = value;
	return 0;
}
#else
typedef unsigned long compat_ioctl_arg_t;

static inline int compat_ioctl_put(compat_ioctl_arg_t arg, int value)
{
	return put_user(value, (int __user *)arg);
}
#endif

/* Time stamps may count microseconds since 6.7 (a route's feature) */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 7, 0)
#define compat_tcp_stamp_ms tcp_time_stamp_ms

static inline bool compat_tcp_usec_ts(const struct tcp_sock *tp)
{
	return tp->tcp_usec_ts;
}
#else
#define compat_tcp_stamp_ms tcp_time_stamp

static inline bool compat_tcp_usec_ts(const struct tcp_sock *tp)
{
	return false;
}
#endif

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
