// SPDX-License-Identifier: GPL-2.0
/*
 * Request/response with a size for each direction, one at a time.
 *
 *	rr serve PORT			TCP and UDP, until killed
 *	rr tcp|udp ADDRESS PORT MS REQUEST/RESPONSE...
 *					for each pair of sizes (bytes) MS
 *					milliseconds of requests
 *
 * As netperf's TCP_RR and UDP_RR, which the papers use: netperf is not in
 * Debian's main archive, and what is (sockperf, qperf: one size for both
 * directions; flowgrind: TCP only) cannot do this.
 *
 * Output: "==> REQUEST/RESPONSE <==", then a line for each request with the
 * second of its sending, from the first one on, and its time in ms, or "lost";
 * at last "end SECOND". A UDP answer counts as lost after LOST_MS. It is all
 * printed when everything is over: it must not disturb.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tool.h"

#define MAX_BYTES	60000		/* one UDP datagram */
#define LOST_MS		1000
#define STUCK_S		30		/* a TCP connection */

/* What every request begins with, in network byte order. */
struct head {
	uint32_t request, response, number;
};

struct sample {
	double at, ms;			/* ms < 0: lost */
};

struct result {
	struct sample *sample;
	size_t n, room;
	double end;
};

static char buffer[MAX_BYTES];

static void send_all(int s, const char *data, size_t len)
{
	while (len) {
		ssize_t n = send(s, data, len, MSG_NOSIGNAL);

		if (n < 0)
			die("send");
		data += n;
		len -= n;
	}
}

/* False at the end of the connection. */
static int receive_all(int s, char *data, size_t len)
{
	while (len) {
		ssize_t n = recv(s, data, len, MSG_WAITALL);

		if (n < 0)
			die("recv");
		if (!n)
			return 0;
		data += n;
		len -= n;
	}
	return 1;
}

/* ---- the server ---- */

static int listener(int type, int port)
{
	struct sockaddr_in here = { .sin_family = AF_INET,
				    .sin_port = htons(port) };
	int on = 1, s = socket(AF_INET, type, 0);

	if (s < 0 ||
	    setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
	    bind(s, (struct sockaddr *)&here, sizeof(here)))
		die("bind");
	return s;
}

static size_t response_size(void)
{
	struct head head;

	memcpy(&head, buffer, sizeof(head));
	head.response = ntohl(head.response);
	return head.response > sizeof(buffer) ? 0 : head.response;
}

static void serve_udp(int s)
{
	struct sockaddr_in from;

	for (;;) {
		socklen_t size = sizeof(from);
		ssize_t n = recvfrom(s, buffer, sizeof(buffer), 0,
				     (struct sockaddr *)&from, &size);

		if (n < (ssize_t)sizeof(struct head))
			continue;
		/* What cannot be sent is lost. */
		sendto(s, buffer, response_size(), 0, (struct sockaddr *)&from,
		       size);
	}
}

static void no_delay(int s)
{
	int on = 1;

	if (setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)))
		die("TCP_NODELAY");
}

static void serve_connection(int s)
{
	const size_t first = sizeof(struct head);

	no_delay(s);
	while (receive_all(s, buffer, first)) {
		struct head head;
		size_t size;

		memcpy(&head, buffer, first);
		size = ntohl(head.request);
		if (size < first || size > sizeof(buffer) ||
		    !receive_all(s, buffer + first, size - first))
			return;
		send_all(s, buffer, response_size());
	}
}

/* A process for each protocol, so that both can wait in the receiving call. */
static void serve(int port)
{
	int udp = listener(SOCK_DGRAM, port), tcp = listener(SOCK_STREAM, port);
	pid_t child;

	if (listen(tcp, 4))
		die("listen");
	signal(SIGCHLD, SIG_IGN);
	child = fork();
	if (child < 0)
		die("fork");
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		serve_udp(udp);
	}
	for (;;) {
		int s = accept(tcp, NULL, NULL);

		if (s < 0)
			die("accept");
		/* A connection that breaks must not end the server. */
		child = fork();
		if (child < 0)
			die("fork");
		if (!child) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			serve_connection(s);
			_exit(0);
		}
		close(s);
	}
}

/* ---- the client ---- */

