// SPDX-License-Identifier: GPL-2.0
/*
 * Traffic over a path that loses nothing, checked byte by byte.
 *
 *   stream serve PORT
 *	echoes UDP, takes and checks TCP streams; for ever
 *   stream ask ADDRESS PORT WINDOW [RTO]
 *	UDP requests with sequence numbers, up to WINDOW at once, until SIGTERM:
 *	each must be answered exactly once, none is sent again. RTO: the least
 *	number of seconds that TCP waits here before it sends again; it says how
 *	many of TCP's time-outs came while no request waited for half as long
 *   stream send ADDRESS PORT
 *	one TCP stream until SIGTERM; the other end must have all of it
 *
 * Clients print what they did and exit with 1 if something was wrong. Nothing
 * here is timed: PATIENCE only tells "never" from "slowly".
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE	120	/* seconds */
#define CHUNK		(16 * 1024)
#define WINDOW_MAX	64

static volatile sig_atomic_t stopped;

static void stop(int sig)
{
	(void)sig;
	stopped = 1;
}

static __attribute__((noreturn, format(printf, 1, 2))) void die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	exit(1);
}

static void need(int result, const char *what)
{
	if (result < 0)
		die("%s: %s", what, strerror(errno));
}

/* Sends and receives fail with EAGAIN after @seconds. */
static void patience(int fd, int seconds)
{
	struct timeval t = { .tv_sec = seconds };

	need(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t)), "SO_RCVTIMEO");
	need(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof(t)), "SO_SNDTIMEO");
}

static struct sockaddr_in address(const char *ip, const char *port)
{
	struct sockaddr_in a = {
		.sin_family = AF_INET, .sin_port = htons(atoi(port)),
	};

	if (inet_pton(AF_INET, ip, &a.sin_addr) != 1)
		die("%s is no address", ip);
	return a;
}

static int open_socket(int type, const char *ip, const char *port, int server)
{
	struct sockaddr_in a = address(ip, port);
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0), one = 1;

	need(fd, "socket");
	if (server) {
		need(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)),
		     "SO_REUSEADDR");
		need(bind(fd, (void *)&a, sizeof(a)), "bind");
	} else {
		patience(fd, PATIENCE);
		need(connect(fd, (void *)&a, sizeof(a)), "connect");
	}
	return fd;
}

/* ---- TCP ---- */

/* What stands at @offset of every stream: no two words are the same. */
static void fill(uint64_t *chunk, uint64_t offset)
{
	for (size_t i = 0; i < CHUNK / sizeof(*chunk); i++)
		chunk[i] = (offset / sizeof(*chunk) + i) * 0x9e3779b97f4a7c15ull;
}

/* Tells the sender at the end how much of its stream was right. */
static void *check_stream(void *arg)
{
	uint64_t chunk[CHUNK / 8], right[CHUNK / 8], total = 0;
	int fd = (intptr_t)arg;
	ssize_t n;

	for (;;) {
		n = recv(fd, chunk, CHUNK, MSG_WAITALL);
		if (n != CHUNK)
			break;
		fill(right, total);
		if (memcmp(chunk, right, CHUNK))
			break;
		total += CHUNK;
	}
	if (n)		/* wrong, or not all of a chunk */
		total = UINT64_MAX;
	send(fd, &total, sizeof(total), MSG_NOSIGNAL);
	close(fd);
	return NULL;
}

static void *take_streams(void *arg)
{
	int fd = open_socket(SOCK_STREAM, "0.0.0.0", arg, 1);
	pthread_t thread;

	need(listen(fd, 16), "listen");
	for (;;) {
		int c = accept4(fd, NULL, NULL, SOCK_CLOEXEC);

		need(c, "accept");
		if (pthread_create(&thread, NULL, check_stream, (void *)(intptr_t)c))
			die("no thread");
		pthread_detach(thread);
	}
}

static int send_stream(const char *ip, const char *port)
{
	int fd = open_socket(SOCK_STREAM, ip, port, 0);
	uint64_t chunk[CHUNK / 8], total = 0, right = 0;
	ssize_t n;

	while (!stopped) {
		fill(chunk, total);
		for (size_t done = 0; done < CHUNK; done += n) {
			n = send(fd, (char *)chunk + done, CHUNK - done, MSG_NOSIGNAL);
			if (n < 0 && errno == EINTR)
				n = 0;
			if (n < 0)
				die("TCP: %s after %llu bytes", errno == EAGAIN ?
				    "nothing goes out" : strerror(errno),
				    (unsigned long long)(total + done));
		}
		total += CHUNK;
	}
	need(shutdown(fd, SHUT_WR), "shutdown");
	if (recv(fd, &right, sizeof(right), MSG_WAITALL) != sizeof(right))
		die("TCP: no answer to the end of the stream");
	if (right != total)
		die("TCP: %llu bytes were sent, %llu arrived as they were sent",
		    (unsigned long long)total,
		    right == UINT64_MAX ? 0 : (unsigned long long)right);
	printf("%llu bytes, all right\n", (unsigned long long)total);
	return 0;
}

/* ---- UDP ---- */

struct request {
	uint64_t seq;
	uint64_t mark[7];	/* 64 bytes, each request's its own */
};

static void make_request(struct request *r, uint64_t seq)
{
	r->seq = seq;
	for (size_t i = 0; i < 7; i++)
		r->mark[i] = (seq * 7 + i) * 0x9e3779b97f4a7c15ull;
}

static void echo(const char *port)
{
	int fd = open_socket(SOCK_DGRAM, "0.0.0.0", port, 1);
	struct sockaddr_in from;
	struct request r;
	socklen_t length;
	ssize_t n;

	for (;;) {
		length = sizeof(from);
		n = recvfrom(fd, &r, sizeof(r), 0, (void *)&from, &length);
		need(n, "recvfrom");
		need(sendto(fd, &r, n, 0, (void *)&from, length), "sendto");
	}
}

