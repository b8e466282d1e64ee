// SPDX-License-Identifier: Apache-2.0
/*
 * A Python that starts at once: the interpreter of Ansible's modules on the tests' lab machine.
 *
 * A program on standard input goes to the server of warm_python.py, a Python that has imported what such programs import; it runs
 * in a fork of that, with this process's files, folder, mask of permissions and environment, and this process ends as it does.
 * Anything else, or without a server, is Python itself.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define PYTHON "/usr/bin/python3"
/* SERVER and MOST_BYTES are warm_python.py's; the compiler's command line has them */

extern char **environ;

/* Working folder, mask and environment, each ended by a zero byte; how many bytes, 0 if they are too many. */
static size_t surroundings(char *text)
{
	mode_t mask = umask(0);
	size_t length;

	umask(mask);
	if (!getcwd(text, MOST_BYTES / 2))
		return 0;
	length = strlen(text) + 1;
	for (int bit = 8; bit >= 0; bit--)
		text[length++] = mask >> bit & 1 ? '1' : '0';
	text[length++] = 0;
	for (char **one = environ; *one; one++) {
		size_t more = strlen(*one) + 1;

		if (length + more > MOST_BYTES)
			return 0;
		memcpy(text + length, *one, more);
		length += more;
	}
	return length;
}

/* The status of the program in the server's fork; -1 if it was not started. */
static int run_there(void)
{
	static char text[MOST_BYTES];
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(3 * sizeof(int))];
	} control = {0};
	int files[] = {0, 1, 2};
	struct sockaddr_un server = {.sun_family = AF_UNIX, .sun_path = SERVER};
	struct iovec piece = {.iov_base = text, .iov_len = surroundings(text)};
	struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	int link = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	unsigned char status;

	control.head.cmsg_level = SOL_SOCKET;
	control.head.cmsg_type = SCM_RIGHTS;
	control.head.cmsg_len = CMSG_LEN(sizeof(files));
	memcpy(CMSG_DATA(&control.head), files, sizeof(files));
	if (link < 0 || !piece.iov_len || connect(link, (struct sockaddr *)&server, sizeof(server)) ||
	    sendmsg(link, &message, MSG_NOSIGNAL) < 0)
		return -1;
	return read(link, &status, 1) == 1 ? status : 255;
}

int main(int argc, char **argv)
{
	int status = argc > 1 ? -1 : run_there();

	if (status >= 0)
		return status;
	argv[0] = PYTHON;
	execv(PYTHON, argv);
	return 127;
}
