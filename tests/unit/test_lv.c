/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * belay lv from the request to the last answer, on the group of one node: the
 * real group, coordinator, agent and worker; a program that does as lvm does with files in
 * place of LVs; device-mapper and locks of this test's own.
 */
#include <dirent.h>
#include <fcntl.h>
#include <qb/qblog.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lvmlockd/agent.h"
#include "lvmlockd/dm.h"
#include "lvmlockd/group.h"
#include "lvmlockd/lv.h"
#include "lvmlockd/message.h"
#include "lvmlockd/verify.h"
#include "lvmlockd/worker.h"
#include "tests/tap.h"

#define NS_PER_S UINT64_C(1000000000)

struct test {
	char dir[64], lvm[160];
	qb_loop_t *loop;
	struct worker *worker;
	struct dm_port dm;
	struct lvm_group *group;
	struct agent *agent;
	struct lv *lv;
	struct lv_run *run;
	/* What fake device-mapper and fake locks are to do. */
	int dm_error;
	int lock_result;
	bool lock_never, frozen, no_files;
	unsigned lock_calls, unlocks, withdrawn;
	dm_listed listed;
	void *listed_data;
	void (*locked)(void *context, int result, bool is_new);
	void *locked_context;
	char lock_path[160];
	/* Answers to the request of this id are given by hand. */
	bool slow, told_progress;
	uint64_t slow_id;
	/* What was answered. */
	char said[16384];
	int64_t result, verified;
	bool over;
};

/* ---- files in place of LVs: active/NAME holds how it is locked ---- */

static const char *path_of(const struct test *t, const char *name, char buf[160])
{
	snprintf(buf, 160, "%s/%s", t->dir, name);
	return buf;
}

static void write_file(const struct test *t, const char *name, const char *text)
{
	char path[160];
	FILE *file = fopen(path_of(t, name, path), "w");

	if (!file || fputs(text, file) < 0 || fclose(file) != 0)
		bail_out("no file can be written");
}

static bool has_file(const struct test *t, const char *name)
{
	char path[160];

	return access(path_of(t, name, path), F_OK) == 0;
}

static void remove_file(const struct test *t, const char *name)
{
	char path[160];

	unlink(path_of(t, name, path));
}

/* All that was written to it, in one line for each. */
static const char *log_of(const struct test *t, char *buf, size_t size)
{
	char path[160];
	int fd = open(path_of(t, "log", path), O_RDONLY);
	ssize_t n = fd < 0 ? 0 : read(fd, buf, size - 1);

	if (fd >= 0)
		close(fd);
	buf[n > 0 ? n : 0] = '\0';
	unlink(path);
	return buf;
}

/* The shell's own dollars. */
static void write_lvm(const struct test *t)
{
	char text[2048], path[160];

	snprintf(text, sizeof(text),
		"#!/bin/sh\n"
		"cd %s || exit 9\n"
		"command=$1; shift\n"
		"[ \"$command\" = lvs ] && { cat report; exit \"$(cat lvs.status 2>/dev/null || echo 0)\"; }\n"
		"echo \"$command $*\" >>log\n"
		"status=0\n"
		"for word; do\n"
		"  case $word in\n"
		"  -aey) how=ex ;; -asy) how=sh ;; -an) how=un ;; --refresh) how=refresh ;; --*) ;;\n"
		"  vg/*)\n"
		"    name=${word#vg/}\n"
		"    if [ -e lie ]; then continue; fi\n"
		"    if [ -e refuse.$name ]; then echo \"  LV locked by other host: $word\"; status=5\n"
		"    elif [ $how = un ]; then rm -f active.$name locked.$name\n"
		"    elif [ $how != refresh ]; then echo $how >active.$name; fi ;;\n"
		"  esac\n"
		"done\n"
		"exit $status\n", t->dir);
	write_file(t, "lvm", text);
	if (chmod(path_of(t, "lvm", path), 0700) < 0)
		bail_out("no program can be made");
}

#define UUID(c) #c #c #c #c #c #c "-" #c #c #c #c "-" #c #c #c #c "-" #c #c #c #c "-" #c #c #c #c "-" #c #c #c #c "-" \
	#c #c #c #c #c #c
