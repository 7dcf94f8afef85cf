/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Locks of the node itself, through libbelay: no process takes them along when it ends. */
#include <stdlib.h>
#include <string.h>

#include "include/belay.h"
#include "tests/ipc/belayd.h"
#include "tests/tap.h"

static struct belay_handle *open_volume(struct belay *belay, const char *name, enum belay_lock_owner owner)
{
	struct belay_handle *handle = NULL;

	if (belay_open_name(belay, "volumes", name, owner, &handle) < 0)
		bail_out("cannot open a volume's lock");
	return handle;
}

static struct belay *connect_to(const struct belayd *daemon)
{
	struct belay *belay = NULL;

	if (belay_connect(&belay, daemon->socket) < 0)
		bail_out("no connection to belayd");
	return belay;
}

static void test_owner(const struct belayd *daemon)
{
	struct belay *first = connect_to(daemon), *second = connect_to(daemon);
	struct belay_handle *a = open_volume(first, "LV:a", BELAY_OWNER_NODE);
	struct belay_handle *b = open_volume(second, "LV:a", BELAY_OWNER_NODE);
	struct belay_handle *other = open_volume(second, "LV:a", BELAY_OWNER_HANDLE), *none = NULL;
	struct belay_lock_holder holder;

	ok_int(belay_trylock(a, BELAY_EXCLUSIVE, 0, 0, NULL), 0, "the node has it");
	ok_int(belay_trylock(b, BELAY_EXCLUSIVE, 0, 0, NULL), 0, "whoever asks for it");
	ok_int(belay_get(b, BELAY_EXCLUSIVE, 0, 0, &holder), 0, "it is not in its own way");
	ok_int(belay_trylock(other, BELAY_SHARED, 0, 0, NULL), -EAGAIN, "a process is another owner");
	ok_int(belay_get(other, BELAY_SHARED, 0, 0, &holder), 1, "and is told");
	ok_int((int)holder.owner, BELAY_OWNER_NODE, "that the node has it");
	ok_int(belay_trylock(a, BELAY_EXCLUSIVE, 5, 10, NULL), -EINVAL, "there are no parts of it");
	ok_int(belay_unlock(a, 5, 10), -EINVAL, "nor can one be given up");
	ok_int(belay_open_name(first, "default", "x", BELAY_OWNER_NODE, &none), -EINVAL,
	       "only volumes are a node's");
	belay_handle_close(a);
	belay_handle_close(b);
	ok_int(belay_trylock(other, BELAY_SHARED, 0, 0, NULL), -EAGAIN, "closing all handles leaves it");
	belay_handle_close(other);
	belay_disconnect(first);
	belay_disconnect(second);
}

static void test_later_process(const struct belayd *daemon)
{
	struct belay *belay = connect_to(daemon);
	struct belay_handle *node = open_volume(belay, "LV:a", BELAY_OWNER_NODE);
	struct belay_handle *other = open_volume(belay, "LV:a", BELAY_OWNER_HANDLE);

	ok_int(belay_trylock(other, BELAY_SHARED, 0, 0, NULL), -EAGAIN, "so does the end of the process");
	ok_int(belay_unlock(node, 0, 0), 0, "a later process");
	ok_int(belay_trylock(other, BELAY_SHARED, 0, 0, NULL), 0, "can give it up");
	belay_handle_close(node);
	belay_handle_close(other);
	belay_disconnect(belay);
}

static void test_forget(const struct belayd *daemon)
{
	struct belay *belay = connect_to(daemon);
	struct belay_handle *left = open_volume(belay, "LV:left", BELAY_OWNER_NODE);
	struct belay_handle *kept = open_volume(belay, "LV:kept", BELAY_OWNER_NODE), *other;
	char *text = NULL;

	ok_int(belay_trylock(left, BELAY_EXCLUSIVE, 0, 0, NULL), 0, "a lock that nobody will know of");
	belay_handle_close(left);
	ok_int(belay_trylock(kept, BELAY_EXCLUSIVE, 0, 0, NULL), 0, "and one that is known");
	ok_int(belay_command(belay, "node-locks-forget", &text), 0, "forget the rest");
	ok_str(text ? text : "", "{\"forgotten\":1}", "that is one");
	free(text);
	other = open_volume(belay, "LV:left", BELAY_OWNER_HANDLE);
	ok_int(belay_trylock(other, BELAY_EXCLUSIVE, 0, 0, NULL), 0, "it is free");
	belay_handle_close(other);
	other = open_volume(belay, "LV:kept", BELAY_OWNER_HANDLE);
	ok_int(belay_trylock(other, BELAY_EXCLUSIVE, 0, 0, NULL), -EAGAIN, "the other is not");
	ok_int(belay_unlock(kept, 0, 0), 0, "it is given up");
	ok_int(belay_trylock(other, BELAY_EXCLUSIVE, 0, 0, NULL), 0, "and free");
	ok_int(belay_command(belay, "node-locks-forget", NULL), 0, "there is nothing more to forget");
	belay_handle_close(other);
	belay_handle_close(kept);
	belay_disconnect(belay);
}

int main(void)
{
	struct belayd daemon;

	belayd_start(&daemon, NULL);
	test_owner(&daemon);
	test_later_process(&daemon);
	test_forget(&daemon);
	ok_int(belayd_stop(&daemon), 0, "belayd stops cleanly");
	if (tap_state()->failed > 0)
		belayd_show_log(&daemon);
	belayd_remove(&daemon);
	return done_testing();
}
