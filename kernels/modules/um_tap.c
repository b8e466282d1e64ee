// SPDX-License-Identifier: GPL-2.0-only
/*
 * um_tap: captures of the virtual host, written by the guest's kernel itself
 *
 * In a nutshell: for each packet that an interface sends or receives, the record
 * that `tcpdump --time-stamp-precision=nano -w` writes is put behind those before
 * it, and the file grows in large pieces.  No process wakes, no packet is cloned
 * or copied whole, nothing can be dropped.
 *
 * - Sent packets are seen where packet sockets see them, at the hand-over to the
 *   device, received ones before anything else looks at them.  The time is the
 *   clock's at that instant.
 * - Interfaces with an Ethernet header and without VLAN tags, as Warpbed's are.
 *
 * Parameters, written by agent/kernel_records.py in the namespace of the interface:
 *
 *   open	INTERFACE SNAP_BYTES PACKETS_AT_MOST PATH	0 packets: all; the host's path
 *   close	PATH		fails with the first error that a write had
 *   taps	(read) per open tap: its packets and its path
 */

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/hashtable.h>
#include <linux/if_arp.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/nsproxy.h>
#include <linux/skbuff.h>
#include <linux/tracepoint.h>
#include <net/net_namespace.h>

#include "um_out.h"

#define TAP_MAX_SNAP	262144U		/* tcpdump's own largest */
#define TAP_MAX_COPY	(64U << 10)	/* no packet is longer */

struct tap {
	struct hlist_node	node;
	struct net_device	*dev;
	struct um_out		out;
	u32			snap_bytes;
	u64			packets, at_most;
	char			path[];
};

struct pcap_header {
	u32	magic;
	u16	major, minor;
	s32	zone;
	u32	sigfigs, snap_bytes, link_type;
};

struct pcap_record {
	u32	seconds, nanoseconds, captured, length;
};

static DEFINE_HASHTABLE(taps, 6);
static DEFINE_MUTEX(taps_lock);
static struct tracepoint *tap_sent_point, *tap_received_point;

/* before: bytes of the packet in front of skb->data */
static void tap_packet(const struct sk_buff *skb, unsigned int before)
{
	struct pcap_record record;
	struct timespec64 now;
	struct tap *tap;
	u8 *room;

	hash_for_each_possible_rcu(taps, tap, node, (unsigned long)skb->dev) {
		if (tap->dev != skb->dev || (tap->at_most && tap->packets >= tap->at_most))
			continue;
		ktime_get_real_ts64(&now);
		record.seconds = now.tv_sec;
		record.nanoseconds = now.tv_nsec;
		record.length = skb->len + before;
		record.captured = min3(record.length, tap->snap_bytes, TAP_MAX_COPY);
		room = um_out_room(&tap->out, sizeof(record) + record.captured);
		if (!room)
			continue;
		memcpy(room, &record, sizeof(record));
		if (skb_copy_bits(skb, -(int)before, room + sizeof(record), record.captured))
			tap->out.error = -EFAULT;
		tap->packets++;
	}
}

static void tap_sent(void *unused, const struct sk_buff *skb, const struct net_device *dev)
{
	tap_packet(skb, 0);
}

static void tap_received(void *unused, struct sk_buff *skb)
{
	tap_packet(skb, skb->data - skb_mac_header(skb));
}

