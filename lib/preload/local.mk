# SPDX-License-Identifier: GPL-2.0-or-later
# For LD_PRELOAD, which wants nothing else to be found: libbelay's sources are in it.
lib_LTLIBRARIES += lib/libbelay-preload.la
lib_libbelay_preload_la_SOURCES = \
	lib/preload/alloc.c \
	lib/preload/calm.c \
	lib/preload/close.c \
	lib/preload/exec.c \
	lib/preload/extent.c \
	lib/preload/extent.h \
	lib/preload/fcntl.c \
	lib/preload/file.c \
	lib/preload/flock.c \
	lib/preload/held.c \
	lib/preload/held.h \
	lib/preload/link.c \
	lib/preload/place.c \
	lib/preload/preload.h \
	lib/preload/say.c \
	lib/preload/syscall.c \
	lib/preload/table.c \
	lib/preload/wait.c \
	$(lib_libbelay_la_SOURCES)
# What libbelay closes are no descriptors of the program: its calls must not come to ours, nor must
# those by which this library itself reaches the kernel.
lib_libbelay_preload_la_CFLAGS = $(AM_CFLAGS) -pthread -fvisibility=hidden -Dclose=preload_close \
	-Dsyscall=preload_syscall
lib_libbelay_preload_la_LDFLAGS = $(HARDEN_DSO) -pthread -module -avoid-version -no-undefined \
	-Wl,--version-script=$(top_srcdir)/lib/preload/libbelay-preload.map
lib_libbelay_preload_la_DEPENDENCIES = lib/preload/libbelay-preload.map
EXTRA_DIST += lib/preload/libbelay-preload.map
