# SPDX-License-Identifier: GPL-2.0-or-later
dist_doc_DATA += doc/belay.conf.example doc/protocol.md
EXTRA_DIST += doc/decisions/0001-cpg-from-the-loop.md