#define ROW(c, layout) "{\"vg_name\":\"vg\",\"vg_uuid\":\"" UUID(v) "\"," \
	"\"vg_lock_type\":\"dlm\",\"lv_name\":\"" #c "\"," \
	"\"lv_uuid\":\"" UUID(c) "\",\"lv_size\":\"4096\",\"lv_layout\":\"" layout "\",\"lv_role\":\"public\"," \
	"\"pool_lv_uuid\":\"\",\"origin_uuid\":\"\",\"lv_skip_activation\":\"\"}"
#define REPORT(rows) "{\n \"report\": [ { \"lv\": [ " rows " ] } ] }\n"

/* ---- device-mapper: what active.NAME there is ---- */

static void on_dm_turn(void *data)
{
	struct test *t = data;
	struct dm_device device[3] = { { .name = "" } };
	struct dm_devices devices = { .device = device };
	dm_listed done = t->listed;
	char name[16];

	for (char c = 'a'; c <= 'c'; c++) {
		struct lvs_lv lv = { .vg_uuid = UUID(v) };

		snprintf(name, sizeof(name), "active.%c", c);
		if (!has_file(t, name))
			continue;
		strcpy(lv.uuid, UUID(a));
		for (char *at = lv.uuid; *at; at++)
			if (*at != '-')
				*at = c;
		verify_dm_uuid(&lv, device[devices.count].uuid);
		snprintf(device[devices.count].name, sizeof(device[0].name), "vg-%c", c);
		device[devices.count].live = true;
		device[devices.count].suspended = t->frozen;
		device[devices.count].size_bytes = 4096;
		strcpy(device[devices.count++].targets, "linear");
	}
	t->listed = NULL;
	done(t->listed_data, t->dm_error, t->dm_error < 0 ? NULL : &devices);
}

static int dm_list(void *context, bool tables, dm_listed done, void *data)
{
	struct test *t = context;
	qb_loop_timer_handle timer;

	(void)tables;
	t->listed = done;
	t->listed_data = data;
	return qb_loop_timer_add(t->loop, QB_LOOP_MED, 1, t, on_dm_turn, &timer);
}

/* ---- locks: active.NAME, or locked.NAME if it was waited for ---- */

static enum ask_mode held(void *context, const char *uuid, uint64_t *ret_since_s)
{
	struct test *t = context;
	char name[16];

	*ret_since_s = 17;
	snprintf(name, sizeof(name), "locked.%c", uuid[0]);
	if (has_file(t, name))
		return ASK_EX;
	snprintf(name, sizeof(name), "active.%c", uuid[0]);
	if (has_file(t, name)) {
		char path[160], how[8] = "";
		FILE *file = fopen(path_of(t, name, path), "r");

		if (!file || !fgets(how, sizeof(how), file) || fclose(file) != 0)
			bail_out("a file cannot be read");
		return how[0] == 'e' ? ASK_EX : ASK_SH;
	}
	return ASK_UN;
}

/* Without any more of them no program can be started. */
static void allow_files(rlim_t count)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		bail_out("no limit of files");
	limit.rlim_cur = count;
	if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
		bail_out("no other limit of files");
}

static void on_lock_turn(void *data)
{
	struct test *t = data;

	if (t->lock_result == 0)
		write_file(t, t->lock_path, "ex");
	if (t->no_files)
		allow_files(0);
	t->locked(t->locked_context, t->lock_result, true);
}

static bool lost(void *context, const char *uuid)
{
	(void)context;
	(void)uuid;
	return false;
}

static int lock(void *context, const char *vg, const char *lv, const char *uuid, enum ask_mode mode,
		uint32_t timeout_ms, void (*done)(void *done_context, int result, bool is_new),
		void *done_context, uint64_t *ret_ticket)
{
	struct test *t = context;
	qb_loop_timer_handle timer;

	(void)vg;
	(void)lv;
	(void)mode;
	(void)timeout_ms;
	t->lock_calls++;
	snprintf(t->lock_path, sizeof(t->lock_path), "locked.%c", uuid[0]);
	t->locked = done;
	t->locked_context = done_context;
	*ret_ticket = t->lock_calls;
	if (t->lock_never) {
		lv_abandon(t->run);
		return 0;
	}
	return qb_loop_timer_add(t->loop, QB_LOOP_MED, 1, t, on_lock_turn, &timer);
}

