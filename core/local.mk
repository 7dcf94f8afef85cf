# SPDX-License-Identifier: GPL-2.0-or-later
noinst_LIBRARIES += core/libbelaycore.a
core_libbelaycore_a_SOURCES = \
	core/core.h \
	core/types.h
