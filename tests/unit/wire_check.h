/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the tests of the codecs share: values as text, to compare and to
 * show; bytes as hex; damage; and asserts that must fire.
 */
#ifndef BELAY_TESTS_WIRE_CHECK_H
#define BELAY_TESTS_WIRE_CHECK_H

#include "wire/client.h"
#include "wire/hint.h"
#include "wire/wire.h"

#define CHECK_TEXT_MAX 2048u

/* All fields, used or not. */
void text_of_frame(const struct belay_frame *frame, char *ret_text);
void text_of_op(const struct belay_op *op, char *ret_text);
void text_of_snapshot(const struct wire_snapshot *head, char *ret_text);
void text_of_record(const struct belay_record *record, char *ret_text);
void text_of_hint(const struct belay_hint *hint, char *ret_text);
void text_of_message(const struct client_message *m, char *ret_text);

/* A check of its own: these bytes are the hex of @want. */
void ok_hex(const uint8_t *bytes, size_t size, const char *want, const char *what);

typedef int law_function(const uint8_t *bytes, size_t size);

/* Checks: the message keeps the law; every truncation is -EBADMSG; damage to any byte keeps the law. */
void ok_law(law_function *law, const uint8_t *bytes, size_t size, const char *what);

/* A check: @hex is rejected with @error. */
void ok_rejected(law_function *law, const char *hex, int error, const char *what);

/* A check: the function fails an assert. */
void ok_asserts(void (*function)(void *context), void *context, const char *what);

#endif
