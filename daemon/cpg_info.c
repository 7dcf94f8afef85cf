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

/* A number, whatever its width; absent or not a number: @otherwise. */
static uint64_t get_number(cmap_handle_t cmap, const char *key, uint64_t otherwise)
{
	union {
		uint8_t u8;
		uint16_t u16;
		uint32_t u32;
		uint64_t u64;
	} value;
	size_t size = sizeof(value);
	cmap_value_types_t type;

	if (cmap_get(cmap, key, &value, &size, &type) != CS_OK)
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
	default:			return otherwise;
	}
}

/* The caller frees it; NULL if absent. */
static char *get_text(cmap_handle_t cmap, const char *key)
{
	char *text;

	return cmap_get_string(cmap, key, &text) == CS_OK ? text : NULL;
}

static void copy_text(cmap_handle_t cmap, const char *key, char *to, size_t size)
{
	char *text = get_text(cmap, key);

	(void)snprintf(to, size, "%s", text ? text : "");
	free(text);
}

static uint64_t get_node_number(cmap_handle_t cmap, uint32_t at, const char *field, uint64_t otherwise)
{
	char key[CMAP_KEYNAME_MAXLEN + 1];

	(void)snprintf(key, sizeof(key), "nodelist.node.%" PRIu32 ".%s", at, field);
	return get_number(cmap, key, otherwise);
}

static int add_node(cmap_handle_t cmap, uint32_t at, struct group_info *info, uint64_t *votes,
		    bool *weighted, const char **ret_why)
{
	uint64_t id = get_node_number(cmap, at, "nodeid", 0);
	uint64_t vote = get_node_number(cmap, at, "quorum_votes", 1);
	char key[CMAP_KEYNAME_MAXLEN + 1];

	if (id == 0 || id > UINT32_MAX) {
		*ret_why = "a node in corosync.conf has no nodeid: give every node in the nodelist one";
		return -EINVAL;
	}
	if (info->node_count == BELAY_NODES_MAX) {
		*ret_why = "corosync.conf lists more nodes than belay can have, 128";
		return -E2BIG;
	}
	for (uint32_t i = 0; i < info->node_count; i++) {
		if (info->node[i] == id) {
			*ret_why = "two nodes in corosync.conf have the same nodeid";
			return -EINVAL;
		}
	}
	(void)snprintf(key, sizeof(key), "nodelist.node.%" PRIu32 ".name", at);
	copy_text(cmap, key, info->node_name[info->node_count], sizeof(info->node_name[0]));
	info->node[info->node_count++] = (uint32_t)id;
	*votes += vote;
	*weighted |= vote != 1;
	return 0;
}

static bool seen(const uint32_t *places, uint32_t count, uint32_t at)
{
	for (uint32_t i = 0; i < count; i++)
		if (places[i] == at)
			return true;
	return false;
}

/* Nodes have places in corosync.conf's order, perhaps with gaps: walk over what is there. */
static int read_nodes(cmap_handle_t cmap, struct group_info *info, struct cpg_votes *votes,
		      const char **ret_why)
{
	char key[CMAP_KEYNAME_MAXLEN + 1];
	cmap_iter_handle_t iter;
	uint64_t sum = 0;
	uint32_t at, place[BELAY_NODES_MAX];
	int r;

	*ret_why = "cannot read corosync's nodelist from cmap";
	r = cs_errno(cmap_iter_init(cmap, "nodelist.node.", &iter));
	if (r < 0)
		return r;
	while (r == 0 && cmap_iter_next(cmap, iter, key, NULL, NULL) == CS_OK) {
		if (sscanf(key, "nodelist.node.%" SCNu32 ".", &at) != 1 ||
		    seen(place, info->node_count, at))
			continue;
		r = add_node(cmap, at, info, &sum, &votes->weighted, ret_why);
		if (r == 0)
			place[info->node_count - 1] = at;
	}
	(void)cmap_iter_finalize(cmap, iter);
	if (r < 0)
		return r;
	if (info->node_count == 0) {
		*ret_why = "corosync.conf has no nodelist: belay must know every node of the cluster";
		return -EINVAL;
	}
	votes->node_count = info->node_count;
	info->expected_votes = (uint32_t)get_number(cmap, "quorum.expected_votes", sum);
	votes->expected_votes = info->expected_votes;
	return 0;
}

static void read_totem(cmap_handle_t cmap, struct group_info *info)
{
	char *transport = get_text(cmap, "totem.transport");
	char *secauth = get_text(cmap, "totem.secauth");
	char *cipher = get_text(cmap, "totem.crypto_cipher");
	char *hash = get_text(cmap, "totem.crypto_hash");

	info->encrypted = cpg_encrypted(transport, secauth, cipher, hash);
	copy_text(cmap, "totem.cluster_name", info->cluster_name, sizeof(info->cluster_name));
	free(transport);
	free(secauth);
	free(cipher);
	free(hash);
}

static void read_votes(cmap_handle_t cmap, struct cpg_votes *votes)
{
	char *device = get_text(cmap, "quorum.device.model");

	votes->two_node = get_number(cmap, "quorum.two_node", 0) != 0;
	votes->auto_tie_breaker = get_number(cmap, "quorum.auto_tie_breaker", 0) != 0;
	votes->last_man_standing = get_number(cmap, "quorum.last_man_standing", 0) != 0;
	votes->allow_downscale = get_number(cmap, "quorum.allow_downscale", 0) != 0;
	votes->device = device != NULL;
	free(device);
}

int cpg_info_read(struct group_info *ret_info, const char **ret_why)
{
	struct group_info info = { 0 };
	struct cpg_votes votes = { 0 };
	unsigned tries = CS_TRIES_MAX;
	cmap_handle_t cmap;
	cs_error_t e;
	int r;

	do
		e = cmap_initialize(&cmap);
	while (cs_again(e, &tries));
	if (e != CS_OK) {
		*ret_why = "cannot read corosync's configuration (cmap); see corosync's log";
		return cs_errno(e);
	}
	r = read_nodes(cmap, &info, &votes, ret_why);
	if (r == 0) {
		read_votes(cmap, &votes);
		read_totem(cmap, &info);
		info.stability = cpg_stability(&votes);
		*ret_info = info;
	}
	(void)cmap_finalize(cmap);
	return r;
}
