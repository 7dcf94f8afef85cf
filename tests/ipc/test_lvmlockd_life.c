/* SPDX-License-Identifier: GPL-2.0-or-later */
/* belay-lvmlockd and belayd come and go, and LVs stay locked; what lvmlockctl is told. */
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "include/belay.h"
#include "tests/ipc/lvmlockd.h"
#include "tests/tap.h"

#define UUID "vJOFl3-bqku-43jH-adfv-BRrX-whJD-06OuzE"
#define LV "vg_name = \"vg0\"\nlv_name = \"lv0\"\nlv_uuid = \"" UUID "\"\n"

static int lock_lv(int fd, const char *mode)
{
	return lvm_ask(fd, "request = \"lock_lv\"\nmode = \"%s\"\nopts = \"persistent\"\n" LV, mode);
}

static int lock_vg(int fd, const char *mode)
{
	return lvm_ask(fd, "request = \"lock_vg\"\ncmd = \"test\"\nmode = \"%s\"\nvg_name = \"vg0\"\n", mode);
}

static int start_vg(int fd)
{
	return lvm_ask(fd, "request = \"start_vg\"\nvg_name = \"vg0\"\nvg_lock_type = \"dlm\"\nversion = 3\n"
		       "vg_lock_args = \"" LVMLOCKD_MARKER "\"\n"
		       "vg_uuid = \"eOzcT8-khBL-DS7a-xv3k-VUrZ-gcE7-L2gcbv\"\n");
}

static void ok_lv_mode(int fd, const char *mode, const char *when)
{
	struct message answer;

	lvm_send(fd, "request = \"query_lock_lv\"\n" LV);
	if (ok(lvm_receive(fd, &answer), "the lock of the LV is asked for"))
		ok_str(message_text(&answer, "mode"), mode, "%s: %s", when, mode);
}

/* Does belayd keep others out? */
static void ok_kept(const struct lvmlockd_process *l, int want, const char *what)
{
	struct belay_handle *handle = NULL;
	struct belay *belay = NULL;

	if (!ok_int(belay_connect(&belay, l->belayd.socket), 0, "belayd is there"))
		return;
	if (ok_int(belay_open_name(belay, "volumes", "LV:" UUID, BELAY_OWNER_HANDLE, &handle), 0, "the lock"))
		ok_int(belay_trylock(handle, BELAY_EXCLUSIVE, 0, 0, NULL), want, "%s", what);
	belay_handle_close(handle);
	belay_disconnect(belay);
}

/* belay-lvmlockd is there before belayd. */
static void test_without_belayd(struct lvmlockd_process *l)
{
	struct message answer;
	int fd;

	lvmlockd_spawn(l);
	if (!ok(lvmlockd_says(l, "READY=1"), "it starts without belayd"))
		return;
	fd = lvm_connect(l);
	ok_int(lvm_ask(fd, "request = \"running_lm\"\n"), -ENOLCK, "no lock manager runs");
	ok_int(start_vg(fd), -214, "no VG starts");
	ok_int(lvm_ask(fd, "request = \"init_vg\"\nvg_name = \"vg0\"\nvg_lock_type = \"dlm\"\n"), -214, "nor is made");
	ok_int(lock_vg(fd, "sh"), -210, "nor locked");
	lvm_send(fd, "request = \"lock_gl\"\nmode = \"sh\"\n");
	if (ok(lvm_receive(fd, &answer), "the global lock")) {
		ok_int(message_number(&answer, "op_result", 0), -210, "is refused");
		ok(strstr(message_text(&answer, "result_flags"), "NO_LM"), "so that lvm says why");
		ok(strstr(message_text(&answer, "result_flags"), "NO_GL_LS"), "and goes on reading");
	}
	ok_int(lvm_ask(fd, "request = \"start_wait\"\n"), 0, "nothing is starting");
	belayd_spawn(&l->belayd, NULL);
	ok(belayd_ready(&l->belayd) && lvmlockd_says(l, "STATUS=serving"), "belayd starts, and it serves");
	ok_int(lvm_ask(fd, "request = \"running_lm\"\n"), 2, "the same connection");
	close(fd);
}

