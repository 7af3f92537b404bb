// SPDX-License-Identifier: GPL-2.0
/*
 * Runs commands in a guest over vsock, from the host.
 *
 *   agent serve                 in the guest, usually as process 1
 *   agent run CID COMMAND...    run COMMAND by sh -c in the guest: standard
 *                               input (when it is not a terminal), output and
 *                               errors are passed, the status is COMMAND's
 *   agent wait CID SECONDS [PID]  until the guest answers; gives up when
 *                               process PID (its VMM) is gone
 *   agent qmp SOCKET JSON       one QMP command to a VMM, prints the reply
 *
 * Called as `guest N COMMAND...` it is `agent run` for the lab's guest N.
 *
 * On the stream both sides send frames: type, length (32 bit, little endian
 * like both ends), payload.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <linux/vm_sockets.h>

#define PORT		9
#define FIRST_CID	3
#define CHUNK		16384
#define COMMAND_MAX	(128 * 1024)
#define STATUS_LOST	255	/* like ssh: the connection, not the command */

enum frame_type {
	FRAME_COMMAND	= 'C',	/* to the guest */
	FRAME_PROBE	= 'P',
	FRAME_STDIN	= 'I',	/* empty: end of file */
	FRAME_STDOUT	= 'O',	/* to the host */
	FRAME_STDERR	= 'E',
	FRAME_EXIT	= 'X',
};

struct frame_header {
	uint8_t type;
	uint32_t length;
} __attribute__((packed));

static void die(int status, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vfprintf(stderr, format, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(status);
}

static int write_all(int fd, const void *data, size_t size)
{
	const char *p = data;

	while (size) {
		ssize_t n = write(fd, p, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN) {
			struct pollfd pfd = { .fd = fd, .events = POLLOUT };

			poll(&pfd, 1, -1);
			continue;
		}
		if (n <= 0)
			return -1;
		p += n;
		size -= n;
	}
	return 0;
}

static int read_all(int fd, void *data, size_t size)
{
	char *p = data;

	while (size) {
		ssize_t n = read(fd, p, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -1;
		p += n;
		size -= n;
	}
	return 0;
}

static int send_frame(int fd, uint8_t type, const void *data, uint32_t length)
{
	char buf[sizeof(struct frame_header) + CHUNK];
	struct frame_header h = { .type = type, .length = length };

	/* One write per frame: a write is a message to the other machine. */
	if (length <= CHUNK) {
		memcpy(buf, &h, sizeof(h));
		if (length)
			memcpy(buf + sizeof(h), data, length);
		return write_all(fd, buf, sizeof(h) + length);
	}
	if (write_all(fd, &h, sizeof(h)))
		return -1;
	return write_all(fd, data, length);
}

static int set_nonblock(int fd)
{
	return fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

static int open_pidfd(pid_t pid)
{
	return syscall(SYS_pidfd_open, pid, 0);
}

/* ---- guest ---- */

struct session {
	int sock;
	int in, out, err;	/* our ends of the command's pipes, -1: closed */
	int pidfd;
	pid_t pid;
	char pending[CHUNK];	/* input that the command has not taken yet */
	size_t have, sent;
	bool input_ended;
};

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void exec_command(const char *command)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	setsid();
	/* The agent is in a hurry; what it runs is ordinary work. */
	setpriority(PRIO_PROCESS, 0, 0);
	execl("/bin/sh", "sh", "-c", command, (char *)NULL);
	fprintf(stderr, "agent: /bin/sh: %s\n", strerror(errno));
	_exit(127);
}

static int start_command(struct session *s, const char *command)
{
	int in[2], out[2], err[2];

	if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC) ||
	    pipe2(err, O_CLOEXEC))
		return -1;
	s->pid = fork();
	if (s->pid < 0)
		return -1;
	if (!s->pid) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		dup2(err[1], 2);
		exec_command(command);
	}
	close(in[0]);
	close(out[1]);
	close(err[1]);
	s->in = in[1];
	s->out = out[0];
	s->err = err[0];
	set_nonblock(s->in);
	set_nonblock(s->out);
	set_nonblock(s->err);
	s->pidfd = open_pidfd(s->pid);
	return s->pidfd < 0 ? -1 : 0;
}

