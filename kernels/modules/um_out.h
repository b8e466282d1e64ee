/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A file of the machine below the guest, written in large pieces
 *
 * User-Mode Linux can write to a file of its host by itself, from any context: no
 * process wakes, nothing goes through the guest's page cache, and no virtual time
 * passes.  The guest's process can write only to its run's folder (hosts/virtual/cage.py).
 */
#ifndef WARPBED_UM_OUT_H
#define WARPBED_UM_OUT_H

#include <linux/err.h>
#include <linux/errno.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <os.h>

#define UM_OUT_BYTES	(256U << 10)	/* gathered before it is written */

struct um_out {
	u8	*buffer;
	u32	used;
	int	fd;
	int	error;		/* the first one; nothing is written after it */
};

static int um_out_open(struct um_out *out, const char *host_path)
{
	struct openflags flags = of_cloexec(of_trunc(of_create(of_write(OPENFLAGS()))));

	out->buffer = kmalloc(UM_OUT_BYTES, GFP_KERNEL);
	if (!out->buffer)
		return -ENOMEM;
	out->fd = os_open_file(host_path, flags, 0644);
	if (out->fd >= 0)
		return 0;
	kfree(out->buffer);
	return out->fd;
}

static void um_out_flush(struct um_out *out)
{
	u32 done = 0;

	while (!out->error && done < out->used) {
		int n = os_write_file(out->fd, out->buffer + done, out->used - done);

		if (n > 0)
			done += n;
		else if (n != -EINTR)
			out->error = n ? n : -ENOSPC;
	}
	out->used = 0;
}

/* Room for so many bytes, which must be filled; NULL where they can be written no more. */
static u8 *um_out_room(struct um_out *out, u32 bytes)
{
	u8 *room;

	if (out->used + bytes > UM_OUT_BYTES)
		um_out_flush(out);
	if (out->error || WARN_ON_ONCE(bytes > UM_OUT_BYTES))
		return NULL;
	room = out->buffer + out->used;
	out->used += bytes;
	return room;
}

static inline void um_out_put(struct um_out *out, const void *data, u32 bytes)
{
	while (bytes) {
		u32 n = min(bytes, UM_OUT_BYTES);
		u8 *room = um_out_room(out, n);

		if (!room)
			return;
		memcpy(room, data, n);
		data += n;
		bytes -= n;
	}
}

/* Returns the first error that a write had. */
static int um_out_close(struct um_out *out)
{
	um_out_flush(out);
	os_close_file(out->fd);
	kfree(out->buffer);
	return out->error;
}

#endif /* WARPBED_UM_OUT_H */
