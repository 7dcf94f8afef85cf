/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lvmlockctl: --info and --dump, whose answers go to a socket of its own, and --quit. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <qb/qblog.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "lvmlockd/policy.h"
#include "lvmlockd/request.h"
#include "lvmlockd/worker.h"

#define DUMP_SOCKET "lvmlockd-dump.sock"
/* lvmlockctl has room for that much, and for so many clients. */
#define DUMP_MAX (4u * 1024 * 1024)
#define CLIENTS_SHOWN 100u
#define DATAGRAM_MAX (32u * 1024)

/* ---- what is told ---- */

static unsigned count_shared(const struct lvmlockd *lvmlockd, const char *vg_name)
{
	struct connection *c = NULL;
	unsigned count = 0;

	while ((c = server_next(lvmlockd->server, c))) {
		const struct hold *hold = hold_find(c, vg_name);

		count += hold && hold->mode == MODE_SH;
	}
	return count;
}

/* The lines of the global lock, or of a VG's. */
static void put_holds(const struct lvmlockd *lvmlockd, const char *vg_name, uint32_t version, FILE *to)
{
	unsigned shared = count_shared(lvmlockd, vg_name);
	enum lock_mode mode = shared > 0 ? MODE_SH : MODE_UN;
	const char *type = vg_name ? "vg" : "gl";
	struct connection *c = NULL;
	const struct hold *hold;

	while ((c = server_next(lvmlockd->server, c)))
		if ((hold = hold_find(c, vg_name)) && hold->mode == MODE_EX)
			mode = MODE_EX;
	fprintf(to, "info=r name=%s type=%s mode=%s sh_count=%u version=%" PRIu32 "\n",
		vg_name ? "VGLK" : "GLLK", type, lock_mode_name(mode), shared, version);
	while ((c = server_next(lvmlockd->server, c))) {
		hold = hold_find(c, vg_name);
		if (hold && hold->mode != MODE_UN)
			fprintf(to, "info=lk mode=%s version=%" PRIu32 " flags=0 client_id=%" PRIu32 "\n",
				lock_mode_name(hold->mode), version, connection_number(c));
		if (hold && hold->waiting)
			fprintf(to, "info=r_action client_id=%" PRIu32 " flags=0 version=0 op=lock rt=%s "
				"mode=%s lm_type=dlm result=0 lm_rv=0\n", connection_number(c), type,
				lock_mode_name(hold->wanted));
	}
}

static void put_vg(const struct lvmlockd *lvmlockd, const struct vg *vg, FILE *to)
{
	const struct volume *volume;

	fprintf(to, "info=ls ls_name=lvm_%s vg_name=%s vg_uuid=%s vg_sysid=none vg_args=%s lm_type=dlm host_id=0 "
		"create_fail=0 create_done=%d thread_work=0 thread_stop=0 thread_done=0 kill_vg=%d drop_vg=0 "
		"sanlock_gl_enabled=0\n", vg->name, vg->name, vg->uuid[0] != '\0' ? vg->uuid : "none",
		vg->args, !vg->starting, vg->killed);
	put_holds(lvmlockd, vg->name, vg->version, to);
	TAILQ_FOREACH(volume, &vg->volumes, link) {
		enum lock_mode mode = lock_held(volume->lock) > volume->mode ? lock_held(volume->lock) :
				      volume->mode;

		fprintf(to, "info=r name=%s type=lv mode=%s sh_count=%d version=0\n", volume->uuid,
			lock_mode_name(mode), mode == MODE_SH);
		if (mode != MODE_UN)
			fprintf(to, "info=lk mode=%s version=0 flags=%s client_id=0\n", lock_mode_name(mode),
				volume->mode != MODE_UN ? "pers" : "0");
	}
}

static void put_info(const struct lvmlockd *lvmlockd, FILE *to)
{
	struct connection *c = NULL;
	const struct vg *vg;
	unsigned shown = 0;

	while ((c = server_next(lvmlockd->server, c)) && shown++ < CLIENTS_SHOWN)
		fprintf(to, "info=client pid=%d fd=0 pi=0 id=%" PRIu32 " name=%s\n", (int)connection_pid(c),
			connection_number(c), connection_command(c)[0] != '\0' ? connection_command(c) : "none");
	fprintf(to, "info=ls ls_name=lvm_global vg_name=none vg_uuid=none vg_sysid=none vg_args=%s "
		"lm_type=dlm host_id=0\n",
		lvmlockd->marker[0] != '\0' ? lvmlockd->marker : "none");
	put_holds(lvmlockd, NULL, 0, to);
	TAILQ_FOREACH(vg, state_vgs(lvmlockd->state), link)
		put_vg(lvmlockd, vg, to);
}

/* What was done without quorum, and what hangs. */
static void put_trouble(const struct lvmlockd *lvmlockd, FILE *to)
{
	struct policy_status policy;
	struct worker_count count;
	struct worker_hung hung;

	if (lvmlockd->policy) {
		policy_status(lvmlockd->policy, &policy);
		fprintf(to, "on_quorum_loss=%s state=%s suspended=%u failed=%u unfinished=%u refused=%u "
			"took_ms=%" PRIu64 "\n", policy_action_name(policy.action),
			policy_state_name(policy.state), policy.count.frozen, policy.count.failed,
			policy.count.hung, policy.count.refused, policy.took_ms);
	}
	if (!lvmlockd->worker)
		return;
	count = worker_count(lvmlockd->worker);
	fprintf(to, "children=%u waiting=%u hung=%u\n", count.running, count.queued, count.hung);
	for (unsigned i = 0; i < CLIENTS_SHOWN && worker_hung(lvmlockd->worker, i, &hung); i++)
		fprintf(to, "hung pid=%d for_ms=%" PRIu64 " in=%s what=%s\n", hung.pid, hung.for_ms,
			hung.where[0] != '\0' ? hung.where : "unknown", hung.what);
}

