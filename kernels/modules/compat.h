/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What differs between the kernel series that the modules are built for.  The
 * only place with version checks.
 */
#ifndef WARPBED_COMPAT_H
#define WARPBED_COMPAT_H

#include <linux/timer.h>
#include <linux/uaccess.h>
#include <linux/version.h>

/* from_timer() was renamed in 6.16 */
#ifndef timer_container_of
#define timer_container_of(var, timer, field) from_timer(var, timer, field)
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

#endif /* WARPBED_COMPAT_H */
