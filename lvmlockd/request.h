/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The requests of lvm and lvmlockctl: between server.c, which has their bytes, and request_*.c. */
#ifndef BELAY_LVMLOCKD_REQUEST_H
#define BELAY_LVMLOCKD_REQUEST_H

#include "lvmlockd/lvmlockd.h"

/* lvmlockd's own errors, which lvm explains; the others are those of errno. */
enum {
	LD_ENOLS = -210,	/* the VG is not started */
	LD_ESTARTING = -211,	/* it is starting, or belay-lvmlockd is */
	LD_EARGS = -212,	/* the VG does not carry our marker */
	LD_EMANAGER = -214,	/* belayd is not running */
	LD_EVGKILLED = -217,	/* lvmlockctl --kill */
	LD_EREMOVED = -219,	/* another node has removed the VG */
	LD_ELMERR = -221,	/* belayd had an error of its own: the log says which */
};

struct request_type {
	const char *name;
	/* lvmlockd's number of the operation, which answers repeat; 0: not of its protocol. */
	int number;
	/* Answers now, or later. */
	void (*handle)(struct lvmlockd *lvmlockd, struct connection *connection,
		       const struct message *message);
};

/* What most answers have; NULL: the field is as lvmlockd has it by default. */
struct answer {
	int result;
	const char *lock_type, *flags, *mode, *vg_lock_args, *lv_lock_args;
};

/* server.c: a request has come; bytes have come that are none, and the connection will be closed. */
void request_handle(struct connection *connection);
void request_refuse(struct connection *connection, int error);
/* The connection has ended: what was its own ends, too. Its closer has been called. */
void request_connection_ended(struct connection *connection);

/* As connection_send() of the last answer. */
bool request_answer(struct connection *connection, const struct answer *answer);
bool request_result(struct connection *connection, int result);
/* The same of a lock of type "dlm". */
bool request_lock_result(struct connection *connection, int result, const char *flags);

/* A text of the request; @fallback if there is none. */
const char *request_text(const struct message *message, const char *key, const char *fallback);
/* As LVM has them: of a VG or an LV; of 32 letters and digits, with hyphens. */
bool request_is_name(const char *text);
bool request_is_uuid(const char *text);
bool request_has_opt(const struct message *message, const char *word);
/* vg_name, if it is a name; else the request is answered by -EINVAL, and this is NULL. */
const char *request_vg_name(struct connection *connection, const struct message *message);
/* The same of the VG; -ENOLS: it is not started. */
struct vg *request_vg(struct lvmlockd *lvmlockd, struct connection *connection,
		      const struct message *message);

/* What belayd said of a lock, as lvm knows it; logged if it is not about other owners. */
int request_lock_error(const char *what, int result);

/* request_vg.c */
void request_running_lm(struct lvmlockd *, struct connection *, const struct message *);
void request_init_vg(struct lvmlockd *, struct connection *, const struct message *);
void request_start_vg(struct lvmlockd *, struct connection *, const struct message *);
void request_start_wait(struct lvmlockd *, struct connection *, const struct message *);
void request_stop_vg(struct lvmlockd *, struct connection *, const struct message *);
void request_stop_all(struct lvmlockd *, struct connection *, const struct message *);
void request_free_vg(struct lvmlockd *, struct connection *, const struct message *);
void request_busy_vg(struct lvmlockd *, struct connection *, const struct message *);
void request_rename_vg_before(struct lvmlockd *, struct connection *, const struct message *);
void request_vg_update(struct lvmlockd *, struct connection *, const struct message *);
void request_kill_vg(struct lvmlockd *, struct connection *, const struct message *);
/* Do a VG's lock_args carry our marker? */
bool vg_args_are_ours(const struct lvmlockd *lvmlockd, const char *args);
/* The group says that a node has removed the VG. */
void vg_note_removed(struct lvmlockd *lvmlockd, const char *name, const char *uuid);

/* request_lock.c */
struct hold {
	struct connection *connection;
	bool global;
	bool waiting;			/* a lock or a conversion is under way ... */
	enum lock_mode mode, wanted;	/* ... to that mode */
	char vg_name[STATE_NAME_MAX + 1];	/* "": global */
	struct lock *lock;
	TAILQ_ENTRY(hold) link;
};
void request_lock_gl(struct lvmlockd *, struct connection *, const struct message *);
void request_lock_vg(struct lvmlockd *, struct connection *, const struct message *);
void request_query_lock_gl(struct lvmlockd *, struct connection *, const struct message *);
void request_query_lock_vg(struct lvmlockd *, struct connection *, const struct message *);
/* The connection's lock on the VG; NULL name: the global lock. NULL: it has none. */
struct hold *hold_find(struct connection *connection, const char *vg_name);
void hold_release_all(struct connection *connection);
/* belayd is gone, and with it all of these locks. */
void hold_lost(struct lvmlockd *lvmlockd);

/* request_lv.c */
void request_lock_lv(struct lvmlockd *, struct connection *, const struct message *);
void request_query_lock_lv(struct lvmlockd *, struct connection *, const struct message *);
void request_init_lv(struct lvmlockd *, struct connection *, const struct message *);
void request_free_lv(struct lvmlockd *, struct connection *, const struct message *);
/* Its transient locks end. */
void volume_release_all(struct connection *connection);

/* request_admin.c */
void request_quit(struct lvmlockd *, struct connection *, const struct message *);
void request_info(struct lvmlockd *, struct connection *, const struct message *);
void request_dump(struct lvmlockd *, struct connection *, const struct message *);

#endif
