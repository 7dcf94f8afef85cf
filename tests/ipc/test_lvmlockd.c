/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lvmlockd's protocol, as commands of lvm and lvmlockctl speak it: every request, what each is
 * answered, and what becomes of a connection's locks. The real belayd and belay-lvmlockd,
 * of a node alone; where another node is needed, a client of belayd plays it.
 */
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "include/belay.h"
#include "tests/ipc/lvmlockd.h"
#include "tests/tap.h"

#define UUID "vJOFl3-bqku-43jH-adfv-BRrX-whJD-06OuzE"
#define VG "vg_name = \"vg0\"\nvg_lock_type = \"none\"\nvg_lock_args = \"none\"\n"
#define LV "vg_name = \"vg0\"\nlv_name = \"lv0\"\nlv_uuid = \"" UUID "\"\nvg_lock_type = \"dlm\"\n" \
	"vg_lock_args = \"" LVMLOCKD_MARKER "\"\nlv_lock_args = \"dlm\"\n"

enum { ENOLS = -210, ESTARTING = -211, EARGS = -212, EMANAGER = -214, EVGKILLED = -217 };

/* ---- short words for requests ---- */

static int lock_gl(int fd, const char *mode)
{
	return lvm_ask(fd, "request = \"lock_gl\"\ncmd = \"test\"\npid = 1\nmode = \"%s\"\nopts = \"none\"\n", mode);
}

static int lock_vg(int fd, const char *mode)
{
	return lvm_ask(fd, "request = \"lock_vg\"\npid = 1\nmode = \"%s\"\nopts = \"none\"\n" VG, mode);
}

static void send_lock_vg(int fd, const char *mode)
{
	lvm_send(fd, "request = \"lock_vg\"\npid = 1\nmode = \"%s\"\nopts = \"none\"\n" VG, mode);
}

static int lock_lv(int fd, const char *mode, const char *opts)
{
	return lvm_ask(fd, "request = \"lock_lv\"\npid = 1\nmode = \"%s\"\nopts = \"%s\"\n" LV, mode, opts);
}

static int start_vg(int fd, const char *name, const char *args)
{
	return lvm_ask(fd, "request = \"start_vg\"\npid = 1\nvg_name = \"%s\"\nvg_lock_type = \"dlm\"\n"
		       "vg_lock_args = \"%s\"\nvg_uuid = \"none\"\nversion = 3\nhost_id = 0\nopts = \"none\"\n",
		       name, args);
}

static int named(int fd, const char *request, const char *vg)
{
	return lvm_ask(fd, "request = \"%s\"\npid = 1\nvg_name = \"%s\"\nvg_lock_type = \"dlm\"\n"
		       "vg_lock_args = \"" LVMLOCKD_MARKER "\"\n", request, vg);
}

static int result_of(int fd)
{
	struct message answer;

	return lvm_receive(fd, &answer) ? (int)message_number(&answer, "op_result", -9999) : -9999;
}

/* The mode that this node has, by query_lock_*. */
static void ok_mode(int fd, const char *what, const char *mode, const char *when)
{
	struct message answer;

	lvm_send(fd, "request = \"query_lock_%s\"\npid = 1\n" LV, what);
	if (ok(lvm_receive(fd, &answer), "the lock of the %s is asked for", what))
		ok_str(message_text(&answer, "mode"), mode, "%s: %s", when, mode);
}

/* ---- a neighbour ---- */

static struct belay_handle *neighbour(struct belay *belay, const char *name)
{
	struct belay_handle *handle = NULL;

	if (belay_open_name(belay, "volumes", name, BELAY_OWNER_HANDLE, &handle) < 0)
		bail_out("no handle");
	return handle;
}

static struct belay *belay_of(const struct lvmlockd_process *l)
{
	struct belay *belay = NULL;

	if (belay_connect(&belay, l->belayd.socket) < 0)
		bail_out("cannot connect to belayd");
	return belay;
}

/* ---- tests ---- */

