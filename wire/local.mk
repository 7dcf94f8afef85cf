# SPDX-License-Identifier: GPL-2.0-or-later
noinst_LIBRARIES += wire/libbelaywire.a
wire_libbelaywire_a_SOURCES = \
	wire/client.h \
	wire/wire.h