static int tap_open(const char *val, const struct kernel_param *kp)
{
	const struct pcap_header header = {
		.magic = 0xa1b23c4d, .major = 2, .minor = 4, .link_type = 1,
	};
	char name[IFNAMSIZ];
	unsigned long long at_most;
	struct pcap_header *own;
	struct net_device *dev;
	unsigned int snap;
	struct tap *tap;
	int at = 0, err;

	if (sscanf(val, "%15s %u %llu %n", name, &snap, &at_most, &at) < 3 || !at || !val[at] ||
	    !snap || snap > TAP_MAX_SNAP)
		return -EINVAL;
	tap = kzalloc(struct_size(tap, path, strlen(val + at) + 1), GFP_KERNEL);
	if (!tap)
		return -ENOMEM;
	memcpy(tap->path, val + at, strlen(val + at) + 1);
	strim(tap->path);
	tap->snap_bytes = snap;
	tap->at_most = at_most;

	dev = dev_get_by_name(current->nsproxy->net_ns, name);
	err = dev ? (dev->type == ARPHRD_ETHER ? 0 : -EOPNOTSUPP) : -ENODEV;
	if (!err)
		err = um_out_open(&tap->out, tap->path);
	if (err) {
		dev_put(dev);
		kfree(tap);
		return err;
	}
	tap->dev = dev;
	own = (struct pcap_header *)um_out_room(&tap->out, sizeof(*own));
	*own = header;
	own->snap_bytes = snap;
	mutex_lock(&taps_lock);
	hash_add_rcu(taps, &tap->node, (unsigned long)dev);
	mutex_unlock(&taps_lock);
	return 0;
}

static int tap_end(struct tap *tap)
{
	int err;

	hash_del_rcu(&tap->node);
	synchronize_net();
	err = um_out_close(&tap->out);
	dev_put(tap->dev);
	kfree(tap);
	return err;
}

static int tap_close(const char *val, const struct kernel_param *kp)
{
	struct hlist_node *next;
	int bucket, err = -ENOENT;
	struct tap *tap;

	mutex_lock(&taps_lock);
	hash_for_each_safe(taps, bucket, next, tap, node) {
		if (sysfs_streq(tap->path, val)) {
			err = tap_end(tap);
			break;
		}
	}
	mutex_unlock(&taps_lock);
	return err;
}

static int tap_list(char *buffer, const struct kernel_param *kp)
{
	struct tap *tap;
	int bucket, n = 0;

	mutex_lock(&taps_lock);
	hash_for_each(taps, bucket, tap, node)
		n += scnprintf(buffer + n, PAGE_SIZE - n, "%llu %s\n", tap->packets, tap->path);
	mutex_unlock(&taps_lock);
	return n;
}

static const struct kernel_param_ops tap_open_ops = { .set = tap_open };
static const struct kernel_param_ops tap_close_ops = { .set = tap_close };
static const struct kernel_param_ops tap_list_ops = { .get = tap_list };

module_param_cb(open, &tap_open_ops, NULL, 0200);
MODULE_PARM_DESC(open, "INTERFACE SNAP_BYTES PACKETS_AT_MOST PATH: begin a capture");
module_param_cb(close, &tap_close_ops, NULL, 0200);
MODULE_PARM_DESC(close, "PATH: end a capture");
module_param_cb(taps, &tap_list_ops, NULL, 0400);
MODULE_PARM_DESC(taps, "packets and path of each capture that is open");

/* The kernel does not export them, so they are looked for by their names. */
static void __init tap_find(struct tracepoint *point, void *unused)
{
	if (!strcmp(point->name, "net_dev_start_xmit"))
		tap_sent_point = point;
	if (!strcmp(point->name, "netif_receive_skb"))
		tap_received_point = point;
}

static int __init tap_init(void)
{
	int err;

	for_each_kernel_tracepoint(tap_find, NULL);
	if (!tap_sent_point || !tap_received_point)
		return -ENOENT;
	err = tracepoint_probe_register(tap_sent_point, tap_sent, NULL);
	if (err)
		return err;
	err = tracepoint_probe_register(tap_received_point, tap_received, NULL);
	if (err) {
		tracepoint_probe_unregister(tap_sent_point, tap_sent, NULL);
		tracepoint_synchronize_unregister();
	}
	return err;
}

static void __exit tap_exit(void)
{
	struct hlist_node *next;
	struct tap *tap;
	int bucket;

	tracepoint_probe_unregister(tap_sent_point, tap_sent, NULL);
	tracepoint_probe_unregister(tap_received_point, tap_received, NULL);
	tracepoint_synchronize_unregister();
	hash_for_each_safe(taps, bucket, next, tap, node)
		tap_end(tap);
}

module_init(tap_init);
module_exit(tap_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Captures of the virtual host, written by the guest's kernel itself");