static void withdraw(void *context, uint64_t ticket)
{
	struct test *t = context;

	(void)ticket;
	t->withdrawn++;
	/* Nobody is left to be told: enough of it. */
	qb_loop_stop(t->loop);
}

static void unlock(void *context, const char *uuid)
{
	struct test *t = context;
	char name[16];

	t->unlocks++;
	snprintf(name, sizeof(name), "locked.%c", uuid[0]);
	remove_file(t, name);
}

/* What on_quorum_loss = freeze has done to LV b, if that is the test. */
static const char *policy(void *context, const char *dm_uuid)
{
	const struct test *t = context;

	return t->frozen && strstr(dm_uuid, "bbbb") ? "frozen" : "";
}

/* ---- what is answered: one line for each ---- */

static void put(struct test *t, const char *text)
{
	size_t size = strlen(t->said);

	snprintf(t->said + size, sizeof(t->said) - size, "%s", text);
}

static void on_send(void *context, const char *text, size_t size, bool last)
{
	static const char *const keys[] = { "kind", "lv", "outcome", "reason", "op_result", "text" };
	struct test *t = context;
	struct message *m = calloc(1, sizeof(*m));
	char number[32];

	if (!m || message_parse(text, size, m) < 0)
		bail_out("an answer cannot be read");
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (message_text(m, keys[i]) && *message_text(m, keys[i])) {
			put(t, message_text(m, keys[i]));
			put(t, " ");
		} else if (message_number(m, keys[i], 1) <= 0) {
			snprintf(number, sizeof(number), "%" PRId64 " ", message_number(m, keys[i], 1));
			put(t, number);
		}
	}
	put(t, "\n");
	if (last) {
		t->result = message_number(m, "op_result", 1);
		t->verified = message_number(m, "verified", -1);
		t->over = true;
		qb_loop_stop(t->loop);
	}
	free(m);
}

static bool said(const struct test *t, const char *part)
{
	if (strstr(t->said, part))
		return true;
	diag("not said: \"%s\"; but: %s", part, t->said);
	return false;
}

static void on_stuck(void *data)
{
	(void)data;
	bail_out("nothing is answered");
}

/* A request by its fields, "verb = ...": 0, or what it was refused with. */
static int ask(struct test *t, const char *fields)
{
	const struct lv_sink sink = { .send = on_send, .context = t };
	struct message *m = calloc(1, sizeof(*m));
	qb_loop_timer_handle timer;
	char text[1024];
	const char *why;
	int r;

	snprintf(text, sizeof(text), "request = \"belay_lv\"\n%s\n##\n", fields);
	if (!m || message_parse(text, strlen(text), m) < 0)
		bail_out("the test's own request cannot be read");
	t->said[0] = '\0';
	t->over = false;
	r = lv_request(t->lv, m, &sink, &t->run, &why);
	free(m);
	if (r < 0) {
		put(t, why);
		return r;
	}
	qb_loop_timer_add(t->loop, QB_LOOP_MED, 30 * NS_PER_S, NULL, on_stuck, &timer);
	qb_loop_run(t->loop);
	qb_loop_timer_del(t->loop, timer);
	return 0;
}

/* ---- the tests ---- */

static void test_one(struct test *t)
{
	char log[1024];

	(void)log_of(t, log, sizeof(log));
	ok_int(ask(t, "verb = \"activate\"\nvg = \"vg\"\nlv = \"a\"\n"), 0, "activate an LV");
	ok(t->result == 0 && t->verified == 1, "is done, and verified");
	ok(said(t, "lv a verified"), "and told");
	ok(strncmp(t->said, "asked", 5) == 0, "first is told who is asked");
	ok_str(log_of(t, log, sizeof(log)), "lvchange -aey vg/a\n", "lvm was run, exclusively, once");
	ok_int(ask(t, "verb = \"activate\"\nvg = \"vg\"\nlv = \"a\"\n"), 0, "again");
	ok(t->result == 0 && t->verified == 1, "is as well");
	ok_int(ask(t, "verb = \"status\"\nvg = \"vg\"\nnodes = \"*\"\n"), 0, "status");
	ok(t->result == 0 && said(t, "lv a shown"), "tells of it");
	(void)log_of(t, log, sizeof(log));
	ok_int(ask(t, "verb = \"refresh\"\nvg = \"vg\"\nlv = \"a\"\n"), 0, "refresh it");
	ok(t->result == 0 && t->verified == 1, "is done, and verified");
	ok_str(log_of(t, log, sizeof(log)), "lvchange --refresh vg/a\n", "by lvm");
	ok_int(ask(t, "verb = \"deactivate\"\nvg = \"vg\"\nlv = \"a\"\n"), 0, "deactivate it");
	ok(t->result == 0 && t->verified == 1 && !has_file(t, "active.a"), "is done, and verified");
}