/* Returns false when the host is gone. */
static bool forward_output(struct session *s, int *fd, uint8_t type)
{
	char buf[CHUNK];
	ssize_t n = read(*fd, buf, sizeof(buf));

	if (n > 0)
		return !send_frame(s->sock, type, buf, n);
	if (n == 0 || (errno != EAGAIN && errno != EINTR))
		close_fd(fd);
	return true;
}

static bool drain_output(struct session *s, int *fd, uint8_t type)
{
	char buf[CHUNK];
	ssize_t n;

	/*
	 * Only what is there: a background process of the command may hold the
	 * pipe open for ever.
	 */
	while (*fd >= 0 && (n = read(*fd, buf, sizeof(buf))) > 0)
		if (send_frame(s->sock, type, buf, n))
			return false;
	return true;
}

static bool receive_input(struct session *s)
{
	struct frame_header h;

	if (read_all(s->sock, &h, sizeof(h)) || h.type != FRAME_STDIN ||
	    h.length > sizeof(s->pending))
		return false;
	if (!h.length) {
		s->input_ended = true;
		return true;
	}
	if (read_all(s->sock, s->pending, h.length))
		return false;
	s->have = h.length;
	s->sent = 0;
	return true;
}

static void feed_input(struct session *s)
{
	if (s->in >= 0 && s->sent < s->have) {
		ssize_t n = write(s->in, s->pending + s->sent,
				  s->have - s->sent);

		if (n > 0)
			s->sent += n;
		else if (errno != EAGAIN && errno != EINTR)
			close_fd(&s->in);
	}
	if (s->in < 0)		/* nobody reads: throw it away */
		s->sent = s->have;
	if (s->sent == s->have && s->input_ended)
		close_fd(&s->in);
}

static void serve_command(struct session *s)
{
	int32_t status;
	int wstatus;

	for (;;) {
		bool idle = s->sent == s->have;
		struct pollfd p[] = {
			{ .fd = s->pidfd, .events = POLLIN },
			{ .fd = s->out, .events = POLLIN },
			{ .fd = s->err, .events = POLLIN },
			{ .fd = idle ? -1 : s->in, .events = POLLOUT },
			/* No more input before the last was taken. */
			{ .fd = s->sock, .events = idle ? POLLIN : 0 },
		};

		if (poll(p, 5, -1) < 0 && errno != EINTR)
			break;
		if (p[1].revents && !forward_output(s, &s->out, FRAME_STDOUT))
			break;
		if (p[2].revents && !forward_output(s, &s->err, FRAME_STDERR))
			break;
		if (p[3].revents)
			feed_input(s);
		if (p[4].revents) {
			if (!(p[4].revents & POLLIN) || !receive_input(s))
				break;
			feed_input(s);
		}
		if (!p[0].revents)
			continue;

		if (waitpid(s->pid, &wstatus, 0) != s->pid)
			break;
		if (!drain_output(s, &s->out, FRAME_STDOUT) ||
		    !drain_output(s, &s->err, FRAME_STDERR))
			return;
		status = WIFSIGNALED(wstatus) ? 128 + WTERMSIG(wstatus) :
						WEXITSTATUS(wstatus);
		send_frame(s->sock, FRAME_EXIT, &status, sizeof(status));
		return;
	}
	/* The host gave up, so what it asked for ends. */
	kill(-s->pid, SIGKILL);
}