static void test_greeting(const struct lvmlockd_process *l)
{
	int fd = lvm_connect(l);
	struct message answer;
	struct stat st;
	char pid[32] = "";
	FILE *file = fopen(l->pid_file, "re");

	lvm_send(fd, "request = \"hello\"\n");
	if (ok(lvm_receive(fd, &answer), "hello is answered")) {
		ok_str(message_text(&answer, "response"), "OK", "well");
		ok_int(message_number(&answer, "result", 1), 0, "with a result");
		ok_str(message_text(&answer, "protocol"), "lvmlockd", "of the protocol that lvm wants");
		ok_int(message_number(&answer, "version", 0), 1, "in its version");
	}
	ok(file && fgets(pid, sizeof(pid), file) && atoi(pid) == l->pid,
	   "there is a pid file, without which lvm gives up");
	if (file)
		fclose(file);
	ok(stat(l->socket, &st) == 0 && (st.st_mode & 0777) == 0600, "the socket is root's only");
	ok_int(lvm_ask(fd, "request = \"running_lm\"\npid = 1\n"), 2, "the lock manager that runs is called dlm");
	close(fd);
}

static void test_start(const struct lvmlockd_process *l)
{
	int fd = lvm_connect(l);
	struct message answer;

	lvm_send(fd, "request = \"init_vg\"\npid = 1\nvg_name = \"vg0\"\nvg_lock_type = \"dlm\"\n");
	if (ok(lvm_receive(fd, &answer), "a new VG")) {
		ok_int(message_number(&answer, "op_result", -1), 0, "may be made");
		ok_str(message_text(&answer, "vg_lock_args"), LVMLOCKD_MARKER, "and gets our marker");
		ok_str(message_text(&answer, "lv_lock_args"), "none", "its LVs nothing");
	}
	ok_int(lvm_ask(fd, "request = \"init_vg\"\npid = 1\nvg_name = \"vg0\"\nvg_lock_type = \"sanlock\"\n"),
	       -EPROTONOSUPPORT, "no VG of sanlock");
	ok_int(named(fd, "vg_update", "vg0"), ENOLS, "its first version comes before it is started, and is no error");
	ok_int(lock_vg(fd, "ex"), ENOLS, "a VG that is not started is not locked: it may be a local one");
	ok_int(lock_vg(fd, "un"), ENOLS, "nor unlocked");
	ok_int(lock_lv(fd, "ex", "persistent"), ENOLS, "nor its LVs");
	ok_int(named(fd, "stop_vg", "vg0"), ENOLS, "nor stopped");
	ok_int(named(fd, "busy_vg", "vg0"), ENOLS, "nor looked for elsewhere");
	ok_int(start_vg(fd, "vg0", LVMLOCKD_MARKER), 0, "it starts");
	ok_int(lvm_ask(fd, "request = \"start_wait\"\npid = 1\n"), 0, "start_wait is answered at once");
	ok_int(start_vg(fd, "vg0", LVMLOCKD_MARKER), -EEXIST, "started it is there");
	ok_int(named(fd, "init_vg", "vg0"), -EEXIST, "and no second one of that name");
	ok_int(named(fd, "stop_vg", "vg0"), 0, "it stops");
	ok_int(named(fd, "stop_vg", "vg0"), ENOLS, "and is gone");
	close(fd);
}

static void test_marker(const struct lvmlockd_process *l)
{
	static const char *const foreign[] = {
		"1.0.0:standalone", "1.0.0:other.belay", "2.0.0:standalone.belay", "none", "", "1.0.0",
		"1.0.0:standalone.belay:x",
	};
	int fd = lvm_connect(l);

	for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++)
		ok_int(start_vg(fd, "vgx", foreign[i]), EARGS, "a VG with lock_args \"%s\" is refused", foreign[i]);
	ok(lvmlockd_logged(l, "vgchange --lock-type none --lock-opt force vgx"), "the log says how to convert it");
	ok_int(start_vg(fd, "vgx", "1.9.7:standalone.belay"), 0, "but one of a later minor format is ours");
	ok_int(named(fd, "stop_vg", "vgx"), 0, "it stops");
	ok_int(lvm_ask(fd, "request = \"start_vg\"\nvg_name = \"vgx\"\nvg_lock_type = \"sanlock\"\n"
		       "vg_lock_args = \"" LVMLOCKD_MARKER "\"\n"), -EPROTONOSUPPORT, "one of sanlock is not");
	close(fd);
}

static void test_global(const struct lvmlockd_process *l)
{
	int a = lvm_connect(l), b = lvm_connect(l);

	ok_int(lock_gl(a, "sh"), 0, "the global lock, shared");
	ok_int(lock_gl(a, "sh"), -EALREADY, "twice");
	ok_int(lock_gl(b, "sh"), 0, "by another as well");
	ok_int(lock_gl(b, "un"), 0, "who gives it back");
	ok_int(lock_gl(b, "un"), -ENOENT, "once");
	ok_int(lock_gl(a, "ex"), 0, "converted");
	ok_mode(b, "gl", "ex", "this node has it");
	ok_int(lock_gl(a, "sh"), 0, "and back");
	ok_int(lock_gl(b, "sh"), 0, "which lets others in");
	close(a);
	close(b);
}