static void test_all_of_vg(struct test *t)
{
	char log[1024];

	(void)log_of(t, log, sizeof(log));
	ok_int(ask(t, "verb = \"activate\"\nvg = \"vg\"\nnodes = \"*\"\n"), 0, "all of a VG, shared");
	ok(t->result < 0 && said(t, "lv c failed it is thin"), "fails, for one of them is thin");
	ok(said(t, "lv a verified") && said(t, "lv b verified"), "the others were active");
	ok_str(log_of(t, log, sizeof(log)), "lvchange -asy vg/a vg/b\nlvchange -an vg/a vg/b\n",
	       "by one run of lvm, and were deactivated again by another");
	ok(said(t, "undone 0") && !has_file(t, "active.a"), "that is told");
	ok_int(ask(t, "verb = \"activate\"\nvg = \"vg\"\nnodes = \"*\"\nkeep_partial = 1\n"), 0, "or they are to stay");
	ok(t->result < 0 && has_file(t, "active.a") && has_file(t, "active.b"), "then they do");
	ok_int(ask(t, "verb = \"activate\"\nvg = \"vg\"\nmode = \"ex\"\nlv = \"b\"\n"), 0,
	       "one that was active before");
	ok_int(ask(t, "verb = \"activate\"\nvg = \"vg\"\nmode = \"sh\"\n"), 0, "is not deactivated with the others");
	ok(t->result < 0 && has_file(t, "active.b"), "when something fails");
	ok(t->lock_calls > 0, "but locked exclusively again");
	ok_int(ask(t, "verb = \"deactivate\"\nvg = \"vg\"\n"), 0, "all are deactivated");
	ok(t->result == 0 && t->verified == 1 && !has_file(t, "active.b"), "at once");
}

static void test_refusals(struct test *t)
{
	write_file(t, "refuse.b", "");
	ok_int(ask(t, "verb = \"activate\"\nvg = \"vg\"\nlv = \"b\"\n"), 0, "what lvm refuses");
	ok(t->result < 0 && said(t, "lv b failed another node has it locked"), "is explained");
	remove_file(t, "refuse.b");
	write_file(t, "lie", "");
	ok_int(ask(t, "verb = \"activate\"\nvg = \"vg\"\nlv = \"b\"\n"), 0, "lvm says that it is done, and it is not");
	ok(t->result < 0 && said(t, "lv b failed"), "that is not believed");
	remove_file(t, "lie");
	write_file(t, "lvs.status", "5");
	ok_int(ask(t, "verb = \"activate\"\nvg = \"vg\"\nlv = \"b\"\n"), 0, "lvm knows no such LV");
	ok(t->result < 0 && said(t, "node -2"), "then lvm is not run for it");
	remove_file(t, "lvs.status");
	write_file(t, "active.b", "ex");
	t->frozen = true;
	ok_int(ask(t, "verb = \"status\"\nvg = \"vg\"\n"), 0, "an LV that was frozen for want of quorum");
	ok(said(t, "for want of quorum"), "is told to be");
	t->frozen = false;
	remove_file(t, "active.b");
	t->dm_error = -ENODEV;
	ok_int(ask(t, "verb = \"activate\"\nvg = \"vg\"\nlv = \"b\"\n"), 0, "without device-mapper");
	ok(t->result == 0 && t->verified == 0 && said(t, "no device-mapper"), "it is done as far as lvm knows");
	ok_int(ask(t, "verb = \"deactivate\"\nvg = \"vg\"\nlv = \"b\"\n"), 0, "and back");
	t->dm_error = 0;
}

