# SPDX-License-Identifier: GPL-2.0-or-later
# On virtual machines that share a disk: "make check-lab".
LAB_TESTS += \
	tests/lab/bed.sh \
	tests/lab/dm.sh \
	tests/lab/fence.sh \
	tests/lab/quorum.sh \
	tests/lab/volumes.sh
EXTRA_DIST += $(LAB_TESTS) tests/lab/common.sh tests/lab/image tests/lab/init tests/lab/lab

check_PROGRAMS += tests/lab/agent tests/lab/dm_probe
tests_lab_dm_probe_CFLAGS = $(AM_CFLAGS) $(QB_CFLAGS)
tests_lab_dm_probe_LDADD = lvmlockd/liblvmlockd.a $(QB_LIBS) $(DEVMAPPER_LIBS)

# What the nodes get: belay as it is installed.
lab-root: all
	$(AM_V_GEN)rm -rf tests/lab/root && \
		$(MAKE) $(AM_MAKEFLAGS) install DESTDIR='$(abs_builddir)/tests/lab/root' >tests/lab/root.log 2>&1 || \
		{ cat tests/lab/root.log; exit 1; }
MOSTLYCLEANFILES += tests/lab/root.log
clean-lab:
	-rm -rf tests/lab/root tests/lab/cache
.PHONY: lab-root clean-lab