static void test_restart(struct lvmlockd_process *l)
{
	int fd = lvm_connect(l);

	ok_int(start_vg(fd), 0, "a VG");
	ok_int(lock_lv(fd, "ex"), 0, "and an LV that is locked");
	kill(l->pid, SIGKILL);
	ok_int(lvmlockd_wait(l), 256 + SIGKILL, "belay-lvmlockd is killed");
	ok_kept(l, -EAGAIN, "the LV stays locked");
	close(fd);
	lvmlockd_spawn(l);
	ok(lvmlockd_says(l, "STATUS=serving"), "a new one serves");
	fd = lvm_connect(l);
	ok_lv_mode(fd, "ex", "it knows the LV");
	ok_int(start_vg(fd), -EEXIST, "and the VG");
	ok_int(lock_lv(fd, "ex"), -114, "which the node has");
	ok_int(lock_lv(fd, "sh"), 0, "and may convert");
	kill(l->pid, SIGTERM);
	ok_int(lvmlockd_wait(l), 0, "it is stopped");
	ok_int(access(l->pid_file, F_OK), -1, "its pid file is gone");
	ok_kept(l, -EAGAIN, "the LV stays locked");
	close(fd);
	lvmlockd_spawn(l);
	ok(lvmlockd_says(l, "STATUS=serving"), "once more");
	fd = lvm_connect(l);
	ok_lv_mode(fd, "sh", "the LV is locked as it was");
	ok_int(lock_lv(fd, "un"), 0, "and may be unlocked");
	ok_kept(l, 0, "then others can have it");
	close(fd);
}

static void test_belayd_restart(struct lvmlockd_process *l)
{
	int fd = lvm_connect(l), vg = lvm_connect(l), waiting = lvm_connect(l);
	struct message answer;

	ok_int(lock_lv(fd, "ex"), 0, "an LV");
	ok_int(lock_vg(vg, "ex"), 0, "and a VG are locked");
	lvm_send(waiting, "request = \"lock_vg\"\nmode = \"ex\"\nvg_name = \"vg0\"\n");
	ok_lv_mode(fd, "ex", "a command waits");
	kill(l->belayd.pid, SIGKILL);
	ok_int(belayd_wait(&l->belayd), 256 + SIGKILL, "belayd is killed");
	ok(lvm_receive(waiting, &answer) && message_number(&answer, "op_result", 0) == -211,
	   "who waited hears of it");
	ok_int(lvm_ask(fd, "request = \"running_lm\"\n"), -ENOLCK, "no lock manager runs");
	ok_int(lock_vg(fd, "sh"), -211, "no VG is locked");
	ok_int(lvm_ask(fd, "request = \"lock_lv\"\nmode = \"ex\"\nopts = \"persistent\"\nvg_name = \"vg0\"\n"
		       "lv_uuid = \"other\"\n"), -211, "no LV either");
	ok_lv_mode(fd, "ex", "what is locked");

	/* belayd waits with its locks for the process that had them: as long as a command works under one. */
	belayd_spawn(&l->belayd, NULL);
	ok(lvmlockd_logged(l, "the connection to belayd is lost"), "the log says so");
	ok_int(lock_vg(vg, "un"), 0, "the command that had the VG's lock gives it back");
	ok(belayd_ready(&l->belayd) && lvmlockd_says(l, "STATUS=serving"), "then it serves again");
	ok_lv_mode(fd, "ex", "the LV");
	ok_kept(l, -EAGAIN, "others are kept out");
	ok_int(lock_vg(fd, "ex"), 0, "the VG can be locked");
	ok_int(lock_vg(fd, "un"), 0, "and unlocked");

	kill(l->belayd.pid, SIGKILL);
	ok_int(belayd_wait(&l->belayd), 256 + SIGKILL, "belayd is killed again");
	ok(lvmlockd_says(l, "STATUS=waiting for belayd"), "which is seen");
	ok_int(lock_lv(fd, "un"), 0, "an LV can be unlocked without it");
	belayd_spawn(&l->belayd, NULL);
	ok(belayd_ready(&l->belayd) && lvmlockd_says(l, "STATUS=serving"), "it comes back");
	ok_kept(l, 0, "and learns of that");
	ok_int(lvm_ask(fd, "request = \"stop_vg\"\nvg_name = \"vg0\"\n"), 0, "the VG stops");
	close(fd);
	close(vg);
	close(waiting);
}

/* Whether the VG counts as started here, for other nodes. */
static void ok_started(const struct lvmlockd_process *l, int want, const char *what)
{
	struct belay_handle *handle = NULL;
	struct belay *belay = NULL;

	if (!ok_int(belay_connect(&belay, l->belayd.socket), 0, "belayd is there"))
		return;
	if (ok_int(belay_open_name(belay, "volumes", "started:vg0", BELAY_OWNER_HANDLE, &handle), 0, "the lock"))
		ok_int(belay_trylock(handle, BELAY_EXCLUSIVE, 0, 0, NULL), want, "%s", what);
	belay_handle_close(handle);
	belay_disconnect(belay);
}

