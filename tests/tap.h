/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * TAP, the Test Anything Protocol, for test programs in C. One program, one
 * counter; a failed check says where and what, and the program goes on.
 *
 *	int main(void)
 *	{
 *		ok(answer() > 0, "there is an answer");
 *		ok_int(answer(), 42, "and it is the right one");
 *		return done_testing();
 *	}
 *
 * Each ok*() returns whether it passed, so that what makes no sense after a
 * failure can be left out.
 */
#ifndef BELAY_TESTS_TAP_H
#define BELAY_TESTS_TAP_H

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef NDEBUG
#error tests need assert()
#endif

struct tap {
	unsigned planned, run, failed;
};

/* The one counter of the program, in whichever file asks: weak, for a static function had one per file. */
struct tap *tap_state(void);
__attribute__((weak)) struct tap *tap_state(void)
{
	static struct tap state;

	return &state;
}

__attribute__((format(printf, 1, 2)))
static inline void diag(const char *format, ...)
{
	va_list args;

	printf("# ");
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	fflush(stdout);
}

__attribute__((format(printf, 4, 0)))
static inline bool tap_vresult(bool pass, const char *file, int line, const char *format, va_list args)
{
	struct tap *tap = tap_state();

	tap->run++;
	printf("%sok %u - ", pass ? "" : "not ", tap->run);
	vprintf(format, args);
	printf("\n");
	if (!pass) {
		tap->failed++;
		printf("# failed at %s:%d\n", file, line);
	}
	/* What was said must not be lost, or said twice, if the test crashes or forks. */
	fflush(stdout);
	return pass;
}

__attribute__((format(printf, 4, 5)))
static inline bool tap_result(bool pass, const char *file, int line, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	pass = tap_vresult(pass, file, line, format, args);
	va_end(args);
	return pass;
}

__attribute__((format(printf, 5, 6)))
static inline bool tap_int(intmax_t got, intmax_t want, const char *file, int line, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)tap_vresult(got == want, file, line, format, args);
	va_end(args);
	if (got != want)
		diag("got %" PRIdMAX ", want %" PRIdMAX, got, want);
	return got == want;
}

__attribute__((format(printf, 5, 6)))
static inline bool tap_uint(uintmax_t got, uintmax_t want, const char *file, int line, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)tap_vresult(got == want, file, line, format, args);
	va_end(args);
	if (got != want)
		diag("got %" PRIuMAX ", want %" PRIuMAX, got, want);
	return got == want;
}

__attribute__((format(printf, 5, 6)))
static inline bool tap_str(const char *got, const char *want, const char *file, int line, const char *format, ...)
{
	bool pass = got && want ? strcmp(got, want) == 0 : got == want;
	va_list args;

	va_start(args, format);
	(void)tap_vresult(pass, file, line, format, args);
	va_end(args);
	if (!pass)
		diag("got \"%s\", want \"%s\"", got ? got : "(null)", want ? want : "(null)");
	return pass;
}

/* The condition holds. What follows is printf's: what is tested, and with what. */
#define ok(condition, ...) tap_result((condition), __FILE__, __LINE__, __VA_ARGS__)
/* Signed, unsigned and text: a failure shows both values. */
#define ok_int(got, want, ...) tap_int((got), (want), __FILE__, __LINE__, __VA_ARGS__)
#define ok_uint(got, want, ...) tap_uint((got), (want), __FILE__, __LINE__, __VA_ARGS__)
#define ok_str(got, want, ...) tap_str((got), (want), __FILE__, __LINE__, __VA_ARGS__)

/* Optional, first: how many checks there will be. */
static inline void plan(unsigned count)
{
	tap_state()->planned = count;
	printf("1..%u\n", count);
	fflush(stdout);
}

/* Instead of any check: this program cannot run here, and why. */
_Noreturn static inline void skip_all(const char *why)
{
	printf("1..0 # SKIP %s\n", why);
	exit(EXIT_SUCCESS);
}

/* No check makes sense any more. */
_Noreturn static inline void bail_out(const char *why)
{
	printf("Bail out! %s\n", why);
	exit(EXIT_FAILURE);
}

/* Last: main() returns what this returns. A program without checks fails. */
static inline int done_testing(void)
{
	const struct tap *tap = tap_state();

	if (tap->planned == 0)
		printf("1..%u\n", tap->run);
	else if (tap->planned != tap->run)
		diag("planned %u checks, ran %u", tap->planned, tap->run);
	if (tap->failed > 0)
		diag("%u of %u checks failed", tap->failed, tap->run);
	fflush(stdout);
	if (tap->run == 0 || tap->failed > 0 || (tap->planned != 0 && tap->planned != tap->run))
		return EXIT_FAILURE;
	return EXIT_SUCCESS;
}

#endif
