// SPDX-License-Identifier: GPL-2.0-only
/*
 * um_sample: samples of queues and sockets in the virtual host by a thread of the kernel
 *
 * In a nutshell: the same question to the kernel again and again (rtnetlink's qdiscs,
 * sock_diag's sockets), in the namespaces of several nodes, and the answers as they
 * are, as agent/samples.py stores them (plan/samples.py has the format).  A process
 * that did so would enter and leave the kernel a dozen times per sample, which in a
 * guest costs many times what the answer does.
 *
 * Parameters, written by agent/kernel_records.py:
 *
 *   open	PROTOCOL QUESTION PATH		question: the netlink message, hexadecimal
 *   add	NODE PATH			the node's number; in its namespace
 *   start	FIRST_NS INTERVAL_NS COUNT PATH	of CLOCK_MONOTONIC
 *   close	PATH		fails with the first error that a question or a write had
 *
 * The path is the host's.
 */

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/file.h>
#include <linux/hrtimer.h>
#include <linux/kernel.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/mm.h>
#include <linux/net.h>
#include <linux/netlink.h>
#include <linux/nsproxy.h>
#include <net/net_namespace.h>
#include <net/sock.h>

#include "compat.h"
#include "um_out.h"

#define SAMPLE_QUESTION_BYTES	256
#define SAMPLE_RECEIVE_BYTES	(256U << 10)	/* as agent/samples.py, so answers are cut alike */
#define SAMPLE_ANSWER_BYTES	(4U << 20)

struct sample_place {
	struct list_head	node;
	struct socket		*sock;
	struct file		*file;		/* holds sock; sock_diag asks for its owner */
	u16			number;
};

struct sampler {
	struct list_head	node;
	struct list_head	places;
	struct um_out		out;
	struct task_struct	*task;
	u8			*answer;
	u64			first_ns, interval_ns, count;
	int			protocol, error;
	unsigned int		question_bytes;
	u8			question[SAMPLE_QUESTION_BYTES];
	char			path[];
};

/* in front of each answer: time, node, length */
struct sample_record {
	s64	time_ns;
	u16	node;
	u32	bytes;
} __packed;

static LIST_HEAD(samplers);
static DEFINE_MUTEX(samplers_lock);

/* Whether what came ends the answer. */
static bool sample_ends(const u8 *data, int bytes)
{
	const struct nlmsghdr *message = (const struct nlmsghdr *)data;

	for (; nlmsg_ok(message, bytes); message = nlmsg_next(message, &bytes))
		if (message->nlmsg_type == NLMSG_DONE || message->nlmsg_type == NLMSG_ERROR)
			return true;
	return false;
}

static int sample_place(struct sampler *s, struct sample_place *place)
{
	struct kvec question = { s->question, s->question_bytes };
	struct sample_record record = { .node = place->number };
	struct msghdr sent = {};
	int n, used = 0;

	n = kernel_sendmsg(place->sock, &sent, &question, 1, s->question_bytes);
	if (n < 0)
		return n;
	record.time_ns = ktime_get_real_ns();
	do {
		struct kvec room = { s->answer + used, SAMPLE_RECEIVE_BYTES };
		struct msghdr received = {};

		if (used + SAMPLE_RECEIVE_BYTES > SAMPLE_ANSWER_BYTES)
			return -EMSGSIZE;
		n = kernel_recvmsg(place->sock, &received, &room, 1, SAMPLE_RECEIVE_BYTES, 0);
		if (n <= 0)
			return n ? n : -EPIPE;
		used += n;
	} while (!sample_ends(s->answer + used - n, n));
	record.bytes = used;
	um_out_put(&s->out, &record, sizeof(record));
	um_out_put(&s->out, s->answer, used);
	return s->out.error;
}

static int sample_thread(void *data)
{
	struct sampler *s = data;
	struct sample_place *place;
	u64 i;

	for (i = 0; i < s->count && !s->error; i++) {
		ktime_t due = ns_to_ktime(s->first_ns + i * s->interval_ns);

		while (!kthread_should_stop() && ktime_get() < due) {
			set_current_state(TASK_INTERRUPTIBLE);
			if (!kthread_should_stop())
				schedule_hrtimeout(&due, HRTIMER_MODE_ABS);
			__set_current_state(TASK_RUNNING);
		}
		if (kthread_should_stop())
			break;
		list_for_each_entry(place, &s->places, node) {
			s->error = sample_place(s, place);
			if (s->error)
				break;
		}
	}
	while (!kthread_should_stop()) {
		set_current_state(TASK_INTERRUPTIBLE);
		if (!kthread_should_stop())
			schedule();
		__set_current_state(TASK_RUNNING);
	}
	return 0;
}

static struct sampler *sample_find(const char *path)
{
	struct sampler *s;

	list_for_each_entry(s, &samplers, node)
		if (sysfs_streq(s->path, path))
			return s;
	return NULL;
}

