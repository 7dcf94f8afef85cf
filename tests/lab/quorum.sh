#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A node that loses quorum while it writes: what on_quorum_loss says is done, and from
# then on nothing of it reaches the disk.
set -u
: "${top_srcdir:=$(cd "$(dirname "$0")/../.." && pwd)}"
# shellcheck source=tests/lab/common.sh
. "$top_srcdir/tests/lab/common.sh"

nodes_up 3
on_quorum_loss=freeze
check "a VG on three nodes" volumes || bail_out "no volumes"
check "with an LV" new_lv 1 lv 64
first_mb=$(($(on 1 pvs --noheadings --nosuffix --units m -o pe_start /dev/sda | cut -d. -f1)))

# The LV's place on the disk, as this host sees it; it is in one piece.
content() { dd if="$(lab disk)" bs=1M skip="$first_mb" count=64 status=none | sha256sum | cut -d ' ' -f 1; }
writes() { lab writes 3 | cut -d ' ' -f 1; }

begin_writing() {
	on 3 'rm -f /tmp/fio.*; { fio --name=w --filename=/dev/vg/lv --rw=write --bs=4k --size=32M --direct=1 \
		--ioengine=psync --time_based --runtime=3600 --thinktime=2ms --verify=crc32c --do_verify=0 \
		>/tmp/fio.out 2>&1; echo $? >/tmp/fio.exit; } </dev/null >/dev/null 2>&1 &' && writing
}
more_than() { [ "$(writes)" -gt "$1" ]; }
writing() { eventually more_than "$(($(writes) + 50))"; }
# shellcheck disable=SC2016
program_failed() { on 3 'until [ -e /tmp/fio.exit ]; do sleep 0.1; done; [ "$(cat /tmp/fio.exit)" != 0 ]'; }
end_writing() { on 3 'pkill -x fio; until [ -e /tmp/fio.exit ]; do sleep 0.1; done'; }

# It has some seconds to try: there is no event for what does not happen.
nothing_written() {
	local before after
	before="$(lab writes 3) $(content)"
	sleep 5
	after="$(lab writes 3) $(content)"
	[ "$before" = "$after" ] || { printf '%s\n' "$before" "$after"; return 1; }
}
# suspended NODE, live NODE TARGET
suspended() { until_on "$1" "the LV suspended" "dmsetup info -c --noheadings -o suspended vg-lv | grep -qx Suspended"; }
live() {
	until_on "$1" "the LV live, as $2" \
		"[ \"\$(dmsetup table vg-lv | cut -d ' ' -f 3)\" = $2 ] &&
		dmsetup info -c --noheadings -o suspended vg-lv | grep -qx Active"
}

check "node 3 activates the LV" on 3 lvchange -aey vg/lv
check "and writes" begin_writing
refuse "which can be told from not writing" nothing_written

# freeze
check "the link of node 3 is cut" lab link 3 off
check "its LV is suspended" suspended 3
check "nothing of it reaches the disk" nothing_written
check "the program that writes waits" on 3 'pgrep -x fio && [ ! -e /tmp/fio.exit ]'
check "the frozen node answers" lab run -t 20 3 'belay status'
check "of its LVs, too" lab run -t 20 3 'lvmlockctl -i'
check "the others have quorum" wait_synced 1 2
check "but not the LV" locked_elsewhere 1 lvchange -aey vg/lv
check "the link heals" lab link 3 on
check "all are together again" wait_synced 1 2 3
check "the LV is resumed" live 3 linear
check "and the program goes on" writing
check "it has noticed nothing" on 3 '[ ! -e /tmp/fio.exit ]'
check "and ends when it is told to" end_writing
check "the LV is node 3's, as before" locked_elsewhere 1 lvchange -aey vg/lv

# freeze, and meanwhile another node gets the LV
check "node 3 writes" begin_writing
check "the link of node 3 is cut" lab link 3 off
check "its LV is suspended" suspended 3
check "the others notice" wait_quorate 2 1 2
check "an operator says that node 3 is off, which is not true" belay 1 fence-ack --yes 3
check "node 1 gets the LV" on 1 lvchange -aey vg/lv
before=$(lab writes 3)
check "the link heals" lab link 3 on
check "the LV of node 3 fails, for it is node 1's" live 3 error
check "and so does the program" program_failed
is "$(lab writes 3)" "$before" "nothing of what waited has reached the disk"
check "all are together again" wait_synced 1 2 3
check "node 3 can be rid of it" on 3 'lvchange -an vg/lv || dmsetup remove vg-lv'
check "node 1 lets go" on 1 lvchange -an vg/lv

# error
on_quorum_loss=error
check "node 3 is told to let writes fail" configure 3
check "belay-lvmlockd of node 3 stops" stop belay-lvmlockd 3
check "and starts" serve_volumes 3
check "node 3 activates the LV" eventually on 3 lvchange -aey vg/lv
check "and writes" begin_writing
check "the link of node 3 is cut" lab link 3 off
check "its LV fails" live 3 error
check "nothing of it reaches the disk" nothing_written
check "the program that wrote has ended, with an error" program_failed
check "the node answers" lab run -t 20 3 'belay status'
check "the link heals" lab link 3 on
check "all are together again" wait_synced 1 2 3
check "the LV is what it was" live 3 linear
check "and can be written to" begin_writing
check "until that is enough" end_writing

# A node without quorum can be stopped, and fenced.
check "node 3 writes" begin_writing
check "the link of node 3 is cut" lab link 3 off
check "its LV fails" live 3 error
check "belay-lvmlockd of node 3 stops" stop belay-lvmlockd 3
check "and belayd" stop belayd 3
is "$(device 3 lv)" "64 error" "which leaves the LV as it is"
check "the others go on" wait_synced 1 2
check "but not with the LV" locked_elsewhere 2 lvchange -aey vg/lv
check "node 3 is fenced" lab kill 3
check "and that is said" belay 1 fence-ack --yes 3
check "node 2 gets the LV" on 2 lvchange -aey vg/lv
done_testing
