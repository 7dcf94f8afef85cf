/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What corosync's configuration says, read once from cmap. */
#include <corosync/cmap.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/cpg_parts.h"

enum belay_stability cpg_stability(const struct cpg_votes *votes)
{
	bool plain = !votes->two_node && !votes->auto_tie_breaker && !votes->last_man_standing &&
		     !votes->allow_downscale && !votes->device && !votes->weighted &&
		     votes->expected_votes == votes->node_count;

	return plain ? BELAY_STABLE_MAJORITY : BELAY_STABLE_ALL;
}

bool cpg_encrypted(const char *transport, const char *secauth, const char *cipher, const char *hash)
{
	bool on = secauth && (strcmp(secauth, "on") == 0 || strcmp(secauth, "yes") == 0);

	/* Only knet encrypts; it is what corosync takes if nothing is said. */
	if (transport && strcmp(transport, "knet") != 0)
		return false;
	/* secauth gives the defaults of the other two, which win. */
	if (cipher ? strcmp(cipher, "none") == 0 : !on)
		return false;
	if (hash ? strcmp(hash, "none") == 0 : !on)
		return false;
	return true;
}

#define UNREADABLE \
	"corosync did not tell all of its configuration (cmap): see corosync's log, and start " \
	"belayd again when corosync runs undisturbed"
#define WRONG_TYPE \
	"a key that belay reads from corosync's configuration (cmap) is not of the type that it has in " \
	"corosync.conf: see corosync-cmapctl, and restart corosync to undo what was set by hand"

/* Remembers its first failure, after which it finds nothing any more. */
struct reader {
	cmap_handle_t cmap;
	unsigned tries;
	int error;
	const char *why;
};

static void fail(struct reader *r, int error, const char *why)
{
	if (r->error < 0)
		return;
	r->error = error;
	r->why = why;
}

/*
 * Is it there? Only @none says that it is not: a node or a rule of votes that was
 * missed for another reason would make quorum look plainer than it is.
 */
static bool found(struct reader *r, cs_error_t e, cs_error_t none)
{
	if (e == CS_OK)
		return true;
	if (e != none)
		fail(r, cs_errno(e), e == CS_ERR_INVALID_PARAM ? WRONG_TYPE : UNREADABLE);
	return false;
}

/* A number, whatever its width; absent: @otherwise. */
static uint64_t get_number(struct reader *r, const char *key, uint64_t otherwise)
{
	union {
		uint8_t u8;
		uint16_t u16;
		uint32_t u32;
		uint64_t u64;
	} value;
	cmap_value_types_t type;
	cs_error_t e;
	size_t size;

	if (r->error < 0)
		return otherwise;
	do {
		size = sizeof(value);
		e = cmap_get(r->cmap, key, &value, &size, &type);
	} while (cs_again(e, &r->tries));
	if (!found(r, e, CS_ERR_NOT_EXIST))
		return otherwise;
	switch (type) {
	case CMAP_VALUETYPE_INT8:
	case CMAP_VALUETYPE_UINT8:	return value.u8;
	case CMAP_VALUETYPE_INT16:
	case CMAP_VALUETYPE_UINT16:	return value.u16;
	case CMAP_VALUETYPE_INT32:
	case CMAP_VALUETYPE_UINT32:	return value.u32;
	case CMAP_VALUETYPE_INT64:
	case CMAP_VALUETYPE_UINT64:	return value.u64;
	default:
		fail(r, -EINVAL, WRONG_TYPE);
		return otherwise;
	}
}

/* The caller frees it; NULL if absent. */
static char *get_text(struct reader *r, const char *key)
{
	char *text;
	cs_error_t e;

	if (r->error < 0)
		return NULL;
	do
		e = cmap_get_string(r->cmap, key, &text);
	while (cs_again(e, &r->tries));
	return found(r, e, CS_ERR_NOT_EXIST) ? text : NULL;
}

static void copy_text(struct reader *r, const char *key, char *to, size_t size)
{
	char *text = get_text(r, key);

	(void)snprintf(to, size, "%s", text ? text : "");
	free(text);
}

static uint64_t get_node_number(struct reader *r, uint32_t at, const char *field, uint64_t otherwise)
{
	char key[CMAP_KEYNAME_MAXLEN + 1];

	(void)snprintf(key, sizeof(key), "nodelist.node.%" PRIu32 ".%s", at, field);
	return get_number(r, key, otherwise);
}

