# SPDX-License-Identifier: GPL-2.0-or-later
dist_doc_DATA += doc/belay.conf.example doc/protocol.md
EXTRA_DIST += doc/decisions/0001-cpg-from-the-loop.md doc/decisions/0002-delegations-of-ranges.md \
	doc/decisions/0003-hints-vouch.md
MODEL_TESTS += doc/models/matrix.sh
EXTRA_DIST += doc/models/README.md doc/models/matrix.sh doc/models/run.sh \
	doc/models/departed-waiter.pml doc/models/early-hints.pml doc/models/ownership.pml \
	doc/models/recall-handshake.pml doc/models/shared-readers.pml doc/models/stable-grants.pml
