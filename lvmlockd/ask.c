/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lvmlockd/ask.h"

#include <assert.h>
#include <string.h>

#include "wire/cursor.h"

/* ---- words ---- */

bool ask_is_name(const char *name)
{
	static const char allowed[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+_.-";
	size_t size = strlen(name);

	return size > 0 && size <= ASK_NAME_MAX && name[0] != '-' && strspn(name, allowed) == size &&
	       strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

static bool is_uuid(const char *uuid)
{
	static const char allowed[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-";

	return strspn(uuid, allowed) == strlen(uuid);
}

const char *ask_mode_name(enum ask_mode mode)
{
	static const char *const name[ASK_MODE_COUNT] = { "un", "sh", "ex" };

	assert(mode < ASK_MODE_COUNT);
	return name[mode];
}

const char *ask_verb_name(enum ask_verb verb)
{
	static const char *const name[ASK_VERB_COUNT] = {
		[ASK_ACTIVATE] = "activate", [ASK_DEACTIVATE] = "deactivate", [ASK_REFRESH] = "refresh",
		[ASK_STATUS] = "status", [ASK_UNDO] = "undo", [ASK_KEEP] = "keep",
	};

	assert(verb < ASK_VERB_COUNT);
	return name[verb] ? name[verb] : "";
}

const char *ask_outcome_name(enum ask_outcome outcome)
{
	static const char *const name[ASK_OUTCOME_COUNT] = {
		[ASK_VERIFIED] = "verified", [ASK_UNVERIFIED] = "unverified", [ASK_FAILED] = "failed",
		[ASK_SHOWN] = "shown",
	};

	assert(outcome < ASK_OUTCOME_COUNT);
	return name[outcome] ? name[outcome] : "";
}

const char *ask_dm_name(enum ask_dm dm)
{
	static const char *const name[ASK_DM_COUNT] = {
		[ASK_DM_UNKNOWN] = "unknown", [ASK_DM_INACTIVE] = "inactive", [ASK_DM_ACTIVE] = "active",
		[ASK_DM_SUSPENDED] = "suspended", [ASK_DM_NO_TABLE] = "no table", [ASK_DM_ERROR] = "error target",
	};

	assert(dm < ASK_DM_COUNT);
	return name[dm];
}

/* ---- writing ---- */

static void put_text(struct writer *w, const char *text)
{
	size_t size = strlen(text);

	put_u16(w, (uint16_t)size);
	put_bytes(w, text, size);
}

static void put_lv(struct writer *w, const struct ask_lv *lv)
{
	put_text(w, lv->vg);
	put_text(w, lv->name);
	put_text(w, lv->uuid);
	put_u8(w, (uint8_t)lv->outcome);
	put_u8(w, lv->changed);
	put_u8(w, (uint8_t)lv->lock);
	put_u64(w, lv->since_s);
	put_u8(w, (uint8_t)lv->dm);
	put_u32(w, lv->open_count);
	put_u64(w, lv->size_bytes);
	put_u64(w, lv->lvm_size_bytes);
	put_text(w, lv->targets);
	put_text(w, lv->reason);
}

static void put_answer(struct writer *w, const struct ask_answer *answer)
{
	put_u8(w, (uint8_t)answer->kind);
	switch (answer->kind) {
	case ASK_PROGRESS:
		put_u32(w, answer->done);
		put_u32(w, answer->total);
		break;
	case ASK_LV:
		put_lv(w, &answer->lv);
		break;
	case ASK_END:
		put_u32(w, (uint32_t)answer->result);
		put_text(w, answer->text);
		break;
	case ASK_ANSWER_COUNT:
		break;
	}
}

static void put_request(struct writer *w, const struct ask_request *request)
{
	put_u8(w, (uint8_t)request->verb);
	put_u8(w, (uint8_t)request->mode);
	put_u8(w, request->no_vg_lock);
	put_u32(w, request->wait_ms);
	put_u64(w, request->about);
	put_text(w, request->vg);
	put_text(w, request->lv);
}

static void put_message(struct writer *w, const struct ask_message *m)
{
	put_u8(w, (uint8_t)m->kind);
	put_u64(w, m->id);
	put_u32(w, m->to);
	switch (m->kind) {
	case ASK_MEMBER:
		put_u8(w, m->member.adopted);
		break;
	case ASK_NOTICE:
		put_u8(w, (uint8_t)m->notice.what);
		put_text(w, m->notice.vg);
		put_text(w, m->notice.vg_uuid);
		break;
	case ASK_REQUEST:
		put_request(w, &m->request);
		break;
	case ASK_ANSWER:
		put_answer(w, &m->answer);
		break;
	case ASK_CANCEL:
	case ASK_KIND_COUNT:
		break;
	}
}

size_t ask_frame(uint8_t frame[ASK_FRAME_MAX])
{
	struct writer w = { .at = frame, .end = frame + ASK_FRAME_MAX };

	put_u16(&w, ASK_VERSION);
	return (size_t)(w.at - frame);
}

size_t ask_add(uint8_t frame[ASK_FRAME_MAX], size_t size, const struct ask_message *message)
{
	struct writer head = { .at = frame + size, .end = frame + ASK_FRAME_MAX };
	struct writer w = { .at = frame + size + 2, .end = frame + ASK_FRAME_MAX };

	if (size + 2 >= ASK_FRAME_MAX)
		return 0;
	put_message(&w, message);
	if (w.error < 0)
		return 0;
	put_u16(&head, (uint16_t)(w.at - head.at - 2));
	return (size_t)(w.at - frame);
}

/* ---- reading ---- */

static void get_text(struct reader *r, char *ret_text, size_t max)
{
	size_t size = get_u16(r);
	const uint8_t *bytes = get_bytes(r, size);

	ret_text[0] = '\0';
	if (!bytes)
		return;
	if (size > max || memchr(bytes, '\0', size)) {
		get_failed(r);
		return;
	}
	memcpy(ret_text, bytes, size);
	ret_text[size] = '\0';
}

/* A name; or none, where that says something. */
static void get_name(struct reader *r, bool may_be_empty, char ret_name[ASK_NAME_MAX + 1])
{
	get_text(r, ret_name, ASK_NAME_MAX);
	if (!ask_is_name(ret_name) && !(may_be_empty && ret_name[0] == '\0'))
		get_failed(r);
}

static void get_uuid(struct reader *r, char ret_uuid[ASK_UUID_MAX + 1])
{
	get_text(r, ret_uuid, ASK_UUID_MAX);
	if (!is_uuid(ret_uuid))
		get_failed(r);
}

static uint8_t get_enum(struct reader *r, uint8_t first, uint8_t count)
{
	uint8_t value = get_u8(r);

	if (value < first || value >= count) {
		get_failed(r);
		return first;
	}
	return value;
}

static void get_lv(struct reader *r, struct ask_lv *lv)
{
	get_name(r, false, lv->vg);
	get_name(r, false, lv->name);
	get_uuid(r, lv->uuid);
	lv->outcome = get_enum(r, ASK_VERIFIED, ASK_OUTCOME_COUNT);
	lv->changed = get_bool(r);
	lv->lock = get_enum(r, 0, ASK_MODE_COUNT);
	lv->since_s = get_u64(r);
	lv->dm = get_enum(r, 0, ASK_DM_COUNT);
	lv->open_count = get_u32(r);
	lv->size_bytes = get_u64(r);
	lv->lvm_size_bytes = get_u64(r);
	get_text(r, lv->targets, ASK_TARGETS_MAX);
	get_text(r, lv->reason, ASK_TEXT_MAX);
}

static void get_answer(struct reader *r, struct ask_answer *answer)
{
	answer->kind = get_enum(r, ASK_PROGRESS, ASK_ANSWER_COUNT);
	switch (answer->kind) {
	case ASK_PROGRESS:
		answer->done = get_u32(r);
		answer->total = get_u32(r);
		break;
	case ASK_LV:
		get_lv(r, &answer->lv);
		break;
	case ASK_END:
		answer->result = (int32_t)get_u32(r);
		get_text(r, answer->text, ASK_TEXT_MAX);
		if (answer->result > 0)
			get_failed(r);
		break;
	case ASK_ANSWER_COUNT:
		break;
	}
}

static void get_request(struct reader *r, struct ask_request *request)
{
	/* Not limited to what is known here: who asks must get an answer. */
	request->verb = get_u8(r);
	if (request->verb == 0 || request->verb > ASK_VERB_COUNT)
		request->verb = ASK_VERB_COUNT;
	request->mode = get_enum(r, 0, ASK_MODE_COUNT);
	request->no_vg_lock = get_bool(r);
	request->wait_ms = get_u32(r);
	request->about = get_u64(r);
	get_name(r, true, request->vg);
	get_name(r, true, request->lv);
}

static void get_body(struct reader *r, struct ask_message *m)
{
	switch (m->kind) {
	case ASK_MEMBER:
		m->member.adopted = get_bool(r);
		break;
	case ASK_NOTICE:
		m->notice.what = get_enum(r, ASK_VG_REMOVED, ASK_NOTICE_COUNT);
		get_name(r, false, m->notice.vg);
		get_uuid(r, m->notice.vg_uuid);
		break;
	case ASK_REQUEST:
		get_request(r, &m->request);
		break;
	case ASK_ANSWER:
		get_answer(r, &m->answer);
		break;
	case ASK_CANCEL:
	case ASK_KIND_COUNT:
		break;
	}
}

/* The bytes of the next message, in *ret_body; 1, 0 or a negative errno as ask_next(). */
static int next_body(const uint8_t *frame, size_t size, size_t *at, struct reader *ret_body)
{
	struct reader r = { .at = frame + *at, .end = frame + size };
	const uint8_t *bytes;
	size_t body_size;

	if (*at == 0 && get_u16(&r) != ASK_VERSION)
		return r.error < 0 ? r.error : -EPROTONOSUPPORT;
	if (r.error == 0 && r.at == r.end)
		return 0;
	body_size = get_u16(&r);
	bytes = get_bytes(&r, body_size);
	if (!bytes)
		return -EBADMSG;
	*at = (size_t)(r.at - frame);
	*ret_body = (struct reader){ .at = bytes, .end = bytes + body_size };
	return 1;
}

int ask_next(const uint8_t *frame, size_t size, size_t *at, struct ask_message *ret_message)
{
	struct ask_message m;
	struct reader r;
	uint8_t kind;
	int n;

	do {
		n = next_body(frame, size, at, &r);
		if (n <= 0)
			return n;
		kind = get_u8(&r);
	} while (r.error == 0 && kind >= ASK_KIND_COUNT);
	memset(&m, 0, sizeof(m));
	m.kind = kind;
	m.id = get_u64(&r);
	m.to = get_u32(&r);
	get_body(&r, &m);
	if (r.error < 0 || kind == 0)
		return -EBADMSG;
	*ret_message = m;
	return 1;
}
