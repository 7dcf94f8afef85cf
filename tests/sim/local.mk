# SPDX-License-Identifier: GPL-2.0-or-later
check_LIBRARIES += tests/sim/libsim.a
tests_sim_libsim_a_SOURCES = \
	tests/sim/belief.c \
	tests/sim/client.c \
	tests/sim/codec.c \
	tests/sim/cpg.c \
	tests/sim/fault.c \
	tests/sim/fiber.c \
	tests/sim/fiber.h \
	tests/sim/hint.c \
	tests/sim/ipc.c \
	tests/sim/judge.c \
	tests/sim/loan.c \
	tests/sim/memory.c \
	tests/sim/node.c \
	tests/sim/owner.c \
	tests/sim/random.h \
	tests/sim/script.c \
	tests/sim/sim.h \
	tests/sim/slot_commit.c \
	tests/sim/trace.c \
	tests/sim/volume.c \
	tests/sim/world.c

check_PROGRAMS += tests/sim/sim
tests_sim_sim_SOURCES = tests/sim/main.c
tests_sim_sim_LDADD = tests/sim/libsim.a core/libbelaycore.a wire/libbelaywire.a slot/libbelayslot.a

TESTS += tests/sim/scenarios.sh tests/sim/seeds.sh
MUTANT_TESTS += tests/sim/mutants.sh
EXTRA_DIST += tests/sim/README.md tests/sim/scenarios.sh tests/sim/seeds.sh tests/sim/mutants.sh \
	$(sim_scenarios) $(sim_mutants)
# Lists by hand: what is forgotten here is missing from the tarball, and distcheck says so.
sim_scenarios = $(sim_scenario_names:%=tests/sim/scenarios/%.scn) $(sim_scenario_names:%=tests/sim/scenarios/%.trace)
sim_mutants = $(sim_mutant_names:%=tests/sim/mutants/%.pl)
sim_scenario_names = \
	01-first-touch \
	02-grant-before-relinquish \
	03-idle-owner-and-request \
	04-two-first-touches \
	05-local-and-remote-waiters \
	06-unlock-behind-relinquish \
	07-stale-claim \
	08-claim-and-own-release \
	09-claim-and-dead-client \
	10-cancel \
	11-dead-client-in-flight \
	12-owner-dies-recalled \
	13-owner-dies-relinquishing \
	14-owner-dies-relinquished \
	15-join-in-relinquish \
	16-donor-dies \
	17-return-before-fence \
	18-minority-owner \
	19-try-again \
	20-deadlocks \
	21-sticky-recall \
	22-unlock-anything \
	23-asynchronous-unlock \
	24-test-and-owner \
	25-readers-do-not-starve \
	26-split-and-downgrade \
	30-private-first-touch \
	31-holes-on-both-sides \
	32-stopped-corosync \
	33-waiter-of-the-departed \
	34-fence-of-an-old-life \
	35-two-nodes \
	36-two-nodes-apart \
	37-clean-leave \
	38-belayd-restarts \
	39-cold-start \
	50-table-differs-in-a-lock \
	51-table-differs-in-a-waiter \
	60-a-loan \
	61-recall-at-every-step \
	62-death-in-a-call \
	63-a-slot-is-used-again \
	64-messages-under-way \
	65-loans-and-quorum \
	66-readers-and-a-writer \
	67-each-keeps-its-part \
	68-lent-around-a-lock \
	69-border-beside-a-waiter \
	70-hint-and-the-waiter-before \
	71-hint-and-the-own-request \
	72-hint-and-a-waiter-that-failed \
	73-hint-and-two-threads \
	74-garbage-in-a-loan \
	75-vouched-behind-other-ops \
	76-passed-by-a-holder \
	77-a-hole-that-is-not-cut \
	78-an-early-holder-dies \
	80-a-volume-and-a-new-belayd \
	81-volumes-on-both-sides \
	82-leave-with-a-volume \
	83-fence-and-the-next-in-the-queue \
	84-a-grant-that-only-one-has-seen \
	85-less-and-the-order-is-lost \
	86-a-try-that-nobody-answers \
	87-volumes-are-never-claimed \
	88-a-hint-of-a-volume
sim_mutant_names = \
	acks-of-the-view \
	authority-until-delivery \
	believe-at-delivery \
	border-through-a-lock \
	busy-unconfirmed \
	cancel-kept \
	claim-of-others-locks \
	claim-with-waiters \
	dead-clients-stay \
	deadlocks-everywhere \
	digest-without-locks \
	digest-without-waiters \
	donor-on-any-hello \
	drop-by-ring \
	fence-any-life \
	granted-past-a-loan \
	half-an-entry \
	hint-before-stable \
	hint-looks-at-the-holder-only \
	hint-of-a-release-delivered \
	hint-of-another-waiter \
	hint-passes-the-own-request \
	hint-without-its-token \
	hole-at-the-limit \
	idle-with-request-in-flight \
	join-ends-the-old-life \
	left-is-fenced \
	lent-twice \
	lent-with-others-locks \
	loan-goes-on-frozen \
	loan-is-no-lock \
	loan-kept-over-relinquish \
	loan-outlives-what-is-lost \
	loan-tokens-not-counted \
	loan-with-messages-under-way \
	minority-goes-on \
	no-deadlocks \
	no-recall \
	nobody-is-told \
	old-lives-speak \
	overtaking \
	own-message-passes-a-loan \
	own-request-always-local \
	own-tries-only \
	owners-of-a-process-agree \
	queue-order-is-no-edge \
	readers-beside-a-writer \
	recall-not-sticky \
	recall-without-flag \
	release-when-owned \
	releases-forgotten-at-claim \
	relinquish-before-loans-are-back \
	relinquish-without-pending \
	reset-ignored \
	slot-reused-early \
	snapshot-before-recall \
	snapshot-without-staged \
	snapshot-without-waiters \
	stale-epoch \
	test-of-a-stale-replica \
	token-after-the-swap \
	token-not-carried \
	token-stands-still \
	tokens-of-early-holders-forgotten \
	tokens-of-the-dead \
	try-from-before-the-snapshot \
	two-nodes-by-majority \
	unlock-passes-a-fast-lock \
	upgrade-overlooks-others \
	volume-awaited-for-ever \
	volume-by-an-unseen-release \
	volume-claimed \
	volume-delegated \
	volume-kept-at-fenced \
	volume-of-more-than-asked-for \
	volume-of-the-closed-not-fenced \
	volume-released-at-hello \
	volume-taken-early \
	vouched-by-another-history \
	waiters-dropped-at-left
