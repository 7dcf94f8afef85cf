# SPDX-License-Identifier: GPL-2.0-or-later
# Memory that a client and belayd share. Sources are compiled into each user:
# $(slot_client_sources) for who locks in it, $(slot_daemon_sources) for who lends.
slot_client_sources = \
	slot/commit.h \
	slot/ranges.h \
	slot/recall.h \
	slot/slot.h
slot_daemon_sources = \
	slot/ranges.h \
	slot/recall.h \
	slot/slot.h
noinst_HEADERS += $(slot_client_sources)
