// SPDX-License-Identifier: GPL-2.0
/*
 * jping ADDRESS COUNT INTERVAL_US SEED: ICMP echo requests at random times.
 *
 * Why not ping: it waits for its next turn with the socket's receive timeout,
 * which the kernel counts in ticks. So it sends on the scheduler's own grid,
 * and with slices of one tick it would visit the rotation of the vCPUs at a
 * few fixed points only (seen: round trips in four bands 4 ms apart, and a
 * mean that depended on where the bands lay). Here the time to the next
 * request is uniform between 1/2 and 3/2 of the interval, on a timer with
 * nanoseconds.
 *
 * As ping does, a round trip lasts from just before the request is handed to
 * the kernel until the kernel's time stamp of the reply. The output is that
 * of `ping -n -D -O`, but printed at the end: it must not disturb. After the
 * last request it waits until all are answered, GRACE_MS at most.
 *
 * Exit status: 0, also when replies are missing; 1 on errors.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <linux/icmp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tool.h"

#define GRACE_MS	2000
#define MAX_COUNT	65535		/* sequence numbers have 16 bits */
#define PAYLOAD		56		/* as ping */

struct request {
	int64_t sent;			/* CLOCK_REALTIME, ns; 0: not sent */
	int64_t answered;
};

struct packet {
	struct icmphdr head;
	char data[PAYLOAD];
};

static struct request requests[MAX_COUNT + 1];

/* xorshift64*: the same seed gives the same times on every machine. */
static uint64_t random_below(uint64_t *state, uint64_t limit)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return (*state * 0x2545f4914f6cdd1dULL >> 32) % limit;
}

static uint16_t checksum(const void *data, size_t len)
{
	const uint16_t *w = data;
	uint32_t sum = 0;

	for (; len > 1; len -= 2)
		sum += *w++;
	sum = (sum >> 16) + (sum & 0xffff);
	sum += sum >> 16;
	return ~sum;
}

static int open_socket(const struct sockaddr_in *to)
{
	struct icmp_filter filter = { .data = ~(1U << ICMP_ECHOREPLY) };
	int on = 1, s = socket(AF_INET, SOCK_RAW, IPPROTO_ICMP);

	if (s < 0)
		die("socket");
	if (setsockopt(s, SOL_RAW, ICMP_FILTER, &filter, sizeof(filter)) ||
	    setsockopt(s, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof(on)) ||
	    connect(s, (const struct sockaddr *)to, sizeof(*to)))
		die("socket options");
	return s;
}

static void send_request(int s, uint16_t ident, uint16_t seq)
{
	struct packet p = {
		.head = {
			.type = ICMP_ECHO,
			.un.echo = { .id = ident, .sequence = htons(seq) },
		},
	};

	p.head.checksum = checksum(&p, sizeof(p));
	requests[seq].sent = now(CLOCK_REALTIME);
	/* A full queue or an unreachable address is a lost packet. */
	if (send(s, &p, sizeof(p), 0) < 0 && errno != ENOBUFS &&
	    errno != EHOSTUNREACH && errno != ENETUNREACH)
		die("send");
}

/* Returns the number of requests that got their first answer. */
static long receive(int s, uint16_t ident)
{
	char buf[2048], control[256];
	long answered = 0;

	for (;;) {
		struct iovec iov = { buf, sizeof(buf) };
		struct msghdr m = {
			.msg_iov = &iov, .msg_iovlen = 1,
			.msg_control = control,
			.msg_controllen = sizeof(control),
		};
		ssize_t len = recvmsg(s, &m, MSG_DONTWAIT);
		int64_t at = now(CLOCK_REALTIME);
		struct icmphdr head;
		struct cmsghdr *c;
		size_t ip;
		uint16_t seq;

		if (len < 0 && (errno == EAGAIN || errno == EINTR))
			return answered;
		if (len < 0) {
			if (errno == EHOSTUNREACH || errno == ENETUNREACH)
				continue;
			die("recvmsg");
		}
		ip = len > 0 ? (buf[0] & 15) * 4 : 0;
		if (ip < 20 || (size_t)len < ip + sizeof(head))
			continue;
		memcpy(&head, buf + ip, sizeof(head));
		seq = ntohs(head.un.echo.sequence);
		if (head.type != ICMP_ECHOREPLY || head.un.echo.id != ident ||
		    !requests[seq].sent || requests[seq].answered)
			continue;
		for (c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
			if (c->cmsg_level == SOL_SOCKET &&
			    c->cmsg_type == SCM_TIMESTAMPNS) {
				struct timespec t;

				memcpy(&t, CMSG_DATA(c), sizeof(t));
				at = t.tv_sec * NSEC + t.tv_nsec;
			}
		}
		requests[seq].answered = at;
		answered++;
	}
}

static void wait_until(int s, int64_t deadline)
{
	struct pollfd p = { .fd = s, .events = POLLIN };
	int64_t left = deadline - now(CLOCK_MONOTONIC);
	struct timespec t;

	if (left < 0)
		left = 0;
	t.tv_sec = left / NSEC;
	t.tv_nsec = left % NSEC;
	if (ppoll(&p, 1, &t, NULL) < 0 && errno != EINTR)
		die("poll");
}

static void print(const char *address, long count, long answered)
{
	long i;

	for (i = 1; i <= count; i++) {
		const struct request *r = &requests[i];
		int64_t at = r->answered ? r->answered : r->sent;

		printf("[%lld.%06lld] ", (long long)(at / NSEC),
		       (long long)(at % NSEC / 1000));
		if (r->answered)
			printf("%zu bytes from %s: icmp_seq=%ld time=%.3f ms\n",
			       sizeof(struct packet), address, i,
			       (r->answered - r->sent) / 1e6);
		else
			printf("no answer yet for icmp_seq=%ld\n", i);
	}
	printf("%ld packets transmitted, %ld received\n", count, answered);
}

int main(int argc, char **argv)
{
	struct sockaddr_in to = { .sin_family = AF_INET };
	long count, interval, answered = 0, seq = 0;
	uint16_t ident = getpid();
	int64_t next, end;
	uint64_t random;
	int s;

	if (argc != 5) {
		fprintf(stderr, "usage: jping ADDRESS COUNT INTERVAL_US SEED\n");
		return 1;
	}
	if (!inet_aton(argv[1], &to.sin_addr)) {
		fprintf(stderr, "jping: not an IPv4 address: %s\n", argv[1]);
		return 1;
	}
	count = number(argv[2], 1, MAX_COUNT, "COUNT");
	interval = number(argv[3], 2, 60000000, "INTERVAL_US");
	/* Small seeds differ in few bits only; never 0. */
	random = number(argv[4], 0, 1L << 30, "SEED") *
		0x9e3779b97f4a7c15ULL + 1;
	s = open_socket(&to);
	/* Timers to the microsecond, not to the default 50. */
	prctl(PR_SET_TIMERSLACK, 1000);

	next = now(CLOCK_MONOTONIC);
	while (seq < count) {
		if (now(CLOCK_MONOTONIC) >= next) {
			send_request(s, ident, ++seq);
			next += (interval / 2 +
				 random_below(&random, interval)) * 1000LL;
			continue;
		}
		wait_until(s, next);
		answered += receive(s, ident);
	}
	end = now(CLOCK_MONOTONIC) + GRACE_MS * 1000000LL;
	while (answered < count && now(CLOCK_MONOTONIC) < end) {
		wait_until(s, end);
		answered += receive(s, ident);
	}
	print(argv[1], count, answered);
	return 0;
}
