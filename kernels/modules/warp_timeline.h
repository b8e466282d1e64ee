/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Values that change at given times: steps of u64 from user space
 *
 * A timeline is a list of (ns since the anchor, value), ascending, the first at
 * 0.  With a period it starts over after that time, without one the last value
 * stays.  Before the anchor the first value holds.
 */
#ifndef WARPBED_WARP_TIMELINE_H
#define WARPBED_WARP_TIMELINE_H

#include <linux/math64.h>
#include <linux/mm.h>
#include <net/netlink.h>
#include <net/sch_generic.h>

#define WARP_MAX_STEPS	(4U << 20)
#define WARP_FOREVER	U64_MAX

struct warp_step {
	u64	at_ns;
	u64	value;
};

struct warp_timeline {
	struct warp_step	*step;
	u32			n;
	u64			anchor_ns;	/* CLOCK_MONOTONIC */
	u64			period_ns;	/* 0: once */
};

/* Put the steps of an attribute behind those that are there; *fresh is to replace t->step. */
static inline int warp_timeline_append(const struct warp_timeline *t, const struct nlattr *attr,
				       struct warp_step **fresh)
{
	u32 more = nla_len(attr) / sizeof(struct warp_step), i;
	struct warp_step *all;

	if (!more || nla_len(attr) % sizeof(struct warp_step) || t->n + more > WARP_MAX_STEPS)
		return -EINVAL;
	all = kvmalloc_array(t->n + more, sizeof(*all), GFP_KERNEL);
	if (!all)
		return -ENOMEM;
	if (t->n)
		memcpy(all, t->step, t->n * sizeof(*all));
	nla_memcpy(all + t->n, attr, nla_len(attr));
	for (i = t->n; i < t->n + more; i++) {
		if (i ? all[i].at_ns <= all[i - 1].at_ns : all[0].at_ns != 0) {
			kvfree(all);
			return -EINVAL;
		}
	}
	*fresh = all;
	return more;
}

/* Change what is given; the qdisc reads the timeline under its tree's lock. */
static inline int warp_timeline_change(struct Qdisc *sch, struct warp_timeline *t,
				       const struct nlattr *anchor, const struct nlattr *period,
				       const struct nlattr *steps, struct netlink_ext_ack *extack)
{
	struct warp_step *fresh = NULL;
	int more = steps ? warp_timeline_append(t, steps, &fresh) : 0;

	if (more < 0) {
		NL_SET_ERR_MSG_MOD(extack, "steps must ascend from 0");
		return more;
	}
	sch_tree_lock(sch);
	if (fresh)
		swap(t->step, fresh);
	t->n += more;
	if (period)
		t->period_ns = nla_get_u64(period);
	if (anchor)
		t->anchor_ns = nla_get_u64(anchor);
	sch_tree_unlock(sch);
	kvfree(fresh);
	return 0;
}

/* The value at a time, and until when it holds. */
static inline u64 warp_timeline_at(const struct warp_timeline *t, u64 now_ns, u64 *until_ns)
{
	u64 since, base = t->anchor_ns;
	u32 low = 0, high = t->n;

	if (now_ns < t->anchor_ns) {
		*until_ns = t->anchor_ns;
		return t->step[0].value;
	}
	since = now_ns - t->anchor_ns;
	if (t->period_ns) {
		u64 rest;

		div64_u64_rem(since, t->period_ns, &rest);
		base = now_ns - rest;
		since = rest;
	}
	while (high - low > 1) {
		u32 middle = low + (high - low) / 2;

		if (t->step[middle].at_ns <= since)
			low = middle;
		else
			high = middle;
	}
	if (low + 1 < t->n && (!t->period_ns || t->step[low + 1].at_ns < t->period_ns))
		*until_ns = base + t->step[low + 1].at_ns;
	else
		*until_ns = t->period_ns ? base + t->period_ns : WARP_FOREVER;
	return t->step[low].value;
}

#endif /* WARPBED_WARP_TIMELINE_H */