static void test_idle(struct lvmlockd_process *l)
{
	int fd = lvm_connect(l);

	ok_int(start_vg(fd), 0, "a VG");
	ok_started(l, -EAGAIN, "which others may not remove");
	kill(l->pid, SIGTERM);
	ok_int(lvmlockd_wait(l), 0, "belay-lvmlockd is stopped");
	ok_started(l, 0, "without LVs that are locked nothing is left of it in belayd");
	close(fd);
	lvmlockd_spawn(l);
	ok(lvmlockd_says(l, "STATUS=serving"), "a new one serves");
	ok_started(l, -EAGAIN, "and has it started");
	fd = lvm_connect(l);
	ok_int(lvm_ask(fd, "request = \"stop_vg\"\nvg_name = \"vg0\"\n"), 0, "it stops");
	ok_started(l, 0, "for others, too");
	close(fd);
}

/* More than are asked for at a time. */
static void test_many(struct lvmlockd_process *l)
{
	const unsigned many = 700;
	int fd = lvm_connect(l);
	unsigned good = 0;

	ok_int(start_vg(fd), 0, "a VG");
	for (unsigned i = 0; i < many; i++)
		good += lvm_ask(fd, "request = \"lock_lv\"\nmode = \"ex\"\nopts = \"persistent\"\n"
				"vg_name = \"vg0\"\nlv_uuid = \"lv%u\"\n", i) == 0;
	ok_uint(good, many, "many LVs are locked");
	kill(l->belayd.pid, SIGKILL);
	ok_int(belayd_wait(&l->belayd), 256 + SIGKILL, "belayd is killed");
	belayd_spawn(&l->belayd, NULL);
	ok(belayd_ready(&l->belayd) && lvmlockd_says(l, "STATUS=serving"), "it comes back");
	ok(!lvmlockd_logged(l, "has lost its lock"), "no lock is lost");
	kill(l->pid, SIGKILL);
	ok_int(lvmlockd_wait(l), 256 + SIGKILL, "belay-lvmlockd is killed");
	close(fd);
	lvmlockd_spawn(l);
	ok(lvmlockd_says(l, "STATUS=serving"), "a new one serves");
	fd = lvm_connect(l);
	good = 0;
	for (unsigned i = 0; i < many; i++)
		good += lvm_ask(fd, "request = \"lock_lv\"\nmode = \"un\"\nopts = \"persistent\"\n"
				"vg_name = \"vg0\"\nlv_uuid = \"lv%u\"\n", i) == 0;
	ok_uint(good, many, "it knows them all");
	ok_int(lvm_ask(fd, "request = \"stop_vg\"\nvg_name = \"vg0\"\n"), 0, "the VG stops");
	close(fd);
}

/* belayd hangs: what waits for it ends, and so can belay-lvmlockd. */
static void test_hang(struct lvmlockd_process *l)
{
	int fd = lvm_connect(l);

	ok_int(start_vg(fd), 0, "a VG");
	kill(l->belayd.pid, SIGSTOP);
	ok_int(lock_vg(fd, "ex"), -211, "belayd is stopped: it cannot be locked, which is told in time");
	kill(l->pid, SIGTERM);
	ok_int(lvmlockd_wait(l), 0, "belay-lvmlockd can be stopped, too");
	kill(l->belayd.pid, SIGCONT);
	close(fd);
	lvmlockd_spawn(l);
	ok(lvmlockd_says(l, "STATUS=serving"), "belayd runs again, and a new one serves");
	fd = lvm_connect(l);
	ok_int(lvm_ask(fd, "request = \"stop_vg\"\nvg_name = \"vg0\"\n"), 0, "the VG stops");
	close(fd);
}

/* ---- only one, and its file ---- */

static void test_second(struct lvmlockd_process *l)
{
	struct lvmlockd_process second = *l;
	struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	int fd;

	lvmlockd_spawn(&second);
	ok_int(lvmlockd_wait(&second), 4, "a second one does not start");
	ok(lvmlockd_logged(l, "an lvmlockd runs here already"), "and says why");
	fd = lvm_connect(l);
	ok_int(lvm_ask(fd, "request = \"running_lm\"\n"), 2, "the first one goes on");
	close(fd);
	/* lvmlockd locks its pid file in this way. */
	fd = open(l->pid_file, O_RDWR | O_CLOEXEC);
	ok(fd >= 0 && fcntl(fd, F_GETLK, &whole) == 0 && whole.l_type == F_WRLCK && whole.l_pid == l->pid,
	   "lvmlockd itself would not start either");
	close(fd);
}

static void test_bad_file(struct lvmlockd_process *l)
{
	static const char *const bad[] = {
		"belay-volumes 2\n", "x", "belay-volumes 1\nvg - vg0\n", "belay-volumes 1\nlv vg0 - u ex 1 - n\n",
		"belay-volumes 1\nvg - vg0 a\nlv vg0 - u zz 1 - n\n", "belay-volumes 1\nvg - vg0 a",
		"belay-volumes 1\nvg - vg0 a\nvg - vg0 a\n", "belay-volumes 1\nvg - vg0 a\nlv vg0 - u ex x - n\n",
	};
	FILE *file;

	kill(l->pid, SIGTERM);
	ok_int(lvmlockd_wait(l), 0, "it ends");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		file = fopen(l->volumes, "we");
		if (!file)
			bail_out("cannot write the file");
		fputs(bad[i], file);
		fclose(file);
		lvmlockd_spawn(l);
		ok_int(lvmlockd_wait(l), 5, "with a damaged file of locks it does not start (%zu)", i);
	}
	ok(lvmlockd_logged(l, "run/volumes"), "and names it");
	unlink(l->volumes);
	lvmlockd_spawn(l);
	ok(lvmlockd_says(l, "STATUS=serving"), "without it, it does");
}

