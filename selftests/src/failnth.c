// SPDX-License-Identifier: GPL-2.0
/*
 *	failnth N load FILE [PARAMETERS]
 *	failnth N unload MODULE
 *	failnth N run COMMAND...
 *
 * Loads or unloads a kernel module, or runs a command, while the N-th
 * allocation of that thread fails; which ones count, failslab and
 * fail_page_alloc in debugfs say. One line: how it ended ("ok", the name of the
 * error, "exit STATUS", "signal NUMBER"), and " all" if there were fewer than
 * N. Exit status 0, or 2 if it could not be tried.
 */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int open_or_end(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC);

	if (fd < 0)
		err(2, "%s", path);
	return fd;
}

static void set_nth(int fd, const char *n)
{
	if (pwrite(fd, n, strlen(n), 0) < 0)
		err(2, "fail-nth");
}

/* How many more would have had to be asked for. */
static int get_nth(int fd)
{
	char left[16] = "";

	if (pread(fd, left, sizeof(left) - 1, 0) < 0)
		err(2, "fail-nth");
	return atoi(left);
}

/* FILE, PARAMETERS or NULL. */
static int load(int nth, const char *n, char **arg)
{
	int fd = open_or_end(arg[0], O_RDONLY);

	set_nth(nth, n);
	errno = 0;
	syscall(SYS_finit_module, fd, arg[1] ? arg[1] : "", 0);
	return errno;
}

static int unload(int nth, const char *n, const char *name)
{
	set_nth(nth, n);
	errno = 0;
	syscall(SYS_delete_module, name, O_NONBLOCK);
	return errno;
}

/* Its output is that of the command, before ours. */
static int run(const char *n, char **command)
{
	char path[64];
	siginfo_t info;
	int nth, left;
	pid_t pid = fork();

	if (pid < 0)
		err(2, "fork");
	if (!pid) {
		nth = open_or_end("/proc/thread-self/fail-nth", O_RDWR);
		set_nth(nth, n);
		execvp(command[0], command);
		err(2, "%s", command[0]);
	}
	snprintf(path, sizeof(path), "/proc/%d/fail-nth", pid);
	nth = open_or_end(path, O_RDONLY);
	/* It can be asked until it is reaped. */
	if (waitid(P_PID, pid, &info, WEXITED | WNOWAIT))
		err(2, "waitid");
	left = get_nth(nth);
	waitpid(pid, NULL, 0);
	printf("%s %d", info.si_code == CLD_EXITED ? "exit" : "signal",
	       info.si_status);
	return left;
}

int main(int argc, char **argv)
{
	const char *what = argc > 3 ? argv[2] : "";
	int nth, error = -1, left;

	if (!strcmp(what, "run")) {
		left = run(argv[1], argv + 3);
	} else {
		nth = open_or_end("/proc/thread-self/fail-nth", O_RDWR);
		if (!strcmp(what, "load"))
			error = load(nth, argv[1], argv + 3);
		else if (!strcmp(what, "unload"))
			error = unload(nth, argv[1], argv[3]);
		else
			errx(2, "usage: %s N load|unload|run ...", argv[0]);
		left = get_nth(nth);
		set_nth(nth, "0");
		printf("%s", error ? strerrorname_np(error) : "ok");
	}
	puts(left ? " all" : "");
	return 0;
}
