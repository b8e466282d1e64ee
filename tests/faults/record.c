// SPDX-License-Identifier: Apache-2.0
/*
 * Write down what a command does to the names of files below a folder, and what it makes sure of (fsync). Preloaded
 * (LD_PRELOAD); see power.py.
 *
 * RECORD_FOLDER: the folder, absolute. RECORD_LOG: a file to append to, one record per call that succeeded: its name and up to two
 * paths, each ended by a NUL, then a newline's place taken by another NUL. RECORD_COPIES: a folder for a copy of each file that was
 * synced, as it was then, by the record's number.
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
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static const char *folder, *log_file, *copies;
static size_t folder_length;

#define NEXT(name, type) static type next; if (!next) next = (type)dlsym(RTLD_NEXT, name)

typedef int (*open_type)(const char *, int, ...);
static open_type plain_open;

__attribute__((constructor)) static void begin(void)
{
	plain_open = (open_type)dlsym(RTLD_NEXT, "open");
	folder = getenv("RECORD_FOLDER");
	log_file = getenv("RECORD_LOG");
	copies = getenv("RECORD_COPIES");
	if (folder)
		folder_length = strlen(folder);
}

static int is_below(const char *path)
{
	return folder && log_file && strncmp(path, folder, folder_length) == 0 &&
	       (path[folder_length] == '/' || !path[folder_length]);
}

/* The absolute path of a call's name; 0 where it is not below the folder. */
static int whole(int fd, const char *path, char *out)
{
	char link[64];
	ssize_t length;

	if (!folder || !log_file)
		return 0;
	if (path[0] == '/') {
		snprintf(out, PATH_MAX, "%s", path);
		return is_below(out);
	}
	if (fd == AT_FDCWD) {
		if (!getcwd(out, PATH_MAX))
			return 0;
		length = (ssize_t)strlen(out);
	} else {
		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		length = readlink(link, out, PATH_MAX - 1);
		if (length <= 0)
			return 0;
		out[length] = 0;
	}
	if (path[0])
		snprintf(out + length, PATH_MAX - length, "/%s", path);
	return is_below(out);
}

/* Append a record; returns its number, the place where it begins. */
static long note(const char *what, const char *one, const char *two)
{
	char record[3 * PATH_MAX];
	int length = snprintf(record, sizeof(record), "%s%c%s%c%s%c", what, 0, one, 0, two ? two : "", 0);
	int error = errno, fd = plain_open(log_file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	long at;

	if (fd < 0)
		abort();
	flock(fd, LOCK_EX);
	at = lseek(fd, 0, SEEK_END);
	if (syscall(1 /* write */, fd, record, (size_t)length) != length)
		abort();
	close(fd);
	errno = error;
	return at;
}

static void copy(int from, long number)
{
	char name[PATH_MAX], block[1 << 16];
	int error = errno, to;
	off_t at = 0;
	ssize_t count;
	int own;

	snprintf(name, sizeof(name), "/proc/self/fd/%d", from);
	own = plain_open(name, O_RDONLY | O_CLOEXEC);
	snprintf(name, sizeof(name), "%s/%ld", copies, number);
	to = plain_open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (own < 0 || to < 0)
		abort();
	while ((count = pread(own, block, sizeof(block), at)) > 0) {
		if (syscall(1 /* write */, to, block, (size_t)count) != count)
			abort();
		at += count;
	}
	close(own);
	close(to);
	errno = error;
}

typedef int (*fd_type)(int);
static int synced(int fd, fd_type next)
{
	int result = next(fd);
	struct stat status;
	char path[PATH_MAX];

	if (result == 0 && whole(fd, "", path) && fstat(fd, &status) == 0) {
		if (S_ISDIR(status.st_mode))
			note("syncdir", path, NULL);
		else
			copy(fd, note("sync", path, NULL));
	}
	return result;
}

int fsync(int fd) { NEXT("fsync", fd_type); return synced(fd, next); }
int fdatasync(int fd) { NEXT("fdatasync", fd_type); return synced(fd, next); }

static int moved(int result, const char *what, int from_fd, const char *from, int to_fd, const char *to)
{
	char one[PATH_MAX], two[PATH_MAX];
	int is_one, is_two;

	if (result)
		return result;
	is_one = whole(from_fd, from, one);
	is_two = whole(to_fd, to, two);
	if (is_one || is_two)
		note(what, one, two);
	return result;
}

typedef int (*rename_type)(const char *, const char *);
int rename(const char *from, const char *to)
{
	NEXT("rename", rename_type);
	return moved(next(from, to), "rename", AT_FDCWD, from, AT_FDCWD, to);
}

typedef int (*renameat_type)(int, const char *, int, const char *);
int renameat(int from_fd, const char *from, int to_fd, const char *to)
{
	NEXT("renameat", renameat_type);
	return moved(next(from_fd, from, to_fd, to), "rename", from_fd, from, to_fd, to);
}

typedef int (*renameat2_type)(int, const char *, int, const char *, unsigned);
int renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned flags)
{
	NEXT("renameat2", renameat2_type);
	return moved(next(from_fd, from, to_fd, to, flags), flags & 2 ? "exchange" : "rename", from_fd, from, to_fd, to);
}

static int named(int result, const char *what, int fd, const char *path)
{
	char full[PATH_MAX];

	if (result == 0 && whole(fd, path, full))
		note(what, full, NULL);
	return result;
}

typedef int (*path_type)(const char *);
int unlink(const char *path) { NEXT("unlink", path_type); return named(next(path), "unlink", AT_FDCWD, path); }
int rmdir(const char *path) { NEXT("rmdir", path_type); return named(next(path), "unlink", AT_FDCWD, path); }

typedef int (*unlinkat_type)(int, const char *, int);
int unlinkat(int fd, const char *path, int flags)
{
	NEXT("unlinkat", unlinkat_type);
	return named(next(fd, path, flags), "unlink", fd, path);
}

typedef int (*mkdir_type)(const char *, mode_t);
int mkdir(const char *path, mode_t mode)
{
	NEXT("mkdir", mkdir_type);
	return named(next(path, mode), "mkdir", AT_FDCWD, path);
}

typedef int (*mkdirat_type)(int, const char *, mode_t);
int mkdirat(int fd, const char *path, mode_t mode)
{
	NEXT("mkdirat", mkdirat_type);
	return named(next(fd, path, mode), "mkdir", fd, path);
}

typedef int (*openat_type)(int, const char *, int, ...);
int openat(int fd, const char *path, int flags, ...)
{
	char full[PATH_MAX];
	mode_t mode = 0;
	int result, was_there = 1;

	NEXT("openat", openat_type);
	if (flags & (O_CREAT | O_TMPFILE)) {
		va_list more;

		va_start(more, flags);
		mode = va_arg(more, mode_t);
		va_end(more);
	}
	if (flags & O_CREAT)
		was_there = faccessat(fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
	result = next(fd, path, flags, mode);
	if (result >= 0 && (!was_there || (flags & O_TRUNC)) && whole(fd, path, full))
		note(was_there ? "truncate" : "create", full, NULL);
	return result;
}

#include "opens.h"

typedef FILE *(*fopen_type)(const char *, const char *);
FILE *fopen(const char *path, const char *mode)
{
	char full[PATH_MAX];
	int was_there = access(path, F_OK) == 0;
	FILE *result;

	NEXT("fopen", fopen_type);
	result = next(path, mode);
	if (result && mode[0] != 'r' && whole(AT_FDCWD, path, full) && (!was_there || mode[0] == 'w'))
		note(was_there ? "truncate" : "create", full, NULL);
	return result;
}