static void serve_connection(int sock)
{
	struct session s = { .sock = sock, .in = -1, .out = -1, .err = -1 };
	int32_t status = 0;
	struct frame_header h;
	char *command;

	if (read_all(sock, &h, sizeof(h)) || h.length > COMMAND_MAX)
		return;
	if (h.type == FRAME_PROBE) {
		send_frame(sock, FRAME_EXIT, &status, sizeof(status));
		return;
	}
	if (h.type != FRAME_COMMAND)
		return;
	command = calloc(1, h.length + 1);
	if (!command || read_all(sock, command, h.length))
		return;
	if (start_command(&s, command)) {
		char text[80];
		int n = snprintf(text, sizeof(text), "agent: %s\n",
				 strerror(errno));

		status = STATUS_LOST;
		send_frame(sock, FRAME_STDERR, text, n);
		send_frame(sock, FRAME_EXIT, &status, sizeof(status));
		return;
	}
	serve_command(&s);
}

/*
 * The host is to close first. A kernel that has closed waits eight seconds for
 * the other one to agree. If that says then that it closes, too, and both are
 * dealt with at once, the socket is never freed (Linux 6.12:
 * virtio_transport_cancel_close_work() finds that
 * virtio_transport_close_timeout() runs, which finds SOCK_DONE).
 */
static void wait_for_host(int sock)
{
	struct pollfd p = { .fd = sock, .events = POLLIN };
	char buf[256];

	while (poll(&p, 1, 60000) > 0 && read(sock, buf, sizeof(buf)) > 0)
		;
}

static int serve(void)
{
	struct sockaddr_vm addr = {
		.svm_family = AF_VSOCK,
		.svm_cid = VMADDR_CID_ANY,
		.svm_port = PORT,
	};
	sigset_t chld, old;
	int lsock, sfd;

	/* The commands of a measurement must not delay its control. */
	setpriority(PRIO_PROCESS, 0, -20);
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	sigprocmask(SIG_BLOCK, &chld, &old);
	sfd = signalfd(-1, &chld, SFD_CLOEXEC | SFD_NONBLOCK);
	lsock = socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (sfd < 0 || lsock < 0 ||
	    bind(lsock, (struct sockaddr *)&addr, sizeof(addr)) ||
	    listen(lsock, 128))
		die(1, "agent: vsock: %s", strerror(errno));

	for (;;) {
		struct pollfd p[] = {
			{ .fd = lsock, .events = POLLIN },
			{ .fd = sfd, .events = POLLIN },
		};
		struct signalfd_siginfo info;
		int sock;

		if (poll(p, 2, -1) < 0)
			continue;
		if (p[1].revents) {
			while (read(sfd, &info, sizeof(info)) > 0)
				;
			/* As process 1 we also inherit orphans. */
			while (waitpid(-1, NULL, WNOHANG) > 0)
				;
		}
		if (!p[0].revents)
			continue;
		sock = accept4(lsock, NULL, NULL, SOCK_CLOEXEC);
		if (sock < 0)
			continue;
		switch (fork()) {
		case 0:
			sigprocmask(SIG_SETMASK, &old, NULL);
			close(lsock);
			close(sfd);
			serve_connection(sock);
			wait_for_host(sock);
			_exit(0);
		default:
			close(sock);
		}
	}
}

/* ---- host ---- */

/* Time limits are so many times longer on a slow machine. */
static int slowness(void)
{
	const char *slow = getenv("SLOW");
	int n = slow ? atoi(slow) : 1;

	return n > 0 ? n : 1;
}

static int connect_guest(unsigned int cid, int seconds)
{
	struct sockaddr_vm addr = {
		.svm_family = AF_VSOCK,
		.svm_cid = cid,
		.svm_port = PORT,
	};
	struct timeval tv = {
		.tv_sec = seconds * slowness(),
	};
	int sock = socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (sock < 0)
		return -1;
	setsockopt(sock, AF_VSOCK, SO_VM_SOCKETS_CONNECT_TIMEOUT, &tv,
		   sizeof(tv));
	if (connect(sock, (struct sockaddr *)&addr, sizeof(addr))) {
		int err = errno;

		close(sock);
		errno = err;
		return -1;
	}
	return sock;
}