static void test_vg_queue(const struct lvmlockd_process *l)
{
	int a = lvm_connect(l), b = lvm_connect(l), c = lvm_connect(l), d = lvm_connect(l);

	ok_int(start_vg(a, "vg0", LVMLOCKD_MARKER), 0, "a VG");
	ok_int(lock_vg(a, "ex"), 0, "is locked");
	ok_int(lock_vg(a, "ex"), -EALREADY, "twice");
	send_lock_vg(b, "ex");
	ok_mode(d, "vg", "ex", "by one command");
	send_lock_vg(c, "sh");
	ok_mode(d, "vg", "ex", "by one command");
	ok(lvm_silent(b) && lvm_silent(c), "others of this node wait");
	ok_int(lock_vg(a, "un"), 0, "given back");
	ok_int(result_of(b), 0, "the first that came has it at once");
	ok(lvm_silent(c), "the second waits");
	/* The lock of a process that dies. */
	close(b);
	ok_int(result_of(c), 0, "until the end of the first one's connection");
	ok_mode(d, "vg", "sh", "now");
	send_lock_vg(a, "ex");
	ok_mode(d, "vg", "sh", "still");
	/* One that waits dies: nothing is left of it. */
	close(a);
	ok_int(lock_vg(c, "un"), 0, "who read has done");
	ok_int(lock_vg(d, "ex"), 0, "and nobody is in the queue");
	ok_int(lock_vg(d, "sh"), 0, "converted");
	ok_int(lock_vg(c, "sh"), 0, "others may read");
	send_lock_vg(d, "ex");
	ok_mode(c, "vg", "sh", "a conversion waits for them");
	ok_int(lock_vg(c, "un"), 0, "until they have done");
	ok_int(result_of(d), 0, "and is granted");
	close(c);
	close(d);
}

static void test_vg_remote(const struct lvmlockd_process *l)
{
	struct belay *belay = belay_of(l);
	struct belay_handle *vg = neighbour(belay, "VG:vg0");
	int a = lvm_connect(l), b = lvm_connect(l);

	ok_int(belay_lock(vg, BELAY_EXCLUSIVE, 0, 0, NULL), 0, "another node has the VG's lock");
	send_lock_vg(a, "sh");
	ok_mode(b, "vg", "un", "a command of this node");
	ok(lvm_silent(a), "waits for it");
	ok_int(belay_unlock(vg, 0, 0), 0, "the other gives it back");
	ok_int(result_of(a), 0, "it is granted at once");
	close(a);
	ok_int(belay_lock(vg, BELAY_EXCLUSIVE, 0, 0, NULL), 0, "the end of the command releases it");
	belay_handle_close(vg);
	belay_disconnect(belay);
	close(b);
}

static void test_vg_version(const struct lvmlockd_process *l)
{
	int a = lvm_connect(l), b = lvm_connect(l);

	ok_int(lock_vg(a, "ex"), 0, "a VG is locked");
	ok_int(lvm_ask(a, "request = \"vg_update\"\nvg_name = \"vg0\"\nversion = 7\n"), 0, "its version is told");
	ok_int(lvm_ask(b, "request = \"vg_update\"\nvg_name = \"vg0\"\nversion = 8\n"), -ENOENT,
	       "not by whom has no lock");
	ok_int(lvm_ask(a, "request = \"vg_update\"\nvg_name = \"vg0\"\nversion = \"x\"\n"), -EINVAL, "nor as text");
	ok_int(lvm_ask(a, "request = \"vg_update\"\nvg_name = \"vg0\"\nversion = 4294967296\n"), -EINVAL,
	       "nor one that is too large");
	ok_int(lock_vg(a, "sh"), 0, "now it is shared");
	ok_int(lvm_ask(a, "request = \"vg_update\"\nvg_name = \"vg0\"\nversion = 9\n"), -EINVAL,
	       "nor by whom may not write");
	close(a);
	close(b);
}