static void test_waiting(struct test *t)
{
	char log[1024];

	(void)log_of(t, log, sizeof(log));
	ok_int(ask(t, "verb = \"activate\"\nvg = \"vg\"\nlv = \"a\"\ntimeout_ms = 1000\n"), 0, "one that may wait");
	ok(t->result == 0 && t->verified == 1 && has_file(t, "locked.a"), "has the lock first");
	ok_int(ask(t, "verb = \"deactivate\"\nvg = \"vg\"\nlv = \"a\"\n"), 0, "and is deactivated");
	(void)log_of(t, log, sizeof(log));
	t->lock_result = -EAGAIN;
	ok_int(ask(t, "verb = \"activate\"\nvg = \"vg\"\nlv = \"a\"\ntimeout_ms = 1500\n"), 0, "if it waited in vain");
	ok(t->result < 0 && said(t, "for all of the 1.5 s"), "that is told");
	ok_str(log_of(t, log, sizeof(log)), "", "and lvm is not run");
	t->lock_result = 0;
	t->unlocks = 0;
	write_file(t, "lie", "");
	ok_int(ask(t, "verb = \"activate\"\nvg = \"vg\"\nlv = \"a\"\ntimeout_ms = 1000\n"), 0, "if lvm then fails");
	ok(t->result < 0 && t->unlocks == 1 && !has_file(t, "locked.a"), "the lock is given back");
	remove_file(t, "lie");
	t->unlocks = 0;
	t->no_files = true;
	ok_int(ask(t, "verb = \"activate\"\nvg = \"vg\"\nlv = \"a\"\ntimeout_ms = 1000\n"), 0, "if lvm cannot be run");
	allow_files(256);
	t->no_files = false;
	ok(t->result < 0 && said(t, "lvm could not be run"), "that is told");
	ok(t->unlocks == 1 && !has_file(t, "locked.a"), "and the lock is given back");
	(void)log_of(t, log, sizeof(log));
	t->lock_never = true;
	ok_int(ask(t, "verb = \"activate\"\nvg = \"vg\"\nlv = \"a\"\ntimeout_ms = 60000\n"), 0,
	       "who gave the command goes while it waits");
	ok_uint(t->withdrawn, 1, "then it waits no more");
	ok(!t->over, "and nobody is told");
	t->lock_never = false;
	ok_int(ask(t, "verb = \"status\"\nvg = \"vg\"\n"), 0, "the next one is served");
	ok_str(log_of(t, log, sizeof(log)), "", "and nothing was done");
}

