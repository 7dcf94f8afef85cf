# SPDX-License-Identifier: GPL-2.0-or-later
EXTRA_DIST += tests/bench/run tests/bench/common.sh tests/bench/engine.sh
