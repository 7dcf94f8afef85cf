# SPDX-License-Identifier: GPL-2.0-or-later
lib_LTLIBRARIES += lib/libbelay.la
include_HEADERS += include/belay.h
lib_libbelay_la_SOURCES = \
	include/belay.h \
	lib/call.c \
	lib/command.c \
	lib/connect.c \
	lib/event.c \
	lib/handle.c \
	lib/handle.h \
	lib/loan.c \
	lib/loan.h \
	lib/lock.c \
	lib/private.h \
	lib/range.c \
	lib/send.c \
	lib/share.c \
	lib/share.h \
	lib/wait.c \
	$(slot_client_sources) $(slot_sources) \
	wire/client.c \
	wire/client.h \
	wire/cursor.h
lib_libbelay_la_CFLAGS = $(AM_CFLAGS) -pthread
lib_libbelay_la_LDFLAGS = $(HARDEN_DSO) -pthread \
	-version-info $(LIBBELAY_VERSION_INFO) -no-undefined \
	-Wl,--version-script=$(top_srcdir)/lib/libbelay.map
lib_libbelay_la_DEPENDENCIES = lib/libbelay.map
EXTRA_DIST += lib/libbelay.map
