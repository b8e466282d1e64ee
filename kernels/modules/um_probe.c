// SPDX-License-Identifier: GPL-2.0-only
/*
 * um_probe: each ACK in the virtual host, written by the guest's kernel itself
 *
 * In a nutshell: congestion window, threshold and smoothed RTT of the senders, as the
 * trace event tcp:tcp_probe has them, straight into a file.  That event is built for
 * every packet that any socket receives, data at the receivers included, before its
 * filter can reject it, and a process fetches the ring's pages; here a socket's port is
 * looked at first.
 *
 * - The pages are those of the kernel's ring buffer (include/linux/ring_buffer.h): the
 *   first event's time, the bytes in use, events with the time since the one before.
 *   They hold one kind of event, whose fields the parameter `format` names as the
 *   trace event's format file does.
 *
 * Parameters, written by agent/kernel_records.py:
 *
 *   open	FIRST_PORT LAST_PORT PATH	of the peer; the host's path
 *   close	PATH		fails with the first error that a write had
 *   format	(read) where each field is in an event
 */

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/in6.h>
#include <linux/irqflags.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/timekeeping.h>
#include <linux/tracepoint.h>
#include <net/inet_sock.h>
#include <net/ipv6.h>
#include <net/tcp.h>

#include "um_out.h"

#define PROBE_PAGE_BYTES	4096U
#define PROBE_DELTA_BITS	27	/* of an event's time since the one before */
#define PROBE_TIME_EXTEND	30U	/* the type of what only says how much later it is */

struct probe_event {
	u8	saddr[sizeof(struct sockaddr_in6)];
	u16	sport, dport;
	u32	snd_nxt, snd_una, snd_cwnd, ssthresh, snd_wnd, srtt;
};

/* The fields follow one another without holes: probe_format() adds their sizes. */
static_assert(sizeof(struct probe_event) ==
	      sizeof(struct sockaddr_in6) + 2 * sizeof(u16) + 6 * sizeof(u32));

struct probe_page {
	u64	time_ns;
	u64	used;		/* of data */
	u8	data[PROBE_PAGE_BYTES - 2 * sizeof(u64)];
};

/* The event's fields, in their order. */
static const struct {
	const char	*name;
	unsigned int	bytes;
} probe_fields[] = {
	{ "saddr", sizeof_field(struct probe_event, saddr) },
	{ "sport", sizeof_field(struct probe_event, sport) },
	{ "dport", sizeof_field(struct probe_event, dport) },
	{ "snd_nxt", sizeof_field(struct probe_event, snd_nxt) },
	{ "snd_una", sizeof_field(struct probe_event, snd_una) },
	{ "snd_cwnd", sizeof_field(struct probe_event, snd_cwnd) },
	{ "ssthresh", sizeof_field(struct probe_event, ssthresh) },
	{ "snd_wnd", sizeof_field(struct probe_event, snd_wnd) },
	{ "srtt", sizeof_field(struct probe_event, srtt) },
};

static struct {
	struct um_out		out;
	struct probe_page	*page;		/* the last one in out; NULL: none yet */
	u64			last_ns;	/* the last event's time */
	u16			first_port, last_port;
	char			*path;		/* NULL: nothing is recorded */
} probe;

static DEFINE_MUTEX(probe_lock);
static struct tracepoint *probe_point;

/* Room for an event so much later than the one before, in the page under way or in a new one. */
static struct probe_event *probe_room(u64 now_ns)
{
	u64 later_ns = now_ns - probe.last_ns;
	bool far = later_ns >> PROBE_DELTA_BITS;
	u32 *at, bytes = sizeof(u32) + sizeof(struct probe_event) + (far ? 2 * sizeof(u32) : 0);

	if (!probe.page || probe.page->used + bytes > sizeof(probe.page->data)) {
		probe.page = (struct probe_page *)um_out_room(&probe.out, PROBE_PAGE_BYTES);
		if (!probe.page)
			return NULL;
		memset(probe.page, 0, PROBE_PAGE_BYTES);
		probe.page->time_ns = now_ns;
		later_ns = 0;
		far = false;
		bytes = sizeof(u32) + sizeof(struct probe_event);
	}
	at = (u32 *)(probe.page->data + probe.page->used);
	if (far) {
		*at++ = PROBE_TIME_EXTEND | (u32)(later_ns << 5);
		*at++ = later_ns >> PROBE_DELTA_BITS;
		later_ns = 0;
	}
	*at++ = sizeof(struct probe_event) / sizeof(u32) | (u32)later_ns << 5;
	probe.page->used += bytes;
	probe.last_ns = now_ns;
	return (struct probe_event *)at;
}

static void probe_address(struct probe_event *event, const struct sock *sk)
{
#if IS_ENABLED(CONFIG_IPV6)
	if (sk->sk_family == AF_INET6) {
		struct sockaddr_in6 *own = (struct sockaddr_in6 *)event->saddr;

		own->sin6_family = AF_INET6;
		own->sin6_port = inet_sk(sk)->inet_sport;
		own->sin6_addr = inet6_sk(sk)->saddr;
		return;
	}
#endif
	*(struct sockaddr_in *)event->saddr = (struct sockaddr_in) {
		.sin_family = AF_INET,
		.sin_port = inet_sk(sk)->inet_sport,
		.sin_addr.s_addr = inet_sk(sk)->inet_saddr,
	};
}

