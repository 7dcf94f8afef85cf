/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the belay-lvmlockds of a cluster say to each other, and its bytes. Pure:
 * no I/O. Messages travel in frames: the version, then messages one after the
 * other, each behind its size. Each text has a limit, so a message has one.
 *
 * What may be added without a new version: kinds, which are skipped by those
 * that do not know them; fields at the end of a message, which are not read; verbs,
 * which are answered by -EOPNOTSUPP.
 */
#ifndef BELAY_LVMLOCKD_ASK_H
#define BELAY_LVMLOCKD_ASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ASK_VERSION 1u
#define ASK_MESSAGE_MAX 2048u
/* Well below what the group carries: small frames do not make others' messages wait. */
#define ASK_FRAME_MAX 4096u

/* LVM's own limit for names of VGs and LVs is 127 bytes. */
#define ASK_NAME_MAX 127u
/* A uuid as lvm writes it: 32 characters and 6 dashes. */
#define ASK_UUID_MAX 38u
#define ASK_TEXT_MAX 511u
#define ASK_TARGETS_MAX 63u

enum ask_kind {
	ASK_MEMBER = 1,		/* of the sender itself; after each view, and when it changes */
	ASK_NOTICE,		/* to all, without an answer */
	ASK_REQUEST,		/* to some, with answers of each */
	ASK_ANSWER,
	ASK_CANCEL,		/* the asker does not want it any more */
	ASK_KIND_COUNT,
};

enum ask_notice {
	ASK_VG_REMOVED = 1,	/* vgremove has done with it */
	ASK_NOTICE_COUNT,
};

enum ask_verb {
	ASK_ACTIVATE = 1,
	ASK_DEACTIVATE,
	ASK_REFRESH,
	ASK_STATUS,
	ASK_UNDO,		/* deactivate what the request @about has activated there */
	ASK_KEEP,		/* forget what the request @about has activated there */
	ASK_VERB_COUNT,
};

enum ask_mode {
	ASK_UN,
	ASK_SH,
	ASK_EX,
	ASK_MODE_COUNT,
};

struct ask_request {
	enum ask_verb verb;
	enum ask_mode mode;		/* ACTIVATE: SH or EX */
	bool no_vg_lock;		/* the asker has the VG's lock: lvm must not want it */
	uint32_t wait_ms;		/* ACTIVATE: how long it may wait for LV locks; 0: not at all */
	uint64_t about;			/* UNDO, KEEP */
	char vg[ASK_NAME_MAX + 1];	/* STATUS: "": all that are shared */
	char lv[ASK_NAME_MAX + 1];	/* "": all of the VG */
};

/* How it ended for one LV on one node. */
enum ask_outcome {
	ASK_VERIFIED = 1,	/* it is as was wanted, device-mapper says so */
	ASK_UNVERIFIED,		/* lvm says so; device-mapper could not be asked */
	ASK_FAILED,		/* it is not as was wanted; the reason says why */
	ASK_SHOWN,		/* STATUS: nothing was wanted */
	ASK_OUTCOME_COUNT,
};

enum ask_dm {
	ASK_DM_UNKNOWN,		/* no device-mapper, or it did not answer */
	ASK_DM_INACTIVE,
	ASK_DM_ACTIVE,
	ASK_DM_SUSPENDED,
	ASK_DM_NO_TABLE,	/* a device without a live table */
	ASK_DM_ERROR,		/* active, but (partly) by the error target */
	ASK_DM_COUNT,
};

/* One LV on one node. */
struct ask_lv {
	char vg[ASK_NAME_MAX + 1];
	char name[ASK_NAME_MAX + 1];
	char uuid[ASK_UUID_MAX + 1];	/* "": not known */
	enum ask_outcome outcome;
	bool changed;			/* the request did something to it */
	enum ask_mode lock;		/* what the node's lock on it is */
	uint64_t since_s;		/* of the lock, Unix time; 0: not known */
	enum ask_dm dm;
	uint32_t open_count;
	uint64_t size_bytes;		/* of the live table */
	uint64_t lvm_size_bytes;	/* in LVM's metadata; 0: not known */
	char targets[ASK_TARGETS_MAX + 1];	/* "linear", "striped,linear" */
	char reason[ASK_TEXT_MAX + 1];	/* FAILED, UNVERIFIED: in words; SHOWN: what is known of why, or "" */
};

enum ask_answer_kind {
	ASK_PROGRESS = 1,	/* done of total LVs */
	ASK_LV,			/* what became of one of them */
	ASK_END,		/* the last answer of that node */
	ASK_ANSWER_COUNT,
};

struct ask_answer {
	enum ask_answer_kind kind;
	uint32_t done, total;			/* PROGRESS */
	struct ask_lv lv;			/* LV */
	int32_t result;				/* END: 0 or a negative errno */
	char text[ASK_TEXT_MAX + 1];		/* END: why */
};

/* What a member says of itself. */
struct ask_member {
	bool adopted;		/* it has locked what it had active when it started */
};

struct ask_message {
	enum ask_kind kind;
	uint64_t id;			/* REQUEST, ANSWER, CANCEL: the asker's number for it */
	uint32_t to;			/* REQUEST, CANCEL: who is asked; ANSWER: the asker */
	union {
		struct ask_member member;
		struct {
			enum ask_notice what;
			char vg[ASK_NAME_MAX + 1];
			char vg_uuid[ASK_UUID_MAX + 1];
		} notice;
		struct ask_request request;
		struct ask_answer answer;
	};
};

/* Begin a frame; returns its size so far. */
size_t ask_frame(uint8_t frame[ASK_FRAME_MAX]);
/* Add a message to a frame of @size bytes; returns its new size, or 0: it is full. */
size_t ask_add(uint8_t frame[ASK_FRAME_MAX], size_t size, const struct ask_message *message);

/*
 * Read the next message of a frame; *at, 0 at first, moves on.
 *   1                *ret_message is one
 *   0                there is none any more
 *   -EBADMSG         it is no frame, or the rest of it is none
 *   -EPROTONOSUPPORT it is of another version
 */
int ask_next(const uint8_t *frame, size_t size, size_t *at, struct ask_message *ret_message);

/* A name that LVM would give: so nothing else reaches a command line. */
bool ask_is_name(const char *name);

/* "ex", "sh", "un"; and what the other enums are called for people. */
const char *ask_mode_name(enum ask_mode mode);
const char *ask_verb_name(enum ask_verb verb);
const char *ask_outcome_name(enum ask_outcome outcome);
const char *ask_dm_name(enum ask_dm dm);

#endif
