// SPDX-License-Identifier: GPL-2.0-only
/*
 * warp_rxbatch's parameters, see rxbatch_params.h
 */
#include <linux/module.h>
#include <linux/slab.h>
#include "rxbatch_params.h"

#define WARP_MAX_RANGES	16

struct warp_ports {
	struct rcu_head	rcu;
	unsigned int	n;
	struct {
		u16	first;
		u16	last;
	} range[WARP_MAX_RANGES];
};

static struct warp_ports __rcu *warp_ports, __rcu *warp_unseen;
static DEFINE_MUTEX(warp_ports_lock);

unsigned int warp_batch_bytes = 256 * 1024;
unsigned int warp_hold_ms = 20;
unsigned int warp_start_bytes = 1024 * 1024;
unsigned int warp_sockets;
unsigned int warp_batches;

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
	struct warp_ports __rcu **list = kp->arg;
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
	old = rcu_replace_pointer(*list, ports, true);
	mutex_unlock(&warp_ports_lock);
	if (old)
		kfree_rcu(old, rcu);
	return 0;
}

static int warp_get_ports(char *buffer, const struct kernel_param *kp)
{
	struct warp_ports __rcu **list = kp->arg;
	const struct warp_ports *ports;
	int len = 0;
	unsigned int i;

	rcu_read_lock();
	ports = rcu_dereference(*list);
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

module_param_cb(ports, &warp_ports_ops, &warp_ports, 0644);
MODULE_PARM_DESC(ports, "ports and ranges of them, e.g. 5201-5400,7000; either end of the connection");
module_param_cb(unseen, &warp_ports_ops, &warp_unseen, 0644);
MODULE_PARM_DESC(unseen, "those of them whose programs look at nothing that they read in pieces of 64 KiB and more: it is counted, not kept");

static int warp_set_batch(const char *val, const struct kernel_param *kp)
{
	return param_set_uint_minmax(val, kp, 1, 64 << 20);
}

static int warp_set_hold(const char *val, const struct kernel_param *kp)
{
	return param_set_uint_minmax(val, kp, 1, 10000);
}

static int warp_set_start(const char *val, const struct kernel_param *kp)
{
	return param_set_uint_minmax(val, kp, 0, 1 << 30);
}

static const struct kernel_param_ops warp_batch_ops = {
	.set = warp_set_batch,
	.get = param_get_uint,
};

static const struct kernel_param_ops warp_hold_ops = {
	.set = warp_set_hold,
	.get = param_get_uint,
};

static const struct kernel_param_ops warp_start_ops = {
	.set = warp_set_start,
	.get = param_get_uint,
};

module_param_cb(batch_bytes, &warp_batch_ops, &warp_batch_bytes, 0644);
MODULE_PARM_DESC(batch_bytes, "wake the process when it can read this much, or all it asked for (1 to 64 Mi, default 256 Ki)");
module_param_cb(hold_ms, &warp_hold_ops, &warp_hold_ms, 0644);
MODULE_PARM_DESC(hold_ms, "wake it at the latest after this time (1 to 10000, default 20)");
module_param_cb(start_bytes, &warp_start_ops, &warp_start_bytes, 0644);
MODULE_PARM_DESC(start_bytes, "leave a connection alone until it has received this much (0 to 1 Gi, default 1 Mi)");
module_param_named(sockets, warp_sockets, uint, 0444);
MODULE_PARM_DESC(sockets, "connections with such a port now");
module_param_named(batches, warp_batches, uint, 0444);
MODULE_PARM_DESC(batches, "times that a process was woken for a batch");

static bool warp_is_listed(struct warp_ports __rcu **list, u16 port)
{
	const struct warp_ports *ports;
	bool found = false;
	unsigned int i;

	rcu_read_lock();
	ports = rcu_dereference(*list);
	for (i = 0; ports && i < ports->n && !found; i++)
		found = port >= ports->range[i].first &&
			port <= ports->range[i].last;
	rcu_read_unlock();
	return found;
}

bool warp_port_listed(u16 port)
{
	return warp_is_listed(&warp_ports, port);
}

bool warp_port_unseen(u16 port)
{
	return warp_is_listed(&warp_unseen, port);
}

/* For the module's exit, when nobody asks any more */
void warp_params_exit(void)
{
	kfree(rcu_dereference_protected(warp_ports, true));
	kfree(rcu_dereference_protected(warp_unseen, true));
}
