# SPDX-License-Identifier: GPL-2.0-or-later
EXTRA_DIST += scripts/check scripts/demo scripts/deps
