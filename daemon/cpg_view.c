/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Corosync's words as ours: error codes, and processes as nodes. Pure but for cs_again()'s nap. */
#include <assert.h>
#include <errno.h>
#include <time.h>

#include "daemon/cpg_parts.h"

int cs_errno(cs_error_t error)
{
	switch (error) {
	case CS_OK:			return 0;
	case CS_ERR_TRY_AGAIN:
	case CS_ERR_BUSY:		return -EAGAIN;
	case CS_ERR_NO_MEMORY:		return -ENOMEM;
	case CS_ERR_NO_RESOURCES:
	case CS_ERR_NO_SPACE:		return -ENOSPC;
	case CS_ERR_INVALID_PARAM:	return -EINVAL;
	case CS_ERR_ACCESS:
	case CS_ERR_SECURITY:		return -EACCES;
	case CS_ERR_EXIST:		return -EEXIST;
	case CS_ERR_NOT_EXIST:		return -ENOENT;
	case CS_ERR_TOO_BIG:		return -EMSGSIZE;
	case CS_ERR_TIMEOUT:		return -ETIMEDOUT;
	case CS_ERR_NOT_SUPPORTED:
	case CS_ERR_VERSION:		return -EOPNOTSUPP;
	case CS_ERR_LIBRARY:
	case CS_ERR_BAD_HANDLE:		return -ENOTCONN;
	default:			return -EIO;
	}
}

bool cs_again(cs_error_t error, unsigned *tries)
{
	const struct timespec nap = { .tv_nsec = 10 * 1000 * 1000 };

	if (cs_errno(error) != -EAGAIN || *tries == 0)
		return false;
	(*tries)--;
	(void)nanosleep(&nap, NULL);
	return true;
}

static bool has_process(const struct cpg_address *list, size_t count, const struct cpg_address *process)
{
	for (size_t i = 0; i < count; i++)
		if (list[i].nodeid == process->nodeid && list[i].pid == process->pid)
			return true;
	return false;
}

static bool has_node(const uint32_t *nodes, uint32_t count, uint32_t node)
{
	for (uint32_t i = 0; i < count; i++)
		if (nodes[i] == node)
			return true;
	return false;
}

static void add_node(uint32_t *nodes, uint32_t *count, uint32_t node)
{
	if (*count < BELAY_NODES_MAX && !has_node(nodes, *count, node))
		nodes[(*count)++] = node;
}

void cpg_view_make(const struct cpg_address *member, size_t member_count,
		   const struct cpg_address *left, size_t left_count,
		   const struct cpg_address *joined, size_t joined_count,
		   struct group_view *ret_view)
{
	uint32_t stayed[BELAY_NODES_MAX], stayed_count = 0;
	struct group_view view = { 0 };

	static_assert(CPG_MEMBERS_MAX <= BELAY_NODES_MAX, "corosync's views fit into ours");

	for (size_t i = 0; i < member_count; i++) {
		add_node(view.member, &view.member_count, member[i].nodeid);
		if (!has_process(joined, joined_count, &member[i]))
			add_node(stayed, &stayed_count, member[i].nodeid);
	}
	for (size_t i = 0; i < left_count; i++)
		if (!has_node(stayed, stayed_count, left[i].nodeid))
			add_node(view.left, &view.left_count, left[i].nodeid);
	for (size_t i = 0; i < joined_count; i++)
		if (!has_node(stayed, stayed_count, joined[i].nodeid))
			add_node(view.joined, &view.joined_count, joined[i].nodeid);
	*ret_view = view;
}

bool cpg_view_has_other(const struct cpg_address *member, size_t member_count,
			uint32_t node, uint32_t pid)
{
	for (size_t i = 0; i < member_count; i++)
		if (member[i].nodeid == node && member[i].pid != pid)
			return true;
	return false;
}