static void test_lv_persistent(const struct lvmlockd_process *l)
{
	struct belay *belay = belay_of(l);
	struct belay_handle *lv = neighbour(belay, "LV:" UUID);
	int a = lvm_connect(l), b = lvm_connect(l);

	ok_int(lock_lv(a, "un", "persistent"), -ENOENT, "an LV that is not locked");
	ok_mode(a, "lv", "un", "this node");
	ok_int(lock_lv(a, "ex", "persistent"), 0, "is locked");
	ok_int(lock_lv(b, "ex", "persistent"), -EALREADY, "by the node, whichever command asks");
	close(a);
	ok_mode(b, "lv", "ex", "after the end of the command");
	ok_int(belay_trylock(lv, BELAY_SHARED, 0, 0, NULL), -EAGAIN, "other nodes are kept out");
	ok_int(named(b, "stop_vg", "vg0"), -EBUSY, "the VG cannot be stopped");
	ok_int(lvm_ask(b, "request = \"stop_all\"\nopts = \"force\"\n"), -EBUSY, "not even by force");
	ok_int(named(b, "drop_vg", "vg0"), -EBUSY, "nor dropped");
	ok_int(named(b, "free_vg", "vg0"), -EBUSY, "nor removed");
	ok_int(named(b, "rename_vg_before", "vg0"), -EBUSY, "nor get another name");
	ok_int(lock_lv(b, "sh", "persistent"), 0, "converted");
	ok_int(belay_trylock(lv, BELAY_SHARED, 0, 0, NULL), 0, "others may share it now");
	ok_int(lock_lv(b, "ex", "persistent"), -EAGAIN, "and are in the way of converting back, which does not wait");
	ok_mode(b, "lv", "sh", "as before");
	ok_int(belay_unlock(lv, 0, 0), 0, "they go");
	ok_int(lock_lv(b, "ex", "persistent"), 0, "then it can be");
	ok_int(lock_lv(b, "un", "persistent"), 0, "unlocked");
	ok_int(belay_trylock(lv, BELAY_EXCLUSIVE, 0, 0, NULL), 0, "another node may have it");
	ok_int(lock_lv(b, "ex", "persistent"), -EAGAIN, "and is in the way at once");
	ok_int(lock_lv(b, "sh", "persistent"), -EAGAIN, "of readers as well");
	ok_int(lock_lv(b, "ex", "none"), -EAGAIN, "and of transient locks");
	ok_mode(b, "lv", "un", "this node");
	belay_handle_close(lv);
	belay_disconnect(belay);
	close(b);
}

static void test_lv_transient(const struct lvmlockd_process *l)
{
	struct belay *belay = belay_of(l);
	struct belay_handle *lv = neighbour(belay, "LV:" UUID);
	int a = lvm_connect(l), b = lvm_connect(l);
	struct message answer;

	ok_int(lock_lv(a, "ex", "none"), 0, "a transient lock");
	ok_int(lock_lv(a, "ex", "none"), -EALREADY, "twice");
	ok_int(lock_lv(b, "ex", "none"), -EAGAIN, "is in the way of others of this node");
	ok_int(lock_lv(b, "ex", "persistent"), -EAGAIN, "whatever they want");
	ok_int(lock_lv(b, "un", "none"), -ENOENT, "they have nothing to give back");
	ok_int(belay_trylock(lv, BELAY_SHARED, 0, 0, NULL), -EAGAIN, "and in the way of other nodes");
	ok_int(lock_lv(a, "ex", "persistent"), 0, "its owner may make it the node's");
	ok_int(lock_lv(a, "un", "none"), 0, "and give back its own");
	ok_mode(b, "lv", "ex", "then the node's stays");
	ok_int(lock_lv(b, "ex", "none"), 0, "which covers what any command does");
	ok_int(lock_lv(b, "sh", "none"), 0, "or reads");
	ok_int(lock_lv(b, "un", "none"), -ENOENT, "without a lock of its own");
	ok_int(lock_lv(a, "sh", "persistent"), 0, "but if the node's is shared");
	ok_int(lock_lv(b, "sh", "none"), 0, "it covers reading");
	lvm_send(b, "request = \"lock_lv\"\nmode = \"ex\"\nopts = \"none\"\n" LV);
	if (ok(lvm_receive(b, &answer), "and not writing")) {
		ok_int(message_number(&answer, "op_result", 0), -EEXIST, "which lvm has to decide about");
		ok(strstr(message_text(&answer, "result_flags"), "SH_EXISTS"), "being told why");
	}
	ok_int(lock_lv(a, "un", "persistent"), 0, "unlocked");
	ok_int(lock_lv(a, "sh", "none"), 0, "transient and shared");
	ok_int(lock_lv(b, "sh", "none"), 0, "by two");
	ok_int(lock_lv(a, "ex", "none"), -EAGAIN, "neither may write");
	close(a);
	ok_int(belay_trylock(lv, BELAY_EXCLUSIVE, 0, 0, NULL), -EAGAIN, "one of them ends, the other's lasts");
	close(b);
	/* The end of a connection has no answer: whoever wants the lock waits for it. */
	ok_int(belay_lock_timed(lv, BELAY_EXCLUSIVE, 0, 0, PATIENCE_MS, NULL), 0, "until it ends, too");
	belay_handle_close(lv);
	belay_disconnect(belay);
}