/* ---- lvmlockctl ---- */

/* What comes to lvmlockctl's own socket: as much as the answer promises. */
static void test_info(struct lvmlockd_process *l, const char *request, const char *const *wanted)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	static const char name[] = "lvmlockd-dump.sock";
	int fd = lvm_connect(l), dump = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct timeval patience = { .tv_sec = PATIENCE_MS / 1000 };
	char text[65536] = "";
	struct message answer;
	size_t size = 0;
	ssize_t got;

	memcpy(address.sun_path + 1, name, sizeof(name) - 1);
	if (bind(dump, (struct sockaddr *)&address, (socklen_t)(sizeof(sa_family_t) + sizeof(name))) < 0)
		bail_out("lvmlockctl runs beside this test");
	setsockopt(dump, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	lvm_send(fd, "request = \"%s\"\n", request);
	if (ok(lvm_receive(fd, &answer), "%s is answered", request) &&
	    ok_int(message_number(&answer, "result", -1), 0, "well")) {
		size_t promised = (size_t)message_number(&answer, "dump_len", 0);

		while (size < promised && (got = recv(dump, text + size, sizeof(text) - 1 - size, 0)) > 0)
			size += (size_t)got;
		ok_uint(size, promised, "all that was promised comes");
	}
	for (; *wanted; wanted++)
		ok(strstr(text, *wanted), "%s tells: %s", request, *wanted);
	close(dump);
	close(fd);
}

static void test_lvmlockctl(struct lvmlockd_process *l)
{
	static const char *const info[] = {
		"info=client ", " name=test\n", "info=ls ls_name=lvm_vg0 vg_name=vg0 "
		"vg_uuid=eOzcT8-khBL-DS7a-xv3k-VUrZ-gcE7-L2gcbv vg_sysid=none vg_args=" LVMLOCKD_MARKER " lm_type=dlm",
		"info=r name=VGLK type=vg mode=ex sh_count=0 version=3\ninfo=lk mode=ex version=3 ",
		"info=r_action client_id=", " op=lock rt=vg mode=ex ", "info=r name=" UUID " type=lv mode=ex ",
		"info=r name=GLLK type=gl mode=un ", NULL,
	};
	static const char *const dump[] = { "cluster standalone: serving\n", "info=ls ls_name=lvm_vg0 ", NULL };
	int a = lvm_connect(l), b = lvm_connect(l), fd;
	struct message answer;

	lvm_send(a, "request = \"info\"\n");
	ok(lvm_receive(a, &answer) && message_number(&answer, "result", 0) < 0, "nobody listens where info would go");
	ok_int(start_vg(a), 0, "a VG");
	ok_int(lock_vg(a, "ex"), 0, "is locked");
	ok_int(lock_lv(a, "ex"), 0, "an LV as well");
	lvm_send(b, "request = \"lock_vg\"\nmode = \"ex\"\nvg_name = \"vg0\"\n");
	test_info(l, "info", info);
	test_info(l, "dump", dump);
	fd = lvm_connect(l);
	lvm_send(fd, "request = \"quit\"\n");
	ok(lvm_receive(fd, &answer) && message_number(&answer, "result", 0) == -EBUSY, "it does not quit with VGs");
	ok_int(lock_lv(a, "un"), 0, "unlocked");
	ok_int(lvm_ask(a, "request = \"stop_vg\"\nvg_name = \"vg0\"\n"), 0, "and stopped");
	lvm_send(fd, "request = \"quit\"\n");
	ok(lvm_receive(fd, &answer) && message_number(&answer, "result", 1) == 0, "without any it does");
	ok_int(lvmlockd_wait(l), 0, "in order");
	close(a);
	close(b);
	close(fd);
}

int main(void)
{
	struct lvmlockd_process l;

	lvmlockd_prepare(&l, NULL);
	test_without_belayd(&l);
	if (l.pid > 0 && l.belayd.pid > 0) {
		test_restart(&l);
		test_belayd_restart(&l);
		test_idle(&l);
		test_many(&l);
		test_hang(&l);
		test_second(&l);
		test_bad_file(&l);
		test_lvmlockctl(&l);
	}
	lvmlockd_remove(&l);
	return done_testing();
}