static void test_senseless(struct test *t)
{
	static const struct {
		const char *fields, *why;
	} bad[] = {
		{ "verb = \"format\"\nvg = \"vg\"\n", "no such command" },
		{ "vg = \"vg\"\n", "no such command" },
		{ "verb = \"activate\"\n", "no name" },
		{ "verb = \"activate\"\nvg = \"--all\"\n", "no name" },
		{ "verb = \"activate\"\nvg = \"vg\"\nlv = \"a b\"\n", "no name" },
		{ "verb = \"activate\"\nvg = \"vg\"\nnodes = \"9\"\n", "no such node" },
		{ "verb = \"activate\"\nvg = \"vg\"\nnodes = \"\"\n", "no such node" },
		{ "verb = \"activate\"\nvg = \"vg\"\nmode = \"exclusive\"\n", "ex or sh" },
		{ "verb = \"activate\"\nvg = \"vg\"\ntimeout_ms = -1\n", "timeout" },
		{ "verb = \"deactivate\"\nvg = \"vg\"\ntimeout_ms = 5\n", "timeout" },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ok(ask(t, bad[i].fields) == -EINVAL && said(t, bad[i].why), "%s", bad[i].why);
}

static void test_refresh_others(struct test *t)
{
	struct lv_refresh *refresh;

	ok_int(lv_refresh_others(t->lv, "/dev/vg/a", NULL, NULL, &refresh), 1, "alone there is nobody to refresh");
	ok_int(lv_refresh_others(t->lv, "vg", NULL, NULL, &refresh), -EINVAL, "a path without a VG is none");
	ok_int(lv_refresh_others(t->lv, "/dev/v g/a", NULL, NULL, &refresh), -EINVAL, "nor is one of no names");
}

/* ---- a node that is slow ---- */

static void on_slow(void *data)
{
	struct test *t = data;
	const struct ask_answer answer = { .kind = t->told_progress ? ASK_END : ASK_PROGRESS };

	t->told_progress = true;
	if (lvm_group_answer(t->group, 1, t->slow_id, &answer) < 0)
		bail_out("no answer can be given");
}

static void on_slow_answer(void *context, uint32_t node, const struct ask_answer *answer)
{
	struct test *t = context;

	(void)node;
	if (answer->kind != ASK_END)
		return;
	t->result = answer->result;
	qb_loop_stop(t->loop);
}

/* The group adds 3 s to a deadline, so the last answer comes behind that, but soon after the first. */
static void test_slow(struct test *t)
{
	const struct ask_request request = { .verb = ASK_STATUS };
	const uint32_t self = 1;
	qb_loop_timer_handle timer;
	uint64_t id;

	t->slow = true;
	t->result = -1;
	if (qb_loop_timer_add(t->loop, QB_LOOP_MED, 2 * NS_PER_S, t, on_slow, &timer) < 0 ||
	    qb_loop_timer_add(t->loop, QB_LOOP_MED, 4 * NS_PER_S, t, on_slow, &timer) < 0)
		bail_out("no memory");
	ok_int(lvm_group_ask(t->group, &request, 0, &self, 1, on_slow_answer, t, &id), 0, "ask a slow node");
	qb_loop_run(t->loop);
	ok(t->told_progress && t->result == 0, "who tells progress has time");
	t->slow = false;
}

/* ---- set up ---- */

static void on_request(void *context, uint32_t node, uint64_t id, const struct ask_request *request)
{
	struct test *t = context;

	if (t->slow)
		t->slow_id = id;
	else
		agent_request(t->agent, node, id, request);
}

static void on_cancel(void *context, uint32_t node, uint64_t id)
{
	agent_cancel(((struct test *)context)->agent, node, id);
}

static void on_members(void *context)
{
	struct test *t = context;

	qb_loop_stop(t->loop);
}

static void set_up(struct test *t)
{
	const struct lvm_group_handlers handlers = {
		.on_members = on_members, .on_request = on_request, .on_cancel = on_cancel, .context = t,
	};
	const char *why;

	if (!mkdtemp(t->dir))
		bail_out("no temporary directory");
	write_lvm(t);
	write_file(t, "report", REPORT(ROW(a, "linear") "," ROW(b, "linear") "," ROW(c, "thin,sparse")));
	t->loop = qb_loop_create();
	t->dm = (struct dm_port){ .list = dm_list, .context = t };
	if (!t->loop || worker_new(t->loop, &t->worker) < 0 ||
	    lvm_group_open(t->loop, true, 1, &handlers, &t->group, &why) < 0 ||
	    lv_open(20000, &t->lv) < 0)
		bail_out("no memory");
	{
		const struct agent_setup setup = {
			.worker = t->worker, .dm = &t->dm, .lvm_path = path_of(t, "lvm", t->lvm),
			.command_timeout_ms = 20000,
			.locks = {
				.held = held, .lost = lost, .lock = lock, .withdraw = withdraw, .unlock = unlock,
				.policy = policy, .context = t,
			},
		};

		if (agent_open(&setup, &t->agent) < 0)
			bail_out("no memory");
		lv_regroup(t->lv, t->group);
		agent_regroup(t->agent, t->group);
		/* Until the group has its first view. */
		qb_loop_run(t->loop);
	}
}

int main(void)
{
	struct test *t = calloc(1, sizeof(*t));
	char command[96];

	if (!t)
		bail_out("no memory");
	strcpy(t->dir, "/tmp/belay-lv.XXXXXX");
	qb_log_init("test_lv", LOG_USER, LOG_EMERG);
	set_up(t);
	test_all_of_vg(t);
	test_senseless(t);
	test_refresh_others(t);
	/* Of one LV the report is of one, too. */
	write_file(t, "report", REPORT(ROW(b, "linear")));
	test_refusals(t);
	write_file(t, "report", REPORT(ROW(a, "linear")));
	test_one(t);
	test_waiting(t);
	test_slow(t);
	lvm_group_close(t->group);
	lv_close(t->lv);
	agent_close(t->agent);
	worker_free(t->worker);
	qb_loop_destroy(t->loop);
	snprintf(command, sizeof(command), "rm -rf %s", t->dir);
	if (system(command) != 0)
		diag("%s is left", t->dir);
	free(t);
	return done_testing();
}
