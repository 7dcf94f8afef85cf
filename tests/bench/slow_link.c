/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A wire between two network ports that takes its time: every frame comes out
 * at the other end after a delay, in order. What nodes of one machine say to each
 * other arrives at once and is paid for in processor time; between machines it is
 * the other way round.
 *
 *	slow_link MICROSECONDS PORT PORT
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define FRAME_MAX 66000u	/* with what the kernel has not cut into packets yet */
#define FRAMES 4096u		/* under way in one direction; more are lost, as on any wire */

struct frame {
	uint64_t due_ns;
	size_t size;
	uint8_t *bytes;
};

struct direction {
	int from, to;
	uint32_t first, count;
	struct frame frame[FRAMES];
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int open_port(const char *name)
{
	struct sockaddr_ll at = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL) };
	int one = 1, fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

	at.sll_ifindex = (int)if_nametoindex(name);
	/* The header in front says which checksums are still to be made. */
	if (fd < 0 || at.sll_ifindex == 0 ||
	    setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof(one)) < 0 ||
	    setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof(one)) < 0 ||
	    bind(fd, (const struct sockaddr *)&at, sizeof(at)) < 0) {
		fprintf(stderr, "slow_link: %s: %s\n", name, strerror(errno));
		exit(1);
	}
	return fd;
}

static void take_in(struct direction *d, uint64_t delay_ns)
{
	static uint8_t bytes[FRAME_MAX];
	ssize_t size;

	while ((size = recv(d->from, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0) {
		struct frame *f = &d->frame[(d->first + d->count) % FRAMES];
		uint8_t *copy = d->count < FRAMES ? malloc((size_t)size) : NULL;

		if (!copy)
			continue;
		memcpy(copy, bytes, (size_t)size);
		*f = (struct frame){ now_ns() + delay_ns, (size_t)size, copy };
		d->count++;
	}
}

/* When the next one is due; UINT64_MAX: none is under way. */
static uint64_t let_out(struct direction *d)
{
	for (; d->count > 0; d->first = (d->first + 1) % FRAMES, d->count--) {
		struct frame *f = &d->frame[d->first];

		if (f->due_ns > now_ns())
			return f->due_ns;
		(void)!send(d->to, f->bytes, f->size, 0);
		free(f->bytes);
	}
	return UINT64_MAX;
}

int main(int argc, char **argv)
{
	static struct direction there, back;
	struct pollfd ports[2];
	uint64_t delay_ns, due_ns, other_ns, now;

	if (argc != 4) {
		fprintf(stderr, "usage: slow_link MICROSECONDS PORT PORT\n");
		return 2;
	}
	delay_ns = strtoull(argv[1], NULL, 10) * 1000;
	there.from = back.to = open_port(argv[2]);
	there.to = back.from = open_port(argv[3]);
	ports[0] = (struct pollfd){ .fd = there.from, .events = POLLIN };
	ports[1] = (struct pollfd){ .fd = back.from, .events = POLLIN };
	(void)prctl(PR_SET_TIMERSLACK, 1);
	for (;;) {
		struct timespec left = { 0 };

		take_in(&there, delay_ns);
		take_in(&back, delay_ns);
		due_ns = let_out(&there);
		other_ns = let_out(&back);
		due_ns = other_ns < due_ns ? other_ns : due_ns;
		now = now_ns();
		if (due_ns > now) {
			uint64_t wait_ns = due_ns - now;

			left.tv_sec = (time_t)(wait_ns / 1000000000u);
			left.tv_nsec = (long)(wait_ns % 1000000000u);
		}
		(void)ppoll(ports, 2, due_ns == UINT64_MAX ? NULL : &left, NULL);
	}
}