static double now(void)
{
	struct timespec t;

	/* As in /proc/uptime. */
	clock_gettime(CLOCK_BOOTTIME, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

/* TcpExt's TCPTimeouts: two lines, names and values. */
static long tcp_timeouts(void)
{
	char *name, *value, *names, *values, line[2][8192];
	FILE *f = fopen("/proc/net/netstat", "r");
	long n = -1;

	if (!f)
		die("/proc/net/netstat: %s", strerror(errno));
	while (n < 0 && fgets(line[0], sizeof(line[0]), f) &&
	       fgets(line[1], sizeof(line[1]), f)) {
		name = strtok_r(line[0], "\n ", &names);
		value = strtok_r(line[1], "\n ", &values);
		if (!name || strcmp(name, "TcpExt:"))
			continue;
		while (name && value && strcmp(name, "TCPTimeouts")) {
			name = strtok_r(NULL, "\n ", &names);
			value = strtok_r(NULL, "\n ", &values);
		}
		if (name && value)
			n = strtol(value, NULL, 10);
	}
	fclose(f);
	if (n < 0)
		die("/proc/net/netstat: no TCPTimeouts");
	return n;
}

/*
 * What makes TCP wait for so long makes requests wait as well if it is the path,
 * or the machine, that stands still. If not, something of TCP's own was lost.
 */
struct witness {
	double rto;	/* 0: none */
	double next;	/* not to be asked before */
	double stood;	/* when a request had waited for half of that, last */
	long seen, alone;
};

static void witness(struct witness *w, double waited)
{
	double t = now();
	long n;

	if (!w->rto)
		return;
	if (waited >= w->rto / 2)
		w->stood = t;
	if (t < w->next)
		return;
	w->next = t + 0.5;
	n = tcp_timeouts();
	if (n > w->seen && t - w->stood > w->rto) {
		w->alone += n - w->seen;
		printf("%ld TCP time-outs up to %.3f s, and requests were answered meanwhile\n",
		       n - w->seen, t);
	}
	w->seen = n;
}

/* Those from @first on, less than the window, are under way. */
static int ask(const char *ip, const char *port, uint64_t window, double rto)
{
	struct witness w = { .rto = rto };
	int fd = open_socket(SOCK_DGRAM, ip, port, 0);
	double sent[WINDOW_MAX], longest = 0, since = 0;
	int answered[WINDOW_MAX] = { 0 };
	uint64_t first = 0, next = 0;
	struct request r, right;
	ssize_t n;

	if (!window || window > WINDOW_MAX)
		die("the window must be 1 to %d", WINDOW_MAX);
	patience(fd, 1);
	w.seen = rto ? tcp_timeouts() : 0;
	for (;;) {
		while (!stopped && next < first + window) {
			make_request(&r, next);
			sent[next % window] = now();
			answered[next % window] = 0;
			next++;
			need(send(fd, &r, sizeof(r), 0), "send");
		}
		if (first == next)
			break;
		n = recv(fd, &r, sizeof(r), 0);
		if (n < 0 && (errno == EINTR || errno == EAGAIN)) {
			witness(&w, now() - sent[first % window]);
			if (now() < sent[first % window] + PATIENCE)
				continue;
			die("UDP: request %llu, sent at %.3f s, was never answered; %llu were sent",
			    (unsigned long long)first, sent[first % window],
			    (unsigned long long)next);
		}
		need(n, "recv");
		make_request(&right, r.seq);
		if (n != sizeof(r) || memcmp(&r, &right, sizeof(r)))
			die("UDP: an answer that is not what was asked");
		if (r.seq < first || r.seq >= next || answered[r.seq % window])
			die("UDP: request %llu was answered twice",
			    (unsigned long long)r.seq);
		answered[r.seq % window] = 1;
		if (now() - sent[r.seq % window] > longest) {
			longest = now() - sent[r.seq % window];
			since = sent[r.seq % window];
		}
		witness(&w, now() - sent[r.seq % window]);
		while (first < next && answered[first % window])
			first++;
	}
	/* What would come twice now comes soon. */
	if (recv(fd, &r, sizeof(r), 0) >= 0)
		die("UDP: request %llu was answered twice",
		    (unsigned long long)r.seq);
	if (!next)
		die("UDP: nothing was asked");
	printf("%llu requests, all answered, the slowest, sent at %.3f s, after %.3f s\n",
	       (unsigned long long)next, since, longest);
	if (rto)
		printf("TCP time-outs while requests were answered: %ld\n", w.alone);
	return 0;
}

int main(int argc, char **argv)
{
	struct sigaction sa = { .sa_handler = stop };
	pthread_t thread;

	/* What is waiting must see it: no SA_RESTART. */
	sigaction(SIGTERM, &sa, NULL);
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc == 3 && !strcmp(argv[1], "serve")) {
		signal(SIGTERM, SIG_DFL);
		if (pthread_create(&thread, NULL, take_streams, argv[2]))
			die("no thread");
		echo(argv[2]);
	}
	if ((argc == 5 || argc == 6) && !strcmp(argv[1], "ask"))
		return ask(argv[2], argv[3], strtoul(argv[4], NULL, 10),
			   argc == 6 ? strtod(argv[5], NULL) : 0);
	if (argc == 4 && !strcmp(argv[1], "send"))
		return send_stream(argv[2], argv[3]);
	fprintf(stderr, "usage: stream serve PORT | ask ADDRESS PORT WINDOW [RTO] | send ADDRESS PORT\n");
	return 2;
}
