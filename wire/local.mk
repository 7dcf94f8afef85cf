# SPDX-License-Identifier: GPL-2.0-or-later
noinst_LIBRARIES += wire/libbelaywire.a
wire_libbelaywire_a_SOURCES = \
	wire/client.c \
	wire/client.h \
	wire/cursor.h \
	wire/group.c \
	wire/hint.c \
	wire/hint.h \
	wire/parts.c \
	wire/parts.h \
	wire/snapshot.c \
	wire/wire.h
