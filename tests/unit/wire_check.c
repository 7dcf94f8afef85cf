/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/wire_check.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <unistd.h>

#include "tests/fuzz/law.h"
#include "tests/tap.h"
#include "tests/unit/wire_samples.h"

__attribute__((format(printf, 2, 3)))
static void add(char *text, const char *format, ...)
{
	size_t used = strlen(text);
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text + used, CHECK_TEXT_MAX - used, format, args);
	va_end(args);
}

static void add_key(char *text, const struct belay_key *key)
{
	add(text, " key=%" PRIx32 "/", key->lockspace);
	for (size_t i = 0; i < sizeof(key->id); i++)
		add(text, "%02x", key->id[i]);
}

static void add_range(char *text, const struct belay_range *range)
{
	add(text, " range=%" PRIu64 "-%" PRIu64, range->start, range->end);
}

static void add_owner(char *text, const struct belay_owner *owner)
{
	add(text, " owner=%" PRIu32 "/%" PRIu32 "/%" PRIu64 "/%" PRIu32 "/%u", owner->node,
	    owner->client, owner->key, owner->pid, (unsigned)owner->kind);
}

void text_of_frame(const struct belay_frame *frame, char *ret_text)
{
	*ret_text = 0;
	add(ret_text, "node=%" PRIu32 " incarnation=%" PRIu64 " seq=%" PRIu64 " ask=%d acks=%" PRIu32,
	    frame->node, frame->incarnation, frame->seq, frame->ask, frame->ack_count);
	for (uint32_t i = 0; i < frame->ack_count; i++)
		add(ret_text, " %" PRIu32 "/%" PRIu64 "/%" PRIu64, frame->ack[i].node,
		    frame->ack[i].incarnation, frame->ack[i].seq);
}

void text_of_op(const struct belay_op *op, char *ret_text)
{
	*ret_text = 0;
	add(ret_text, "type=%u mode=%u wait=%d test=%d held=%d synced=%d keep=%d node=%" PRIu32
	    " request=%" PRIu32 " members=%" PRIu32, (unsigned)op->type, (unsigned)op->mode,
	    op->wait, op->test, op->held, op->synced, op->keep, op->node, op->request, op->members);
	add_key(ret_text, &op->key);
	add_range(ret_text, &op->range);
	add_owner(ret_text, &op->owner);
	add(ret_text, " epoch=%" PRIu64 " token=%" PRIu64 " place=%" PRIu64 " hash=%" PRIx64
	    " incarnation=%" PRIu64, op->epoch, op->token, op->place, op->hash, op->incarnation);
	add(ret_text, " limits=%" PRIu32 "/%" PRIu32 "/%" PRIu32 "/%" PRIu32,
	    op->limits.resources_max, op->limits.locks_max, op->limits.waiters_max,
	    op->limits.locks_per_owner_max);
}

void text_of_snapshot(const struct wire_snapshot *head, char *ret_text)
{
	*ret_text = 0;
	add(ret_text, "node=%" PRIu32 "/%" PRIu64 " to=%" PRIu32 "/%" PRIu64 " place=%" PRIu64
	    " part=%" PRIu32 " last=%d", head->node, head->incarnation, head->to,
	    head->to_incarnation, head->place, head->part, head->last);
}

void text_of_record(const struct belay_record *record, char *ret_text)
{
	*ret_text = 0;
	add(ret_text, "type=%u place=%" PRIu64 " token=%" PRIu64 " epoch=%" PRIu64 " queue=%" PRIu64
	    " hash=%" PRIx64 " count=%" PRIu64, (unsigned)record->type, record->place, record->token,
	    record->epoch, record->queue, record->hash, record->count);
	add(ret_text, " node=%" PRIu32 " standing=%u synced=%d incarnation=%" PRIu64 " seq=%" PRIu64
	    " number=%" PRIu32, record->node, (unsigned)record->standing, record->synced,
	    record->incarnation, record->seq, record->number);
	add_owner(ret_text, &record->owner);
	add_key(ret_text, &record->key);
	add(ret_text, " of=%" PRIu32 "/%" PRIu32, record->resource_number, record->owner_number);
	add_range(ret_text, &record->range);
	add(ret_text, " mode=%u request=%" PRIu32 " wait=%d test=%d staged=%d recalled=%d",
	    (unsigned)record->mode, record->request, record->wait, record->test, record->staged,
	    record->recalled);
}

void text_of_hint(const struct belay_hint *hint, char *ret_text)
{
	*ret_text = 0;
	add(ret_text, "node=%" PRIu32 "/%" PRIu64 " to=%" PRIu64 "/%" PRIu32 "/%" PRIx64 " seq=%" PRIu64
	    " request=%" PRIu32 " token=%" PRIu64, hint->node, hint->incarnation,
	    hint->to_incarnation, hint->waiter, hint->prefix, hint->seq, hint->request, hint->token);
	add_key(ret_text, &hint->key);
	add_range(ret_text, &hint->range);
	add_owner(ret_text, &hint->owner);
}