/* At the beginning of every packet that an open connection receives; holds the socket. */
static void probe_received(void *unused, struct sock *sk, const struct sk_buff *skb)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u16 port = ntohs(inet_sk(sk)->inet_dport);
	struct probe_event *event;
	unsigned long flags;
	u64 now_ns;

	if (!probe.path || port < probe.first_port || port > probe.last_port)
		return;
	now_ns = ktime_get_mono_fast_ns();
	/* while a socket's backlog is worked off, an interrupt may bring another socket's packet */
	local_irq_save(flags);
	event = probe_room(now_ns);
	if (event) {
		probe_address(event, sk);
		event->sport = ntohs(inet_sk(sk)->inet_sport);
		event->dport = port;
		event->snd_nxt = tp->snd_nxt;
		event->snd_una = tp->snd_una;
		event->snd_cwnd = tcp_snd_cwnd(tp);
		event->ssthresh = tcp_current_ssthresh(sk);
		event->snd_wnd = tp->snd_wnd;
		event->srtt = tp->srtt_us >> 3;
	}
	local_irq_restore(flags);
}

static int probe_open(const char *val, const struct kernel_param *kp)
{
	int at = 0, err = -EBUSY;
	u16 first, last;
	char *path;

	BUILD_BUG_ON(sizeof(struct probe_page) != PROBE_PAGE_BYTES);
	BUILD_BUG_ON(UM_OUT_BYTES % PROBE_PAGE_BYTES);
	if (sscanf(val, "%hu %hu %n", &first, &last, &at) < 2 || !at || !val[at])
		return -EINVAL;
	path = kstrdup(val + at, GFP_KERNEL);
	if (!path)
		return -ENOMEM;
	strim(path);
	mutex_lock(&probe_lock);
	if (!probe.path) {
		err = um_out_open(&probe.out, path);
		if (!err) {
			probe.page = NULL;
			probe.first_port = first;
			probe.last_port = last;
			probe.path = path;
		}
	}
	mutex_unlock(&probe_lock);
	if (err)
		kfree(path);
	return err;
}

/* Holds probe_lock. */
static int probe_end(void)
{
	char *path = probe.path;

	probe.path = NULL;
	tracepoint_synchronize_unregister();	/* nobody is inside probe_received() any more */
	kfree(path);
	return um_out_close(&probe.out);
}

static int probe_close(const char *val, const struct kernel_param *kp)
{
	int err = -ENOENT;

	mutex_lock(&probe_lock);
	if (probe.path && sysfs_streq(probe.path, val))
		err = probe_end();
	mutex_unlock(&probe_lock);
	return err;
}

static int probe_format(char *buffer, const struct kernel_param *kp)
{
	unsigned int at = 0;
	int i, n = 0;

	for (i = 0; i < ARRAY_SIZE(probe_fields); i++) {
		n += scnprintf(buffer + n, PAGE_SIZE - n, "field:%s;\toffset:%u;\tsize:%u;\n",
			       probe_fields[i].name, at, probe_fields[i].bytes);
		at += probe_fields[i].bytes;
	}
	n += scnprintf(buffer + n, PAGE_SIZE - n, "field:data;\toffset:%zu;\tsize:%zu;\n",
		       offsetof(struct probe_page, data), sizeof_field(struct probe_page, data));
	return n;
}

static const struct kernel_param_ops probe_open_ops = { .set = probe_open };
static const struct kernel_param_ops probe_close_ops = { .set = probe_close };
static const struct kernel_param_ops probe_format_ops = { .get = probe_format };

module_param_cb(open, &probe_open_ops, NULL, 0200);
MODULE_PARM_DESC(open, "FIRST_PORT LAST_PORT PATH: begin to record connections to these ports");
module_param_cb(close, &probe_close_ops, NULL, 0200);
MODULE_PARM_DESC(close, "PATH: end the record");
module_param_cb(format, &probe_format_ops, NULL, 0400);
MODULE_PARM_DESC(format, "where each field is in an event");

/* The kernel does not export it, so it is looked for by its name. */
static void __init probe_find(struct tracepoint *point, void *unused)
{
	if (!strcmp(point->name, "tcp_probe"))
		probe_point = point;
}

static int __init probe_init(void)
{
	for_each_kernel_tracepoint(probe_find, NULL);
	if (!probe_point)
		return -ENOENT;
	return tracepoint_probe_register(probe_point, probe_received, NULL);
}

static void __exit probe_exit(void)
{
	tracepoint_probe_unregister(probe_point, probe_received, NULL);
	tracepoint_synchronize_unregister();
	mutex_lock(&probe_lock);
	if (probe.path)
		probe_end();
	mutex_unlock(&probe_lock);
}

module_init(probe_init);
module_exit(probe_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Windows and round-trip times of senders, written by the guest's kernel itself");