struct client {
	int sock;
	int input;		/* -1: nothing (more) to read */
	char queue[sizeof(struct frame_header) + CHUNK];
	size_t have, sent;
	char buf[sizeof(struct frame_header) + CHUNK];
	size_t filled;
};

static void queue_input(struct client *c)
{
	struct frame_header h = { .type = FRAME_STDIN };
	ssize_t n = 0;

	if (c->input >= 0) {
		n = read(c->input, c->queue + sizeof(h), CHUNK);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			return;
	}
	if (n <= 0) {
		n = 0;
		c->input = -1;
	}
	h.length = n;
	memcpy(c->queue, &h, sizeof(h));
	c->have = sizeof(h) + n;
	c->sent = 0;
}

/* Returns true with *status set when the command has ended. */
static bool take_frames(struct client *c, int *status)
{
	struct frame_header h;
	char *p = c->buf;

	while (c->filled >= sizeof(h)) {
		memcpy(&h, p, sizeof(h));
		if (h.length > CHUNK)
			die(STATUS_LOST, "guest: protocol error");
		if (c->filled < sizeof(h) + h.length)
			break;
		p += sizeof(h);
		switch (h.type) {
		case FRAME_STDOUT:
		case FRAME_STDERR:
			if (write_all(h.type == FRAME_STDOUT ? 1 : 2, p,
				      h.length))
				die(STATUS_LOST, "guest: output: %s",
				    strerror(errno));
			break;
		case FRAME_EXIT:
			if (h.length == sizeof(int32_t)) {
				int32_t v;

				memcpy(&v, p, sizeof(v));
				*status = v;
				return true;
			}
		/* fall through */
		default:
			die(STATUS_LOST, "guest: protocol error");
		}
		p += h.length;
		c->filled -= sizeof(h) + h.length;
	}
	memmove(c->buf, p, c->filled);
	return false;
}

static int run_client(unsigned int cid, const char *command)
{
	struct client c = { .input = 0 };
	int status;

	c.sock = connect_guest(cid, 20);
	if (c.sock < 0)
		die(STATUS_LOST, "guest: cannot connect: %s", strerror(errno));
	signal(SIGPIPE, SIG_IGN);
	if (strlen(command) > COMMAND_MAX)
		die(STATUS_LOST, "guest: command too long");
	if (send_frame(c.sock, FRAME_COMMAND, command, strlen(command)))
		die(STATUS_LOST, "guest: %s", strerror(errno));
	if (isatty(0)) {
		c.input = -1;
		queue_input(&c);
	}
	/*
	 * Never block on sending: the guest may be waiting for us to read its
	 * output before it takes more input.
	 */
	set_nonblock(c.sock);

	for (;;) {
		bool idle = c.sent == c.have;
		struct pollfd p[] = {
			{ .fd = c.sock, .events = POLLIN | (idle ? 0 : POLLOUT) },
			{ .fd = idle ? c.input : -1, .events = POLLIN },
		};
		ssize_t n;

		if (poll(p, 2, -1) < 0)
			continue;
		if (p[0].revents & POLLOUT && !idle) {
			n = write(c.sock, c.queue + c.sent, c.have - c.sent);
			if (n > 0)
				c.sent += n;
			else if (errno != EAGAIN && errno != EINTR)
				c.sent = c.have;	/* reading tells */
		}
		if (p[1].revents)
			queue_input(&c);
		if (!(p[0].revents & (POLLIN | POLLHUP | POLLERR)))
			continue;
		n = read(c.sock, c.buf + c.filled, sizeof(c.buf) - c.filled);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (n <= 0)
			die(STATUS_LOST, "guest: connection lost");
		c.filled += n;
		if (take_frames(&c, &status))
			return status;
	}
}