static int open_client(int type, const char *address, int port)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons(port) };
	struct timeval limit = { .tv_sec = STUCK_S };
	int s = socket(AF_INET, type, 0);

	if (!inet_aton(address, &to.sin_addr)) {
		fprintf(stderr, "rr: not an IPv4 address: %s\n", address);
		exit(1);
	}
	if (type == SOCK_DGRAM)
		limit = (struct timeval){ .tv_sec = LOST_MS / 1000,
					  .tv_usec = LOST_MS % 1000 * 1000 };
	if (s < 0 ||
	    setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) ||
	    connect(s, (struct sockaddr *)&to, sizeof(to)))
		die("connect");
	if (type == SOCK_STREAM)
		no_delay(s);
	return s;
}

/* The answer to request @number; false if it is lost. */
static int answered(int s, int type, uint32_t number, size_t response)
{
	struct head head;

	if (type == SOCK_STREAM) {
		if (!receive_all(s, buffer, response)) {
			fprintf(stderr, "rr: the server has gone\n");
			exit(1);
		}
		return 1;
	}
	for (;;) {
		ssize_t n = recv(s, buffer, sizeof(buffer), 0);

		if (n < 0 && errno == EAGAIN)
			return 0;
		if (n < 0)
			die("recv");
		memcpy(&head, buffer, sizeof(head));
		/* Else it answers one that was given up. */
		if ((size_t)n == response && ntohl(head.number) == number)
			return 1;
	}
}

static void note(struct result *r, double at, double ms)
{
	if (r->n == r->room) {
		r->room = r->room ? 2 * r->room : 1024;
		r->sample = realloc(r->sample, r->room * sizeof(*r->sample));
		if (!r->sample)
			die("memory");
	}
	r->sample[r->n++] = (struct sample){ at, ms };
}

static void ask(int s, int type, size_t request, size_t response, int64_t ns,
		struct result *r)
{
	static uint32_t number;
	int64_t start = now(CLOCK_MONOTONIC), sent = start, end = start;

	while (end - start < ns) {
		struct head head = { htonl(request), htonl(response),
				     htonl(++number) };
		int good;

		memcpy(buffer, &head, sizeof(head));
		sent = now(CLOCK_MONOTONIC);
		send_all(s, buffer, request);
		good = answered(s, type, number, response);
		end = now(CLOCK_MONOTONIC);
		note(r, (double)(sent - start) / NSEC,
		     good ? (end - sent) / 1e6 : -1);
	}
	r->end = (double)(end - start) / NSEC;
}

static void print(const char *pair, const struct result *r)
{
	size_t i;

	printf("==> %s <==\n", pair);
	for (i = 0; i < r->n; i++) {
		printf("%.6f ", r->sample[i].at);
		if (r->sample[i].ms < 0)
			printf("lost\n");
		else
			printf("%.3f\n", r->sample[i].ms);
	}
	printf("end %.6f\n", r->end);
}

static void sizes(const char *pair, size_t *request, size_t *response)
{
	char text[32], *slash;

	snprintf(text, sizeof(text), "%s", pair);
	slash = strchr(text, '/');
	if (!slash) {
		fprintf(stderr, "rr: not REQUEST/RESPONSE: %s\n", pair);
		exit(1);
	}
	*slash = 0;
	*request = number(text, sizeof(struct head), MAX_BYTES, "REQUEST");
	*response = number(slash + 1, sizeof(struct head), MAX_BYTES,
			   "RESPONSE");
}

int main(int argc, char **argv)
{
	int type, s, i, port;
	int64_t ns;

	if (argc == 3 && !strcmp(argv[1], "serve")) {
		serve(number(argv[2], 1, 65535, "PORT"));
		return 0;
	}
	if (argc < 6 || (strcmp(argv[1], "tcp") && strcmp(argv[1], "udp"))) {
		fprintf(stderr, "usage: rr serve PORT | rr tcp|udp ADDRESS PORT MS REQUEST/RESPONSE...\n");
		return 1;
	}
	type = strcmp(argv[1], "tcp") ? SOCK_DGRAM : SOCK_STREAM;
	port = number(argv[3], 1, 65535, "PORT");
	ns = number(argv[4], 1, 3600000, "MS") * 1000000LL;
	s = open_client(type, argv[2], port);
	struct result results[argc];

	for (i = 5; i < argc; i++) {
		size_t request, response;

		results[i] = (struct result){ 0 };
		sizes(argv[i], &request, &response);
		ask(s, type, request, response, ns, &results[i]);
	}
	for (i = 5; i < argc; i++)
		print(argv[i], &results[i]);
	return 0;
}