void text_of_message(const struct client_message *m, char *ret_text)
{
	*ret_text = 0;
	add(ret_text, "type=%u magic=%" PRIx32 " version=%" PRIu32 " node=%" PRIu32 " number=%" PRIu32
	    " handle=%" PRIu32 " resource=%" PRIu32 " result=%" PRId32 " kind=%u mode=%u wait=%d"
	    " lend=%d held=%d more=%d cell=%" PRIu32 " slot=%" PRIu32 " epoch=%" PRIx32 " room=%" PRIu32
	    " messages=%" PRIu32,
	    (unsigned)m->type, m->magic, m->version, m->node, m->number, m->handle, m->resource,
	    m->result, (unsigned)m->kind, (unsigned)m->mode, m->wait, m->lend, m->held, m->more,
	    m->cell, m->slot, m->epoch, m->room, m->messages);
	add_range(ret_text, &m->range);
	add_owner(ret_text, &m->owner);
	add(ret_text, " token=%" PRIu64 " text=%u:%.*s text2=%u:%.*s", m->token, m->text_size,
	    (int)m->text_size, m->text_size > 0 ? m->text : "", m->text2_size,
	    (int)m->text2_size, m->text2_size > 0 ? m->text2 : "");
}

void ok_hex(const uint8_t *bytes, size_t size, const char *want, const char *what)
{
	uint8_t want_bytes[4096];
	size_t want_size = sample_bytes(want, want_bytes, sizeof(want_bytes));

	if (ok(size == want_size && memcmp(bytes, want_bytes, size) == 0, "%s: its bytes", what))
		return;
	printf("# got  ");
	for (size_t i = 0; i < size; i++)
		printf("%02x", bytes[i]);
	printf("\n# want %s\n", want);
}

/* Judged in memory of its own, so that a sanitizer sees one byte too many. */
static int judge(law_function *law, const uint8_t *bytes, size_t size)
{
	uint8_t *copy = malloc(size);
	int r;

	if (!copy)
		bail_out("no memory");
	memcpy(copy, bytes, size);
	r = law(copy, size);
	free(copy);
	return r;
}

static unsigned count_bad_cuts(law_function *law, const uint8_t *bytes, size_t size)
{
	unsigned bad = 0;

	for (size_t cut = 1; cut < size; cut++) {
		if (judge(law, bytes, cut) != -EBADMSG) {
			diag("cut to %zu bytes it is accepted", cut);
			bad++;
		}
	}
	return bad;
}

/* All values of all bytes: whether a message with one byte changed is accepted is not the question. */
static unsigned count_broken(law_function *law, const uint8_t *bytes, size_t size)
{
	uint8_t *copy = malloc(size);
	unsigned broken = 0;

	if (!copy)
		bail_out("no memory");
	memcpy(copy, bytes, size);
	for (size_t at = 0; at < size; at++) {
		for (unsigned change = 1; change <= UINT8_MAX; change++) {
			copy[at] = (uint8_t)(bytes[at] ^ change);
			if (law(copy, size) == LAW_BROKEN) {
				diag("byte %zu changed to %02x breaks the law", at, copy[at]);
				broken++;
			}
		}
		copy[at] = bytes[at];
	}
	free(copy);
	return broken;
}

void ok_law(law_function *law, const uint8_t *bytes, size_t size, const char *what)
{
	ok_int(law(bytes, size), 0, "%s: decoded and encoded again it is the same", what);
	ok_uint(count_bad_cuts(law, bytes, size), 0, "%s: no truncation of it is accepted", what);
	ok_uint(count_broken(law, bytes, size), 0, "%s: damaged, it is rejected or another message", what);
}

void ok_rejected(law_function *law, const char *hex, int error, const char *what)
{
	uint8_t bytes[4096];
	size_t size = sample_bytes(hex, bytes, sizeof(bytes));

	ok_int(judge(law, bytes, size), error, "rejected: %s", what);
}

static sigjmp_buf *abort_exit(void)
{
	static sigjmp_buf exit;

	return &exit;
}

static void on_abort(int signal)
{
	(void)signal;
	siglongjmp(*abort_exit(), 1);
}

void ok_asserts(void (*function)(void *context), void *context, const char *what)
{
	struct sigaction action = { .sa_handler = on_abort }, saved;
	int quiet = open("/dev/null", O_WRONLY | O_CLOEXEC);
	int tongue = dup(STDERR_FILENO);
	volatile bool asserted = true;

	if (quiet < 0 || tongue < 0 || sigaction(SIGABRT, &action, &saved) < 0)
		bail_out("cannot catch an assert");
	(void)fflush(stderr);
	(void)dup2(quiet, STDERR_FILENO);
	if (sigsetjmp(*abort_exit(), 1) == 0) {
		function(context);
		asserted = false;
	}
	(void)dup2(tongue, STDERR_FILENO);
	(void)close(tongue);
	(void)close(quiet);
	(void)sigaction(SIGABRT, &saved, NULL);
	ok(asserted, "asserted: %s", what);
}
