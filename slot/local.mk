# SPDX-License-Identifier: GPL-2.0-or-later
# Memory that a client and belayd share. The sources are compiled into each
# user: those of the second list into who lends, both into who locks there.
slot_client_sources = \
	slot/commit.c \
	slot/commit.h \
	slot/commit_inline.h
slot_sources = \
	slot/ranges.c \
	slot/ranges.h \
	slot/ranges_inline.h \
	slot/recall.c \
	slot/recall.h \
	slot/replay.c \
	slot/replay.h \
	slot/slot.h
noinst_LIBRARIES += slot/libbelayslot.a
slot_libbelayslot_a_SOURCES = $(slot_sources) $(slot_client_sources)
