# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# For tests and suites with unmodified lvm in the bed's nodes: one disk for all, which is a
# file behind a loop device; and no device-mapper, for a host need not have one.

# lvm_disk MIB: a disk in $disk. lvm_no_disk: it goes.
lvm_disk() {
	truncate -s "$1M" "$BED_DIR/disk" || return 1
	disk=$(losetup -f --show "$BED_DIR/disk")
}
lvm_no_disk() { [ -z "${disk:-}" ] || losetup -d "$disk"; }

# lvm_node NODE...: lvm of that node sees the disk, and asks belay.
lvm_node() {
	local node
	for node; do
		# The bed's nodes have an /etc of links.
		bed exec "$node" rm -f /etc/lvm
		bed exec "$node" mkdir -p /etc/lvm /run/lvm /run/lock/lvm
		bed exec "$node" tee /etc/lvm/lvm.conf >/dev/null <<-E
			global {
				use_lvmlockd = 1
				activation = 0
				event_activation = 0
			}
			devices {
				filter = [ "a|^$disk$|", "r|.*|" ]
				use_devicesfile = 0
				obtain_device_list_from_udev = 0
				external_device_info_source = "none"
			}
			activation {
				udev_sync = 0
				udev_rules = 0
				monitoring = 0
			}
			backup {
				backup = 0
				archive = 0
			}
		E
	done
}

# lvm NODE COMMAND ARGUMENT...: without what it says of each descriptor that it inherits, and of
# device-mapper at each call.
lvm() {
	bed exec "$1" env LVM_SUPPRESS_FD_WARNINGS=1 lvm "${@:2}" 2>&1 | grep -v 'Activation disabled'
	return "${PIPESTATUS[0]}"
}

# lvm_many NODE VG COUNT: LVs lv0, lv1, ... of one extent, by metadata, for lvcreate takes its time.
lvm_many() {
	lvm "$1" lvcreate -an -l1 -n lv0 "$2" >/dev/null && lvm "$1" vgcfgbackup -f "$BED_DIR/backup" "$2" >/dev/null ||
		return 1
	# The dollars are awk's.
	# shellcheck disable=SC2016
	awk -v count="$3" '
		/^\t\tlv0 \{/ { inside = 1 }
		inside { one = one $0 "\n" }
		!inside { print }
		inside && /^\t\t\}/ {
			inside = 0
			for (i = 0; i < count; i++) {
				this = one
				sub(/lv0 \{/, "lv" i " {", this)
				sub(/id = "[^"]*"/, sprintf("id = \"belayA-aaaa-aaaa-aaaa-aaaa-aaaa-%06d\"", i), this)
				sub(/"pv0", 0/, "\"pv0\", " i, this)
				printf "%s", this
			}
		}' "$BED_DIR/backup" >"$BED_DIR/restore"
	lvm "$1" vgcfgrestore -f "$BED_DIR/restore" "$2" >/dev/null
}

# lvm_ready NODE COMMAND ARGUMENT...: the same; again as long as belay-lvmlockd is just starting.
lvm_ready() {
	local i
	for ((i = 0; i < 100; i++)); do
		lvm "$@" >"$BED_DIR/lvm.out" && return 0
		sleep 0.1
	done
	cat "$BED_DIR/lvm.out"
	return 1
}