static void add_node(struct reader *r, uint32_t at, struct group_info *info, uint64_t *votes,
		     bool *weighted)
{
	uint64_t id = get_node_number(r, at, "nodeid", 0);
	uint64_t vote = get_node_number(r, at, "quorum_votes", 1);
	char key[CMAP_KEYNAME_MAXLEN + 1];

	if (id == 0 || id > UINT32_MAX)
		fail(r, -EINVAL, "a node in corosync.conf has no nodeid: give every node in the nodelist one");
	else if (info->node_count == BELAY_NODES_MAX)
		fail(r, -E2BIG, "corosync.conf lists more nodes than belay can have, 128");
	for (uint32_t i = 0; i < info->node_count; i++)
		if (info->node[i] == id)
			fail(r, -EINVAL, "two nodes in corosync.conf have the same nodeid");
	if (r->error < 0)
		return;
	(void)snprintf(key, sizeof(key), "nodelist.node.%" PRIu32 ".name", at);
	copy_text(r, key, info->node_name[info->node_count], sizeof(info->node_name[0]));
	(void)snprintf(key, sizeof(key), "nodelist.node.%" PRIu32 ".ring0_addr", at);
	copy_text(r, key, info->node_address[info->node_count], sizeof(info->node_address[0]));
	info->node[info->node_count++] = (uint32_t)id;
	*votes += vote;
	*weighted |= vote != 1;
}

static bool seen(const uint32_t *places, uint32_t count, uint32_t at)
{
	for (uint32_t i = 0; i < count; i++)
		if (places[i] == at)
			return true;
	return false;
}

/* The next key; false at the end. */
static bool next_key(struct reader *r, cmap_iter_handle_t iter, char *key)
{
	cs_error_t e;

	if (r->error < 0)
		return false;
	do
		e = cmap_iter_next(r->cmap, iter, key, NULL, NULL);
	while (cs_again(e, &r->tries));
	return found(r, e, CS_ERR_NO_SECTIONS);
}

/* Nodes have places in corosync.conf's order, perhaps with gaps: walk over what is there. */
static void read_nodes(struct reader *r, struct group_info *info, struct cpg_votes *votes)
{
	char key[CMAP_KEYNAME_MAXLEN + 1];
	uint32_t at, place[BELAY_NODES_MAX];
	cmap_iter_handle_t iter;
	uint64_t sum = 0;
	cs_error_t e;

	do
		e = cmap_iter_init(r->cmap, "nodelist.node.", &iter);
	while (cs_again(e, &r->tries));
	if (e != CS_OK) {
		fail(r, cs_errno(e), UNREADABLE);
		return;
	}
	while (next_key(r, iter, key)) {
		if (sscanf(key, "nodelist.node.%" SCNu32 ".", &at) != 1 ||
		    seen(place, info->node_count, at))
			continue;
		add_node(r, at, info, &sum, &votes->weighted);
		if (r->error == 0)
			place[info->node_count - 1] = at;
	}
	(void)cmap_iter_finalize(r->cmap, iter);
	if (info->node_count == 0)
		fail(r, -EINVAL, "corosync.conf has no nodelist: belay must know every node of the cluster");
	votes->node_count = info->node_count;
	info->expected_votes = (uint32_t)get_number(r, "quorum.expected_votes", sum);
	votes->expected_votes = info->expected_votes;
}

static void read_totem(struct reader *r, struct group_info *info)
{
	char *transport = get_text(r, "totem.transport");
	char *secauth = get_text(r, "totem.secauth");
	char *cipher = get_text(r, "totem.crypto_cipher");
	char *hash = get_text(r, "totem.crypto_hash");

	info->encrypted = cpg_encrypted(transport, secauth, cipher, hash);
	copy_text(r, "totem.keyfile", info->key_file, sizeof(info->key_file));
	copy_text(r, "totem.cluster_name", info->cluster_name, sizeof(info->cluster_name));
	free(transport);
	free(secauth);
	free(cipher);
	free(hash);
}

static void read_votes(struct reader *r, struct cpg_votes *votes)
{
	char *device = get_text(r, "quorum.device.model");

	votes->two_node = get_number(r, "quorum.two_node", 0) != 0;
	votes->auto_tie_breaker = get_number(r, "quorum.auto_tie_breaker", 0) != 0;
	votes->last_man_standing = get_number(r, "quorum.last_man_standing", 0) != 0;
	votes->allow_downscale = get_number(r, "quorum.allow_downscale", 0) != 0;
	votes->device = device != NULL;
	free(device);
}

int cpg_info_read(struct group_info *ret_info, const char **ret_why)
{
	struct reader r = { .tries = CS_TRIES_MAX };
	struct group_info info = { 0 };
	struct cpg_votes votes = { 0 };
	cs_error_t e;

	do
		e = cmap_initialize(&r.cmap);
	while (cs_again(e, &r.tries));
	if (e != CS_OK) {
		*ret_why = "cannot read corosync's configuration (cmap); see corosync's log";
		return cs_errno(e);
	}
	read_nodes(&r, &info, &votes);
	read_votes(&r, &votes);
	read_totem(&r, &info);
	(void)cmap_finalize(r.cmap);
	if (r.error < 0) {
		*ret_why = r.why;
		return r.error;
	}
	info.stability = cpg_stability(&votes);
	*ret_info = info;
	return 0;
}
