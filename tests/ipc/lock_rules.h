/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Between the parts of lock_rules: the rules, and what they print by. */
#ifndef BELAY_TESTS_IPC_LOCK_RULES_H
#define BELAY_TESTS_IPC_LOCK_RULES_H

#include <stddef.h>
#include <sys/types.h>

extern const char *rules_path;

/* The file, opened once more; exits if it cannot be. */
int rules_open(int flags);
/* "ok", or the name of errno. */
const char *rules_error(int r);
/* fcntl() on bytes from the start. */
int rules_lock(int fd, int cmd, int type, off_t start, off_t length);
/* Print what came of it. */
void rules_say(const char *what, int r);

void rules_other_begin(void);
/* Have the other process do something, and print what it says: l lock, w wait for, f flock(), g F_GETLK, c close. */
void rules_other(const char *what, char op, int type, off_t start, off_t length);
/* The same in two steps. */
void rules_ask(char op, int type, off_t start, off_t length);
void rules_hear(const char *what);
/* Print what it finds locked: X exclusively, r shared. */
void rules_map(const char *what);

void rule_arguments(void);
void rule_random(void);
void rule_close(void);
void rule_copies(void);
void rule_streams(void);
void rule_children(void);
void rule_flock(void);
void rule_ofd(void);
void rule_lockf(void);
void rule_holder(void);
void rule_wait(void);
void rule_signals(void);
void rule_jump(void);
void rule_deadlock(void);
void rule_threads(void);
void rule_handler(void);
void rule_handler_of_two(void);
void rule_jump_busy(void);
void rule_tidy(void);
void rule_many(void);

#endif
