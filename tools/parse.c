/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "tools/tool.h"

int parse_number(const char *text, uint64_t min, uint64_t max, uint64_t *ret_number)
{
	uint64_t number = 0;

	if (!*text)
		return -EINVAL;
	for (; *text; text++) {
		if (!isdigit((unsigned char)*text))
			return -EINVAL;
		if (number > (UINT64_MAX - 9) / 10)
			return -EINVAL;
		number = number * 10 + (uint64_t)(*text - '0');
	}
	if (number < min || number > max)
		return -EINVAL;
	*ret_number = number;
	return 0;
}

int parse_seconds(const char *text, unsigned int *ret_ms)
{
	uint64_t ms = 0, unit = 1000;
	bool digits = false, point = false, rest = false;

	for (; *text; text++) {
		if (*text == '.' && !point) {
			point = true;
			continue;
		}
		if (!isdigit((unsigned char)*text))
			return -EINVAL;
		digits = true;
		if (!point) {
			ms = ms * 10 + (uint64_t)(*text - '0') * 1000;
		} else {
			unit /= 10;
			ms += (uint64_t)(*text - '0') * unit;
			rest = rest || (unit == 0 && *text != '0');
		}
		if (ms > INT_MAX)
			return -EINVAL;
	}
	if (!digits)
		return -EINVAL;
	*ret_ms = (unsigned int)ms + rest;
	return 0;
}
