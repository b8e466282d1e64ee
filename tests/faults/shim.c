// SPDX-License-Identifier: Apache-2.0
/*
 * Let the n-th call that touches a file below a folder fail. Preloaded (LD_PRELOAD); see loop.py.
 *
 * FAULT_FOLDER: the folder, absolute. FAULT_STATE: a file of five 64-bit numbers, shared by all processes: calls so
 * far, which one fails (0: none), errno (0: a short read or write, and calls that cannot be short do not count),
 * whether all from there on fail too, faults so far. FAULT_SOCKETS: what is sent and received on
 * sockets counts as well; a connection is reset then (ECONNRESET), as no other error comes from there.
 *
 * While calls may fail, sleeps take a twentieth of their time: what waits and tries again does so as often as ever. Clocks
 * stay as they are, so whoever waits until a moment comes tries more often.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define SLEEP_SHARE 20

enum { CALLS, TARGET, ERROR, STAYS, FAULTS, NUMBERS };

static volatile long long *state;
static const char *folder;
static size_t folder_length;
static int with_sockets;

#define NEXT(name, type) static type next; if (!next) next = (type)dlsym(RTLD_NEXT, name)

static void *raw_mmap(size_t length, int fd)
{
	void *(*map)(void *, size_t, int, int, int, off_t) = dlsym(RTLD_NEXT, "mmap");

	return map(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
}

__attribute__((constructor)) static void begin(void)
{
	const char *file = getenv("FAULT_STATE");
	int (*plain_open)(const char *, int, ...) = dlsym(RTLD_NEXT, "open");
	int fd;

	folder = getenv("FAULT_FOLDER");
	if (!file || !folder)
		return;
	folder_length = strlen(folder);
	with_sockets = getenv("FAULT_SOCKETS") != NULL;
	fd = plain_open(file, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return;
	state = raw_mmap(NUMBERS * sizeof(*state), fd);
	if (state == MAP_FAILED)
		state = NULL;
	close(fd);
}

static int is_below(const char *path)
{
	return strncmp(path, folder, folder_length) == 0 && (path[folder_length] == '/' || !path[folder_length]);
}

static int fd_below(int fd)
{
	char link[64], path[PATH_MAX];
	ssize_t length;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	length = readlink(link, path, sizeof(path) - 1);
	if (length <= 0)
		return 0;
	path[length] = 0;
	return is_below(path);
}

static int at_below(int fd, const char *path)
{
	if (path[0] == '/')
		return is_below(path);
	if (fd == AT_FDCWD) {
		char here[PATH_MAX];

		return getcwd(here, sizeof(here)) && is_below(here);
	}
	return fd_below(fd);
}

/* Whether this call is to fail or to be short; errno is set then. */
static int fails_or_halves(int is_below_folder)
{
	long long number;

	if (!state || !is_below_folder || !state[TARGET])
		return 0;
	number = __sync_add_and_fetch(&state[CALLS], 1);
	if (number != state[TARGET] && !(state[STAYS] && number > state[TARGET]))
		return 0;
	__sync_add_and_fetch(&state[FAULTS], 1);
	errno = (int)state[ERROR];
	return 1;
}

static int fails(int is_below_folder)
{
	return state && state[ERROR] && fails_or_halves(is_below_folder);
}

#define FAIL_OR_HALF(call_half) do { if (errno) return -1; return call_half; } while (0)

typedef ssize_t (*write_type)(int, const void *, size_t);
ssize_t write(int fd, const void *data, size_t length)
{
	NEXT("write", write_type);
	if (state && state[TARGET] && fails_or_halves(fd_below(fd)))
		FAIL_OR_HALF(next(fd, data, length > 1 ? length / 2 : length));
	return next(fd, data, length);
}

typedef ssize_t (*read_type)(int, void *, size_t);
ssize_t read(int fd, void *data, size_t length)
{
	NEXT("read", read_type);
	if (state && state[TARGET] && fails_or_halves(fd_below(fd)))
		FAIL_OR_HALF(next(fd, data, length > 1 ? length / 2 : length));
	return next(fd, data, length);
}

typedef ssize_t (*pread_type)(int, void *, size_t, off_t);
ssize_t pread(int fd, void *data, size_t length, off_t at)
{
	NEXT("pread", pread_type);
	if (state && state[TARGET] && fails_or_halves(fd_below(fd)))
		FAIL_OR_HALF(next(fd, data, length > 1 ? length / 2 : length, at));
	return next(fd, data, length, at);
}
ssize_t pread64(int fd, void *data, size_t length, off_t at) { return pread(fd, data, length, at); }

typedef ssize_t (*writev_type)(int, const struct iovec *, int);
ssize_t writev(int fd, const struct iovec *parts, int count)
{
	NEXT("writev", writev_type);
	if (state && state[TARGET] && fails_or_halves(fd_below(fd)))
		FAIL_OR_HALF(next(fd, parts, count > 1 ? count / 2 : count));
	return next(fd, parts, count);
}

/* A connection that is reset stays so, for both sides. */
#define RESET_OR_HALF(call_half) do { \
	if (!errno) \
		return call_half; \
	shutdown(fd, SHUT_RDWR); \
	errno = ECONNRESET; \
	return -1; \
} while (0)

typedef ssize_t (*send_type)(int, const void *, size_t, int);
ssize_t send(int fd, const void *data, size_t length, int flags)
{
	NEXT("send", send_type);
	if (state && state[TARGET] && fails_or_halves(with_sockets))
		RESET_OR_HALF(next(fd, data, length > 1 ? length / 2 : length, flags));
	return next(fd, data, length, flags);
}

