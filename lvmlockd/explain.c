/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lvmlockd/explain.h"

#include <stdio.h>
#include <string.h>

/* ---- LVs of which only one node may have one active ---- */

static bool has_word(const char *list, const char *word)
{
	size_t size = strlen(word);

	for (const char *at = list; (at = strstr(at, word)); at += size)
		if ((at == list || at[-1] == ',') && (at[size] == '\0' || at[size] == ','))
			return true;
	return false;
}

const char *explain_not_shared(const char *layout, const char *role)
{
	static const struct {
		const char *word, *why;
	} layouts[] = {
		{ "vdo", "it is a VDO volume: its index and its map of blocks are in the memory of the node "
			 "that has it active, and nodes would overwrite each other's" },
		{ "thin", "it is thin, or a thin pool: which blocks are in use is decided in the memory of "
			  "the node that has it active, and nodes would give the same block away twice" },
		{ "writecache", "it has a write cache: what other nodes would read is not on its disk yet" },
		{ "cache", "it is cached: other nodes would read from its disk what is newer in the cache" },
		{ "raid", "it is RAID: nodes would write its mirrors or parity at once, each without "
			  "knowing of the other, and leave them different" },
		{ "mirror", "it is a mirror: nodes would write its copies at once, each without knowing of "
			    "the other, and leave them different" },
	};

	for (size_t i = 0; layout && i < sizeof(layouts) / sizeof(layouts[0]); i++)
		if (has_word(layout, layouts[i].word))
			return layouts[i].why;
	if (role && (has_word(role, "extthinorigin") || has_word(role, "multiextthinorigin")))
		return "thin volumes have it as their external origin";
	if (role && (has_word(role, "thickorigin") || has_word(role, "multithickorigin") ||
		     has_word(role, "thicksnapshot")))
		return "it is a snapshot, or has one: which blocks are copied is known to the node that has "
		       "it active only";
	return NULL;
}

/* ---- what lvm says ---- */

/* What stands in a line of lvm's output, and what that means. Of an LV: the line has to name it. */
static const struct {
	const char *says;
	bool of_lv;
	const char *means;
} sayings[] = {
	{ "LV locked by other host", true,
	  "another node has it locked; belay lv status says which. Deactivate it there, or wait for it "
	  "with --timeout" },
	{ "already locked with incompatible mode", true,
	  "this node has it locked in another mode; deactivate it here first" },
	{ "lock failed: lockspace is inactive", true,
	  "the VG is not started on this node: vgchange --lock-start" },
	{ "contains a filesystem in use", true, "a file system on it is mounted on this node: unmount it first" },
	{ "is used by another device", true,
	  "another device of this node is built on it: take that away first (lsblk shows it)" },
	{ "in use", true, "a program of this node has it open: end that first (fuser or lsof says which)" },
	{ "partial LV", true,
	  "a disk that it lies on is missing on this node: look at lvs -o +devices and the paths to the LUN" },
	{ "does not pass activation filter", true,
	  "volume_list in this node's lvm.conf does not allow it to be active here" },
	{ "Failed to find logical volume", true,
	  "this node knows no such LV: it was removed, or this node sees other disks than the rest" },
	{ "ailed to suspend", true, "device-mapper could not suspend it; the kernel's log says why" },
	{ "lock failed: held by other host", false,
	  "another command, perhaps of another node, has the VG locked for all that time" },
	{ "lock skipped: held by other host", false,
	  "another command, perhaps of another node, has the VG locked for all that time" },
	{ "lock start in progress", false,
	  "the VG is just being started, or a node has not yet said what it has active; try again" },
	{ "lock failed: removed", false, "another node has removed the VG" },
	{ "requires lvmlockd", false, "lvm does not use belay here: set use_lvmlockd = 1 in this node's lvm.conf" },
	{ "lvmlockd process is not running", false,
	  "lvm does not find belay-lvmlockd here: is its pid_file where lvm looks, /run/lvmlockd.pid?" },
	{ "lvmlockd connect failed", false,
	  "lvm does not reach belay-lvmlockd here: is its socket where lvm looks, /run/lvm/lvmlockd.socket?" },
	{ "lockspace not found or started", false, "the VG is not started on this node: vgchange --lock-start" },
	{ "duplicate devices", false,
	  "this node sees a disk of the VG twice: its multipath is not set up, or lvm looks below it" },
	{ "foreign VG", false, "the VG belongs to another host by its system ID, and is not shared" },
	{ "not found", false,
	  "this node knows no such VG: does it see the LUN (lsblk), and does lvm use it (lvmdevices)?" },
	{ "Cannot process volume group", false,
	  "this node knows no such VG: does it see the LUN (lsblk), and does lvm use it (lvmdevices)?" },
};

/* Is @name there, and not as a part of a longer name? */
static bool names(const char *line, size_t size, const char *name)
{
	size_t length = strlen(name);
	const char *end = line + size;

	for (const char *at = line; (at = memmem(at, (size_t)(end - at), name, length)); at++) {
		char before[2] = { at > line ? at[-1] : ' ', '\0' };
		char after[2] = { at + length < end ? at[length] : ' ', '\0' };

		/* A dot may end a sentence. */
		if (!ask_is_name(before) && (!ask_is_name(after) || after[0] == '.') && before[0] != '-' &&
		    after[0] != '-')
			return true;
	}
	return false;
}

static bool of_this(const struct explain_case *c, const char *line, size_t size)
{
	return c->lv[0] == '\0' || names(line, size, c->lv);
}

static const char *next_line(const char *line)
{
	const char *end = strchr(line, '\n');

	return end ? end + 1 : line + strlen(line);
}

/* What its sayings mean, those of LVs or those of all; NULL: none is known. */
static const char *meaning(const struct explain_case *c, bool of_lv)
{
	for (size_t i = 0; i < sizeof(sayings) / sizeof(sayings[0]); i++) {
		if (sayings[i].of_lv != of_lv)
			continue;
		for (const char *line = c->output; *line; line = next_line(line)) {
			size_t size = strcspn(line, "\n");

			if (memmem(line, size, sayings[i].says, strlen(sayings[i].says)) &&
			    (!of_lv || of_this(c, line, size)))
				return sayings[i].means;
		}
	}
	return NULL;
}

/* Its own last words, best of all about this LV, without what it says at every call. */
static const char *last_words(const struct explain_case *c, size_t *ret_size)
{
	const char *found = NULL;
	bool found_named = false;

	for (const char *line = c->output; *line; line = next_line(line)) {
		size_t size = strcspn(line, "\n");
		bool named = c->lv[0] != '\0' && names(line, size, c->lv);

		if (strspn(line, " \t") >= size || strstr(line, "leaked on lvm invocation") == line ||
		    (found_named && !named))
			continue;
		found = line + strspn(line, " \t");
		*ret_size = size - (size_t)(found - line);
		found_named = named;
	}
	return found;
}

void explain(const struct explain_case *c, char *ret_text, size_t size)
{
	const char *why = meaning(c, true), *words;
	size_t words_size;

	if (!why)
		why = meaning(c, false);
	words = last_words(c, &words_size);
	if (why)
		(void)snprintf(ret_text, size, "%s", why);
	else if (words)
		(void)snprintf(ret_text, size, "lvm says: %.*s", (int)words_size, words);
	else
		(void)snprintf(ret_text, size, "lvm failed and said nothing");
}