static void put_dump(const struct lvmlockd *lvmlockd, FILE *to)
{
	static const char *const phases[] = {
		[LVMLOCKD_CONNECTING] = "belayd cannot be reached",
		[LVMLOCKD_ADOPTING] = "adopting what is active",
		[LVMLOCKD_SERVING] = "serving",
	};

	fprintf(to, "belay-lvmlockd %s, node %" PRIu32 ", cluster %s: %s\n", PACKAGE_VERSION,
		locks_node(lvmlockd->locks), locks_cluster(lvmlockd->locks), phases[lvmlockd->phase]);
	put_trouble(lvmlockd, to);
	put_info(lvmlockd, to);
}

/* ---- telling it ---- */

struct dump {
	qb_loop_t *loop;
	int fd;
	char *text;
	size_t size, at;
};

static void end_dump(struct dump *dump)
{
	(void)qb_loop_poll_del(dump->loop, dump->fd);
	(void)close(dump->fd);
	free(dump->text);
	free(dump);
}

/* lvmlockctl reads as much as the answer has promised, in whatever pieces; its socket takes few at a time. */
static int32_t on_writable(int32_t fd, int32_t revents, void *data)
{
	struct dump *dump = data;
	size_t size = dump->size - dump->at;
	ssize_t sent = send(fd, dump->text + dump->at, size < DATAGRAM_MAX ? size : DATAGRAM_MAX,
			    MSG_DONTWAIT | MSG_NOSIGNAL);

	(void)revents;
	if (sent < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (sent > 0)
		dump->at += (size_t)sent;
	if (sent < 0 || dump->at == dump->size)
		end_dump(dump);
	return 0;
}

static int open_dump_socket(int *ret_fd)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	socklen_t size = (socklen_t)(sizeof(sa_family_t) + sizeof(DUMP_SOCKET));
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), r;

	if (fd < 0)
		return -errno;
	/* An abstract name: it begins with a zero. */
	memcpy(address.sun_path + 1, DUMP_SOCKET, sizeof(DUMP_SOCKET) - 1);
	if (connect(fd, (const struct sockaddr *)&address, size) < 0) {
		r = -errno;
		(void)close(fd);
		return r;
	}
	*ret_fd = fd;
	return 0;
}

static void answer_dump(struct connection *connection, int result, size_t size)
{
	struct message_out out;

	message_begin(&out);
	message_put_text(&out, "response", "OK");
	message_put_number(&out, "result", result);
	message_put_number(&out, "dump_len", (int64_t)size);
	(void)message_end(&out);
	(void)connection_send(connection, out.bytes, out.size, true);
}

static int make_text(const struct lvmlockd *lvmlockd, void (*put)(const struct lvmlockd *, FILE *),
		     struct dump *dump)
{
	FILE *to = open_memstream(&dump->text, &dump->size);

	if (!to)
		return -ENOMEM;
	put(lvmlockd, to);
	if (fclose(to) != 0)
		return -ENOMEM;
	if (dump->size > DUMP_MAX)
		dump->size = DUMP_MAX;
	return 0;
}

static void tell(struct lvmlockd *lvmlockd, struct connection *connection,
		 void (*put)(const struct lvmlockd *, FILE *))
{
	struct dump *dump = calloc(1, sizeof(*dump));
	int r = dump ? make_text(lvmlockd, put, dump) : -ENOMEM;

	if (r == 0)
		r = open_dump_socket(&dump->fd);
	if (r == 0 && qb_loop_poll_add(lvmlockd->loop, QB_LOOP_LOW, dump->fd, POLLOUT, dump, on_writable) < 0) {
		(void)close(dump->fd);
		r = -ENOMEM;
	}
	answer_dump(connection, r, r == 0 ? dump->size : 0);
	if (r == 0) {
		dump->loop = lvmlockd->loop;
	} else if (dump) {
		free(dump->text);
		free(dump);
	}
}

void request_info(struct lvmlockd *lvmlockd, struct connection *connection, const struct message *message)
{
	(void)message;
	tell(lvmlockd, connection, put_info);
}

void request_dump(struct lvmlockd *lvmlockd, struct connection *connection, const struct message *message)
{
	(void)message;
	tell(lvmlockd, connection, put_dump);
}

void request_quit(struct lvmlockd *lvmlockd, struct connection *connection, const struct message *message)
{
	bool busy = !TAILQ_EMPTY(state_vgs(lvmlockd->state));
	struct message_out out;

	(void)message;
	message_begin(&out);
	message_put_text(&out, "response", "OK");
	message_put_number(&out, "result", busy ? -EBUSY : 0);
	(void)message_end(&out);
	(void)connection_send(connection, out.bytes, out.size, true);
	if (!busy)
		lvmlockd_stop(lvmlockd);
}
