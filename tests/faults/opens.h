// SPDX-License-Identifier: Apache-2.0
/* The other ways to open a file, as an openat() that the including library has. */

#define OPENED_AT(name, parameters, fd) \
	int name parameters \
	{ \
		mode_t mode = 0; \
		if (flags & (O_CREAT | O_TMPFILE)) { \
			va_list more; \
			va_start(more, flags); \
			mode = va_arg(more, mode_t); \
			va_end(more); \
		} \
		return openat(fd, path, flags, mode); \
	}
OPENED_AT(open, (const char *path, int flags, ...), AT_FDCWD)
OPENED_AT(open64, (const char *path, int flags, ...), AT_FDCWD)
OPENED_AT(openat64, (int fd, const char *path, int flags, ...), fd)