static bool guest_answers(unsigned int cid)
{
	struct frame_header h;
	struct timeval tv = { .tv_sec = 5 * slowness() };
	bool ok = false;
	int sock = connect_guest(cid, 1);

	if (sock < 0)
		return false;
	setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	if (!send_frame(sock, FRAME_PROBE, NULL, 0) &&
	    !read_all(sock, &h, sizeof(h)))
		ok = h.type == FRAME_EXIT;
	close(sock);
	return ok;
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

static int wait_guest(unsigned int cid, double seconds, pid_t vmm)
{
	double end = now() + seconds;
	int pidfd = vmm ? open_pidfd(vmm) : -1;

	signal(SIGPIPE, SIG_IGN);
	while (!guest_answers(cid)) {
		/* Readable when it has ended, reaped by its parent or not. */
		struct pollfd p = { .fd = pidfd, .events = POLLIN };

		if (vmm && (pidfd < 0 || poll(&p, 1, 0) > 0))
			die(1, "guest with CID %u: its VMM (process %d) has ended",
			    cid, vmm);
		if (now() > end)
			die(1, "guest with CID %u does not answer after %g s",
			    cid, seconds);
		usleep(30000);
	}
	return 0;
}

/* ---- QMP ---- */

/* Reads replies until one that is not an event; NULL at end of file. */
static char *qmp_reply(FILE *f)
{
	static char *line;
	static size_t size;

	while (getline(&line, &size, f) > 0)
		if (strncmp(line, "{\"timestamp\"", 12))
			return line;
	return NULL;
}

static int qmp(const char *path, const char *json)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char *reply;
	FILE *f;

	if (strlen(path) >= sizeof(addr.sun_path))
		die(2, "qmp: path too long");
	strcpy(addr.sun_path, path);
	if (sock < 0 || connect(sock, (struct sockaddr *)&addr, sizeof(addr)))
		die(1, "qmp: %s: %s", path, strerror(errno));
	signal(SIGPIPE, SIG_IGN);
	f = fdopen(sock, "r");
	if (!f || !qmp_reply(f) ||
	    dprintf(sock, "{\"execute\":\"qmp_capabilities\"}\n") < 0 ||
	    !qmp_reply(f) || dprintf(sock, "%s\n", json) < 0)
		die(1, "qmp: no answer");
	reply = qmp_reply(f);
	if (!reply)
		die(1, "qmp: connection closed");
	fputs(reply, stdout);
	return !strncmp(reply, "{\"error\"", 8);
}

/* ---- */

static char *join(char **words)
{
	size_t size = 1;
	char **w, *text;

	for (w = words; *w; w++)
		size += strlen(*w) + 1;
	text = calloc(1, size);
	if (!text)
		die(1, "out of memory");
	for (w = words; *w; w++) {
		if (w != words)
			strcat(text, " ");
		strcat(text, *w);
	}
	return text;
}

static unsigned int number(const char *text, const char *what)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || n > 0xffff)
		die(2, "%s: not a number: %s", what, text);
	return n;
}

int main(int argc, char **argv)
{
	const char *name = strrchr(argv[0], '/');
	const char *verb = argc > 1 ? argv[1] : "";

	name = name ? name + 1 : argv[0];
	if (!strcmp(name, "guest")) {
		if (argc < 3)
			die(2, "usage: guest N COMMAND...");
		return run_client(FIRST_CID + number(argv[1], "guest"),
				  join(argv + 2));
	}
	if (!strcmp(verb, "serve") && argc == 2)
		return serve();
	if (!strcmp(verb, "run") && argc > 3)
		return run_client(number(argv[2], "CID"), join(argv + 3));
	if (!strcmp(verb, "wait") && (argc == 4 || argc == 5))
		return wait_guest(number(argv[2], "CID"), atof(argv[3]),
				  argc == 5 ? atoi(argv[4]) : 0);
	if (!strcmp(verb, "qmp") && argc == 4)
		return qmp(argv[2], argv[3]);
	die(2, "usage: agent serve | run CID COMMAND... | "
	    "wait CID SECONDS [PID] | qmp SOCKET JSON");
}