typedef ssize_t (*recv_type)(int, void *, size_t, int);
ssize_t recv(int fd, void *data, size_t length, int flags)
{
	NEXT("recv", recv_type);
	if (state && state[TARGET] && fails_or_halves(with_sockets))
		RESET_OR_HALF(next(fd, data, length > 1 ? length / 2 : length, flags));
	return next(fd, data, length, flags);
}

typedef ssize_t (*copy_type)(int, off_t *, int, off_t *, size_t, unsigned);
ssize_t copy_file_range(int in, off_t *in_at, int out, off_t *out_at, size_t length, unsigned flags)
{
	NEXT("copy_file_range", copy_type);
	if (state && state[TARGET] && fails(fd_below(out)))
		return -1;
	return next(in, in_at, out, out_at, length, flags);
}

typedef ssize_t (*sendfile_type)(int, int, off_t *, size_t);
ssize_t sendfile64(int out, int in, off_t *at, size_t length)
{
	NEXT("sendfile64", sendfile_type);
	if (state && state[TARGET] && fails(fd_below(out)))
		return -1;
	return next(out, in, at, length);
}
ssize_t sendfile(int out, int in, off_t *at, size_t length) { return sendfile64(out, in, at, length); }

/* Calls without a length. */
#define ON_FD(name) \
	typedef int (*name##_type)(int); \
	int name(int fd) \
	{ \
		NEXT(#name, name##_type); \
		if (state && state[TARGET] && fails(fd_below(fd))) \
			return -1; \
		return next(fd); \
	}
ON_FD(fsync)
ON_FD(fdatasync)

typedef int (*ftruncate_type)(int, off_t);
int ftruncate(int fd, off_t length)
{
	NEXT("ftruncate", ftruncate_type);
	if (state && state[TARGET] && fails(fd_below(fd)))
		return -1;
	return next(fd, length);
}
int ftruncate64(int fd, off_t length) { return ftruncate(fd, length); }

typedef int (*rename_type)(const char *, const char *);
int rename(const char *from, const char *to)
{
	NEXT("rename", rename_type);
	if (fails(at_below(AT_FDCWD, to)))
		return -1;
	return next(from, to);
}

typedef int (*renameat_type)(int, const char *, int, const char *);
int renameat(int from_fd, const char *from, int to_fd, const char *to)
{
	NEXT("renameat", renameat_type);
	if (fails(at_below(to_fd, to)))
		return -1;
	return next(from_fd, from, to_fd, to);
}

typedef int (*renameat2_type)(int, const char *, int, const char *, unsigned);
int renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned flags)
{
	NEXT("renameat2", renameat2_type);
	if (fails(at_below(to_fd, to)))
		return -1;
	return next(from_fd, from, to_fd, to, flags);
}

#define ON_PATH(name) \
	typedef int (*name##_type)(const char *); \
	int name(const char *path) \
	{ \
		NEXT(#name, name##_type); \
		if (fails(at_below(AT_FDCWD, path))) \
			return -1; \
		return next(path); \
	}
ON_PATH(unlink)
ON_PATH(rmdir)

typedef int (*unlinkat_type)(int, const char *, int);
int unlinkat(int fd, const char *path, int flags)
{
	NEXT("unlinkat", unlinkat_type);
	if (fails(at_below(fd, path)))
		return -1;
	return next(fd, path, flags);
}

typedef int (*mkdir_type)(const char *, mode_t);
int mkdir(const char *path, mode_t mode)
{
	NEXT("mkdir", mkdir_type);
	if (fails(at_below(AT_FDCWD, path)))
		return -1;
	return next(path, mode);
}

typedef int (*openat_type)(int, const char *, int, ...);
int openat(int fd, const char *path, int flags, ...)
{
	mode_t mode = 0;

	NEXT("openat", openat_type);
	if (flags & (O_CREAT | O_TMPFILE)) {
		va_list more;

		va_start(more, flags);
		mode = va_arg(more, mode_t);
		va_end(more);
	}
	if (fails(at_below(fd, path)))
		return -1;
	return next(fd, path, flags, mode);
}

typedef int (*sleep_type)(clockid_t, int, const struct timespec *, struct timespec *);
int clock_nanosleep(clockid_t clock, int flags, const struct timespec *wanted, struct timespec *rest)
{
	struct timespec until = *wanted;
	long long now_ns, left_ns;

	NEXT("clock_nanosleep", sleep_type);
	if (!state || !state[TARGET])
		return next(clock, flags, wanted, rest);
	if (flags & TIMER_ABSTIME) { /* as Python sleeps */
		clock_gettime(clock, &until);
		now_ns = until.tv_sec * 1000000000LL + until.tv_nsec;
	} else {
		now_ns = 0;
	}
	left_ns = wanted->tv_sec * 1000000000LL + wanted->tv_nsec - now_ns;
	if (left_ns > 0)
		now_ns += left_ns / SLEEP_SHARE;
	until.tv_sec = now_ns / 1000000000LL;
	until.tv_nsec = now_ns % 1000000000LL;
	return next(clock, flags, &until, rest);
}

#include "opens.h"

typedef void *(*mmap_type)(void *, size_t, int, int, int, off_t);
void *mmap(void *at, size_t length, int protection, int flags, int fd, off_t offset)
{
	NEXT("mmap", mmap_type);
	if (fd >= 0 && state && state[TARGET] && fails(fd_below(fd)))
		return MAP_FAILED;
	return next(at, length, protection, flags, fd, offset);
}
void *mmap64(void *at, size_t length, int protection, int flags, int fd, off_t offset)
{
	return mmap(at, length, protection, flags, fd, offset);
}