static int sample_open(const char *val, const struct kernel_param *kp)
{
	char question[2 * SAMPLE_QUESTION_BYTES + 1];
	struct sampler *s;
	unsigned int protocol;
	int at = 0, err;

	if (sscanf(val, "%u %512s %n", &protocol, question, &at) < 2 || !at || !val[at] ||
	    protocol >= MAX_LINKS || strlen(question) % 2)
		return -EINVAL;
	s = kzalloc(struct_size(s, path, strlen(val + at) + 1), GFP_KERNEL);
	if (!s)
		return -ENOMEM;
	INIT_LIST_HEAD(&s->places);
	s->protocol = protocol;
	s->question_bytes = strlen(question) / 2;
	memcpy(s->path, val + at, strlen(val + at) + 1);
	strim(s->path);
	err = hex2bin(s->question, question, s->question_bytes);
	s->answer = err ? NULL : kmalloc(SAMPLE_ANSWER_BYTES, GFP_KERNEL);
	if (!err && !s->answer)
		err = -ENOMEM;
	if (!err)
		err = um_out_open(&s->out, s->path);
	if (err) {
		kfree(s->answer);
		kfree(s);
		return err;
	}
	um_out_put(&s->out, "WBSAMP01", 8);
	mutex_lock(&samplers_lock);
	list_add_tail(&s->node, &samplers);
	mutex_unlock(&samplers_lock);
	return 0;
}

/* In the namespace and with the port of the process that writes the parameter. */
static int sample_socket(struct sample_place *place, int protocol)
{
	struct sockaddr_nl any = { .nl_family = AF_NETLINK };
	int err = sock_create_kern(current->nsproxy->net_ns, AF_NETLINK, SOCK_RAW, protocol,
				   &place->sock);

	if (err)
		return err;
	place->file = sock_alloc_file(place->sock, 0, NULL);
	if (IS_ERR(place->file))
		return PTR_ERR(place->file);
	err = kernel_bind(place->sock, (void *)&any, sizeof(any));
	if (err)
		fput(place->file);
	return err;
}

static int sample_add(const char *val, const struct kernel_param *kp)
{
	struct sample_place *place;
	struct sampler *s;
	unsigned int number;
	int at = 0, err = -ENOENT;

	if (sscanf(val, "%u %n", &number, &at) < 1 || !at || number > U16_MAX)
		return -EINVAL;
	place = kzalloc(sizeof(*place), GFP_KERNEL);
	if (!place)
		return -ENOMEM;
	place->number = number;
	mutex_lock(&samplers_lock);
	s = sample_find(val + at);
	if (s && !s->task) {
		err = sample_socket(place, s->protocol);
		if (!err)
			list_add_tail(&place->node, &s->places);
	}
	mutex_unlock(&samplers_lock);
	if (err)
		kfree(place);
	return err;
}

static int sample_start(const char *val, const struct kernel_param *kp)
{
	u64 first_ns, interval_ns, count;
	struct task_struct *task;
	struct sampler *s;
	int at = 0, err = -ENOENT;

	if (sscanf(val, "%llu %llu %llu %n", &first_ns, &interval_ns, &count, &at) < 3 || !at)
		return -EINVAL;
	mutex_lock(&samplers_lock);
	s = sample_find(val + at);
	if (s && !s->task) {
		s->first_ns = first_ns;
		s->interval_ns = interval_ns;
		s->count = count;
		task = kthread_run(sample_thread, s, "um_sample");
		err = PTR_ERR_OR_ZERO(task);
		if (!err)
			s->task = task;
	}
	mutex_unlock(&samplers_lock);
	return err;
}

static int sample_end(struct sampler *s)
{
	struct sample_place *place, *next;
	int err;

	if (s->task)
		kthread_stop(s->task);
	list_del(&s->node);
	list_for_each_entry_safe(place, next, &s->places, node) {
		fput(place->file);
		kfree(place);
	}
	err = um_out_close(&s->out);
	if (s->error)
		err = s->error;
	kfree(s->answer);
	kfree(s);
	return err;
}

static int sample_close(const char *val, const struct kernel_param *kp)
{
	struct sampler *s;
	int err = -ENOENT;

	mutex_lock(&samplers_lock);
	s = sample_find(val);
	if (s)
		err = sample_end(s);
	mutex_unlock(&samplers_lock);
	return err;
}

static const struct kernel_param_ops sample_open_ops = { .set = sample_open };
static const struct kernel_param_ops sample_add_ops = { .set = sample_add };
static const struct kernel_param_ops sample_start_ops = { .set = sample_start };
static const struct kernel_param_ops sample_close_ops = { .set = sample_close };

module_param_cb(open, &sample_open_ops, NULL, 0200);
MODULE_PARM_DESC(open, "PROTOCOL QUESTION PATH: make a sampler");
module_param_cb(add, &sample_add_ops, NULL, 0200);
MODULE_PARM_DESC(add, "NODE PATH: sample this namespace, too");
module_param_cb(start, &sample_start_ops, NULL, 0200);
MODULE_PARM_DESC(start, "FIRST_NS INTERVAL_NS COUNT PATH: begin");
module_param_cb(close, &sample_close_ops, NULL, 0200);
MODULE_PARM_DESC(close, "PATH: end a sampler");

static int __init sample_init(void)
{
	return 0;
}

static void __exit sample_exit(void)
{
	struct sampler *s, *next;

	list_for_each_entry_safe(s, next, &samplers, node)
		sample_end(s);
}

module_init(sample_init);
module_exit(sample_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Samples of queues and sockets in the virtual host by a thread of the kernel");
