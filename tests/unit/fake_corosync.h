/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A corosync that does what a test says: the functions of libcpg, libquorum
 * and libcmap that group_cpg.c calls, linked in their place.
 */
#ifndef BELAY_TESTS_FAKE_COROSYNC_H
#define BELAY_TESTS_FAKE_COROSYNC_H

#include <corosync/cpg.h>
#include <corosync/quorum.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FAKE_EVENTS_MAX 512
#define FAKE_KEYS_MAX 512

struct fake_key {
	char name[64];
	uint32_t number;
	const char *text;	/* NULL: a number */
};

struct fake_event {
	enum { FAKE_MESSAGE, FAKE_CONFCHG, FAKE_TOTEM } type;
	uint32_t node, pid;
	size_t size;		/* MESSAGE: so many bytes, all zero */
	struct cpg_address member[4], left[4], joined[4];
	size_t members, lefts, joins;
	struct cpg_ring_id ring;
};

struct fake {
	/* What it has. */
	struct fake_key key[FAKE_KEYS_MAX];
	unsigned keys;
	uint32_t self;
	uint32_t quorum_type;
	uint32_t atomic_max;
	struct cpg_address already[4];	/* in the group, as cpg_membership_get() tells */
	int already_count;
	int already_times;		/* so many times, then no more; -1: for ever */
	int sndbuf;			/* of the sockets; 0: as they are */
	/* Call number fail_at from now on, counted from 1, returns fail_with; 0: none. fail_on: all after it, too. */
	unsigned calls, fail_at;
	bool fail_on;
	cs_error_t fail_with;
	cs_error_t send_result;
	cs_error_t dispatch_result;	/* once no event is left; CS_OK stands for "try again" */
	/* What has been done with it. */
	unsigned cpg_handles, quorum_handles, cmap_handles, iterators;	/* open now */
	bool joined, tracking;
	unsigned naps;			/* of 10 or 20 ms, as it believes */
	unsigned sent;
	size_t sent_bytes;
	/* Underneath. */
	int cpg_socket[2], quorum_socket[2];	/* [0] the client's, as libcpg gives it; [1] ours */
	cpg_model_v1_data_t cpg_model;
	void *cpg_context;
	quorum_model_v1_data_t quorum_model;
	void *quorum_context;
	struct fake_event event[FAKE_EVENTS_MAX];
	unsigned first, events;
	unsigned next_key;
	bool quorum_told, quorum_flag;
	struct quorum_ring_id quorum_ring;
};

/* The one there is. */
struct fake *fake(void);
/* Make it anew: node 1 of three plain nodes 1, 2, 3. */
void fake_reset(void);
void fake_set_number(const char *name, uint32_t number);
void fake_set_text(const char *name, const char *text);
void fake_unset(const char *prefix);

/* Let it say something. */
void fake_message(uint32_t node, uint32_t pid, size_t size);
/* Lists of addresses as node * 10 + n, pid 1000 + n except that 1 * 10 + 0 is this process; end with 0. */
void fake_confchg(const unsigned *member, const unsigned *left, const unsigned *joined);
void fake_totem(uint64_t seq);
void fake_quorum(uint64_t seq, bool quorate);
/* Its end of the sockets closes. */
void fake_die(void);

#endif