/* A lock that is waited for by a command that dies is not left behind. */
static void test_lv_wait(const struct lvmlockd_process *l)
{
	struct belay *belay = belay_of(l);
	struct belay_handle *lv = neighbour(belay, "LV:" UUID), *again = neighbour(belay, "LV:" UUID);
	int a = lvm_connect(l), b = lvm_connect(l);

	ok_int(belay_lock(lv, BELAY_EXCLUSIVE, 0, 0, NULL), 0, "another node has an LV");
	lvm_send(a, "request = \"lock_lv\"\nmode = \"ex\"\nopts = \"persistent wait\"\n" LV);
	ok_mode(b, "lv", "un", "this node");
	ok(lvm_silent(a), "waits for it, if asked to");
	ok_int(belay_unlock(lv, 0, 0), 0, "the other gives it up");
	ok_int(result_of(a), 0, "this one has it");
	ok_int(lock_lv(b, "un", "persistent"), 0, "and gives it up");
	ok_int(belay_lock(lv, BELAY_EXCLUSIVE, 0, 0, NULL), 0, "again");
	lvm_send(a, "request = \"lock_lv\"\nmode = \"ex\"\nopts = \"persistent wait\"\n" LV);
	ok_mode(b, "lv", "un", "this node");
	close(a);
	ok_int(belay_unlock(lv, 0, 0), 0, "who waits dies, and the other gives it up");
	ok_int(belay_lock_timed(again, BELAY_EXCLUSIVE, 0, 0, PATIENCE_MS, NULL), 0, "nobody is left who has it");
	belay_handle_close(again);
	ok_mode(b, "lv", "un", "this node");
	ok_int(lock_lv(b, "ex", "persistent"), 0, "it can be locked");
	ok_int(lvm_ask(b, "request = \"free_lv\"\n" LV), 0, "an LV that is removed loses its lock");
	ok_mode(b, "lv", "un", "this node");
	ok_int(lvm_ask(b, "request = \"free_lv\"\n" LV), 0, "which may have been before");
	close(b);
	b = lvm_connect(l);
	ok_int(lvm_ask(b, "request = \"free_lv\"\n" LV), -ENOENT, "but not by somebody else");
	ok_int(lvm_ask(b, "request = \"init_lv\"\n" LV), 0, "for a new one nothing has to be made");
	belay_handle_close(lv);
	belay_disconnect(belay);
	close(b);
}

/* lvm has gone before the answer: it will not activate the LV, nor unlock it. */
static void test_lv_unheard(const struct lvmlockd_process *l)
{
	struct belay *belay = belay_of(l);
	struct belay_handle *lv = neighbour(belay, "LV:" UUID);
	int a = lvm_connect(l), b = lvm_connect(l);

	ok_int(belay_lock(lv, BELAY_EXCLUSIVE, 0, 0, NULL), 0, "another node has an LV");
	lvm_send(a, "request = \"lock_lv\"\nmode = \"ex\"\nopts = \"persistent wait\"\n" LV);
	ok_mode(b, "lv", "un", "this node");
	/* Half closed, the connection is there until something is sent. */
	ok_int(shutdown(a, SHUT_RD), 0, "who waits for it reads no more");
	ok_int(belay_unlock(lv, 0, 0), 0, "the other gives it up");
	ok_int(belay_lock_timed(lv, BELAY_EXCLUSIVE, 0, 0, PATIENCE_MS, NULL), 0, "nobody is left who has it");
	ok_mode(b, "lv", "un", "this node");
	ok_int(belay_unlock(lv, 0, 0), 0, "the other gives it up again");
	ok_int(lock_lv(b, "ex", "persistent"), 0, "and it can be locked here");
	ok_int(lock_lv(b, "un", "persistent"), 0, "and unlocked");
	belay_handle_close(lv);
	belay_disconnect(belay);
	close(a);
	close(b);
}

