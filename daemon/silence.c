/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/silence.h"

void silence_asked(struct silence *s, const struct group_info *info, uint64_t now_us)
{
	for (uint32_t i = 0; i < info->node_count; i++)
		if (info->node[i] != info->self && s->since_us[i] == 0)
			s->since_us[i] = now_us;
}

void silence_heard(struct silence *s, const struct group_info *info, uint32_t node)
{
	for (uint32_t i = 0; i < info->node_count; i++)
		if (info->node[i] == node)
			s->since_us[i] = 0;
}

uint64_t silence_since(const struct silence *s, const struct group_info *info, uint32_t node)
{
	for (uint32_t i = 0; i < info->node_count; i++)
		if (info->node[i] == node)
			return s->since_us[i];
	return 0;
}