static void test_other_nodes_vg(const struct lvmlockd_process *l)
{
	struct belay *belay = belay_of(l);
	struct belay_handle *started = neighbour(belay, "started:vg0");
	int a = lvm_connect(l);

	ok_int(named(a, "busy_vg", "vg0"), 0, "no other node has started the VG");
	ok_int(belay_lock(started, BELAY_SHARED, 0, 0, NULL), 0, "now one has");
	ok_int(named(a, "busy_vg", "vg0"), -EBUSY, "which is told");
	ok_int(named(a, "rename_vg_before", "vg0"), -EBUSY, "and is in the way of another name");
	ok_int(lock_vg(a, "ex"), 0, "it is started here all the same");
	belay_handle_close(started);
	ok_int(named(a, "rename_vg_before", "vg0"), 0, "it may get another name");
	ok_int(lock_vg(a, "un"), 0, "what was locked under the old one is unlocked");
	ok_int(named(a, "stop_vg", "vg0"), ENOLS, "which is stopped");
	ok_int(named(a, "rename_vg_final", "vg1"), 0, "the new one");
	ok_int(start_vg(a, "vg1", LVMLOCKD_MARKER), 0, "starts");
	ok_int(named(a, "free_vg", "vg1"), 0, "removed");
	ok_int(named(a, "stop_vg", "vg1"), ENOLS, "it is no more");
	belay_disconnect(belay);
	close(a);
}

/* Whether others have started the VG is asked of belayd, and an LV locked before it answers. */
static void test_lv_between(const struct lvmlockd_process *l)
{
	int a = lvm_connect(l), b = lvm_connect(l), c = lvm_connect(l);

	ok_int(start_vg(a, "vg0", LVMLOCKD_MARKER), 0, "a VG");
	kill(l->belayd.pid, SIGSTOP);
	ok(waitpid(l->belayd.pid, NULL, WUNTRACED) == l->belayd.pid, "belayd stands still");
	lvm_send(a, "request = \"rename_vg_before\"\npid = 1\n" VG);
	ok_mode(c, "vg", "un", "the VG is to get another name");
	lvm_send(b, "request = \"lock_lv\"\nmode = \"ex\"\nopts = \"persistent\"\n" LV);
	kill(l->belayd.pid, SIGCONT);
	ok_int(result_of(b), 0, "an LV of it is locked just then");
	ok_int(result_of(a), -EBUSY, "so it keeps its name");
	ok_mode(c, "lv", "ex", "and the LV its lock");
	ok_int(lock_lv(b, "un", "persistent"), 0, "which goes");
	ok_int(named(a, "stop_vg", "vg0"), 0, "as does the VG");
	close(a);
	close(b);
	close(c);
}

static void test_admin(const struct lvmlockd_process *l)
{
	static const char *const sanlock[] = { "enable_gl", "disable_gl", "find_free_lock" };
	int a = lvm_connect(l);

	for (size_t i = 0; i < 3; i++)
		ok_int(named(a, sanlock[i], "vg0"), -EINVAL, "%s is of sanlock", sanlock[i]);
	ok_int(named(a, "kill_vg", "vg0"), ENOLS, "a VG that is not started cannot be killed");
	ok_int(start_vg(a, "vg0", LVMLOCKD_MARKER), 0, "a VG");
	ok_int(named(a, "kill_vg", "vg0"), 0, "is killed");
	ok_int(lock_vg(a, "sh"), EVGKILLED, "it gives no locks any more");
	ok_int(lock_lv(a, "ex", "persistent"), EVGKILLED, "nor do its LVs");
	ok_int(named(a, "drop_vg", "vg0"), 0, "it is dropped");
	ok_int(start_vg(a, "vg0", LVMLOCKD_MARKER), 0, "and may start anew");
	ok_int(lock_vg(a, "sh"), 0, "and be locked");
	ok_int(lvm_ask(a, "request = \"stop_all\"\nopts = \"wait\"\n"), 0, "all VGs stop");
	ok_int(named(a, "stop_vg", "vg0"), ENOLS, "that one, too");
	close(a);
}

int main(void)
{
	struct lvmlockd_process l;

	lvmlockd_start(&l, NULL);
	test_greeting(&l);
	test_start(&l);
	test_marker(&l);
	test_global(&l);
	test_vg_queue(&l);
	test_vg_remote(&l);
	test_vg_version(&l);
	test_lv_persistent(&l);
	test_lv_transient(&l);
	test_lv_wait(&l);
	test_lv_unheard(&l);
	test_other_nodes_vg(&l);
	test_lv_between(&l);
	test_admin(&l);
	lvmlockd_remove(&l);
	return done_testing();
}
