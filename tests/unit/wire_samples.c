/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/wire_samples.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

#define INODE { .lockspace = 0x5eed1234, .id = "0123456789abcde" }
#define NAMED { .lockspace = 1, .id = { 0xff, 0xff, 0xff } }
#define HIGHEST { .lockspace = UINT32_MAX, .id = { \
	0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, \
	0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff } }
#define PROCESS { .node = 1, .client = 7, .pid = 4711 }
#define FILE_OWNER { .node = 1, .client = 300, .key = 0x123456789, .pid = 1, .kind = BELAY_KIND_OFD }
#define ALONE { .node = 1, .incarnation = 2, .seq = 3 }

const struct frame_sample frame_samples[] = {
	{
		.name = "nothing but a head",
		.frame = ALONE,
		.hex = "424c594702001400 010200000000000000000300",
	}, {
		.name = "asks, and acknowledges three",
		.frame = {
			.node = 2, .incarnation = 0x1122334455667788, .seq = 1, .ask = true,
			.ack_count = 3, .ack = {
				{ .node = 1, .incarnation = 5, .seq = 127 },
				{ .node = 2, .incarnation = 0x1122334455667788, .seq = 0 },
				{ .node = 300, .incarnation = 0, .seq = 128 },
			},
		},
		.hex = "424c594702003400 "
		       "0288776655443322110101030105000000000000007f02887766554433221100ac0200000000"
		       "000000008001",
	}, {
		.name = "the highest values of a head",
		.frame = {
			.node = UINT32_MAX, .incarnation = UINT64_MAX, .seq = UINT64_MAX, .ask = true,
			.ack_count = 1, .ack = {
				{ .node = UINT32_MAX, .incarnation = UINT64_MAX, .seq = UINT64_MAX },
			},
		},
		.hex = "424c594702003800 "
		       "ffffffff0fffffffffffffffff01ffffffffffffffffff0101ffffffff0fffffffffffffffff"
		       "ffffffffffffffffff01",
	}, {
		.name = "REQ: a process locks a byte",
		.frame = ALONE, .op_count = 1, .op = { {
			.type = BELAY_OP_REQ, .request = 9, .key = INODE, .owner = PROCESS,
			.range = { 100, 100 }, .mode = BELAY_MODE_EX, .wait = true,
		} },
		.hex = "424c594702003100 010200000000000000000300 "
		       "0003093412ed5e303132333435363738396162636465000700e7246401",
	}, {
		.name = "REQ: an open file tests all of it",
		.frame = ALONE, .op_count = 1, .op = { {
			.type = BELAY_OP_REQ, .request = 1, .key = INODE, .owner = FILE_OWNER,
			.range = { 0, BELAY_OFFSET_MAX }, .test = true,
		} },
		.hex = "424c594702003500 010200000000000000000300 "
		       "0044013412ed5e30313233343536373839616263646500ac0289cf959a12010000",
	}, {
		.name = "REQ: the highest values",
		.frame = { .node = UINT32_MAX, .incarnation = 1, .seq = 1 }, .op_count = 1, .op = { {
			.type = BELAY_OP_REQ, .request = UINT32_MAX, .key = HIGHEST,
			.owner = { .node = UINT32_MAX, .client = UINT32_MAX, .key = UINT64_MAX,
				   .pid = UINT32_MAX, .kind = BELAY_KIND_FLOCK },
			.range = { BELAY_OFFSET_MAX, BELAY_OFFSET_MAX },
			.mode = BELAY_MODE_EX, .wait = true,
		} },
		.hex = "424c594702005100 ffffffff0f0100000000000000000100 "
		       "0083ffffffff0fffffffffffffffffffffffffffffffffffffffffffffffff0fffffffffffff"
		       "ffffff01ffffffff0fffffffffffffffff7f00",
	}, {
		.name = "REL: all but the last byte of a file",
		.frame = ALONE, .op_count = 1, .op = { {
			.type = BELAY_OP_REL, .key = NAMED, .owner = FILE_OWNER,
			.range = { 0, BELAY_OFFSET_MAX - 1 }, .request = 300, .token = 0x123456,
		} },
		.hex = "424c594702004100 010200000000000000000300 "
		       "0140ac0201000000ffffff00000000000000000000000000ac0289cf959a120100ffffffffff"
		       "ffffff7fd6e848",
	}, {
		.name = "REL and REQ of one key, then of another, and of the first again",
		.frame = ALONE, .op_count = 4, .op = {
			{ .type = BELAY_OP_REL, .key = INODE, .owner = PROCESS, .range = { 0, 0 } },
			{ .type = BELAY_OP_REQ, .request = 10, .key = INODE, .owner = PROCESS,
			  .range = { 1, 1 }, .mode = BELAY_MODE_EX, .wait = true },
			{ .type = BELAY_OP_IDLE, .key = NAMED, .epoch = 4 },
			{ .type = BELAY_OP_IDLE, .key = INODE, .epoch = 5 },
		},
		.hex = "424c594702006900 010200000000000000000300 "
		       "0100003412ed5e303132333435363738396162636465000700e724000100 00230a0700e7240101 "
		       "080001000000ffffff0000000000000000000000000004 "
		       "08003412ed5e3031323334353637383961626364650005",
	}, {
		.name = "the last key outlives ops that have none",
		.frame = ALONE, .op_count = 3, .op = {
			{ .type = BELAY_OP_CLAIM, .key = INODE, .mode = BELAY_MODE_EX },
			{ .type = BELAY_OP_CANCEL, .request = 2 },
			{ .type = BELAY_OP_CLAIM, .key = INODE, .range = { 0, BELAY_OFFSET_MAX } },
		},
		.hex = "424c594702003300 010200000000000000000300 "
		       "07013412ed5e303132333435363738396162636465000001 020002 07200000",
	}, {
		.name = "a key of zeros, and one that differs in its lockspace only",
		.frame = ALONE, .op_count = 3, .op = {
			{ .type = BELAY_OP_CLAIM },
			{ .type = BELAY_OP_CLAIM, .key = { .lockspace = 1 } },
			{ .type = BELAY_OP_CLAIM, .key = { .lockspace = 1 } },
		},
		.hex = "424c594702004800 010200000000000000000300 "
		       "070000000000000000000000000000000000000000000001 "
		       "070001000000000000000000000000000000000000000001 07200001",
	}, {
		.name = "CANCEL",
		.frame = ALONE, .op_count = 2, .op = {
			{ .type = BELAY_OP_CANCEL, .request = 0 },
			{ .type = BELAY_OP_CANCEL, .request = UINT32_MAX },
		},
		.hex = "424c594702001e00 010200000000000000000300 020000 0200ffffffff0f",
	}, {
		.name = "BUSY: nobody in the way",
		.frame = ALONE, .op_count = 1, .op = { {
			.type = BELAY_OP_BUSY, .node = 2, .request = 300,
		} },
		.hex = "424c594702001900 010200000000000000000300 030002ac02",
	}, {
		.name = "BUSY: held by another node",
		.frame = ALONE, .op_count = 1, .op = { {
			.type = BELAY_OP_BUSY, .node = 2, .request = 300, .held = true,
			.owner = { .node = 3, .client = 4, .key = 5, .pid = 6, .kind = BELAY_KIND_FLOCK },
			.range = { 4096, 8191 }, .mode = BELAY_MODE_EX,
		} },
		.hex = "424c594702002100 010200000000000000000300 038902ac020304050680208020",
	}, {
		.name = "a resource given up: HELD, WAITING, RELINQ",
		.frame = ALONE, .op_count = 3, .op = {
			{ .type = BELAY_OP_HELD, .key = INODE, .owner = PROCESS,
			  .range = { 10, 19 }, .mode = BELAY_MODE_EX },
			{ .type = BELAY_OP_WAITING, .key = INODE, .owner = FILE_OWNER, .request = 77,
			  .range = { 10, 10 }, .wait = true },
			{ .type = BELAY_OP_RELINQ, .key = INODE, .range = { 10, 19 }, .epoch = 128,
			  .token = 0x123456 },
		},
		.hex = "424c594702004600 010200000000000000000300 "
		       "04013412ed5e303132333435363738396162636465000700e7240a0a "
		       "05624dac0289cf959a12010a01 06200a0a8001d6e848",
	}, {
		.name = "RELINQ: kept for readers",
		.frame = ALONE, .op_count = 1, .op = { {
			.type = BELAY_OP_RELINQ, .key = INODE, .range = { 0, BELAY_OFFSET_MAX },
			.epoch = 1, .token = 2, .keep = true,
		} },
		.hex = "424c594702002e00 010200000000000000000300 "
		       "06103412ed5e3031323334353637383961626364650000000102",
	}, {
		.name = "WAITING: a try and a test",
		.frame = ALONE, .op_count = 2, .op = {
			{ .type = BELAY_OP_WAITING, .key = INODE, .owner = PROCESS, .request = 1,
			  .range = { 10, 10 }, .mode = BELAY_MODE_EX },
			{ .type = BELAY_OP_WAITING, .key = INODE, .owner = PROCESS, .request = 2,
			  .range = { 10, 10 }, .test = true },
		},
		.hex = "424c594702003a00 010200000000000000000300 "
		       "0501013412ed5e303132333435363738396162636465000700e7240a01 0524020700e7240a01",
	}, {
		.name = "RELINQ, CLAIM, IDLE: the highest values",
		.frame = ALONE, .op_count = 3, .op = {
			{ .type = BELAY_OP_RELINQ, .key = HIGHEST,
			  .range = { BELAY_OFFSET_MAX, BELAY_OFFSET_MAX }, .epoch = UINT64_MAX,
			  .token = UINT64_MAX, .keep = true },
			{ .type = BELAY_OP_CLAIM, .key = HIGHEST, .mode = BELAY_MODE_EX,
			  .range = { BELAY_OFFSET_MAX, BELAY_OFFSET_MAX } },
			{ .type = BELAY_OP_IDLE, .key = HIGHEST, .epoch = UINT64_MAX },
		},
		.hex = "424c594702006000 010200000000000000000300 "
		       "0610ffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f00ffffffffffff"
		       "ffffff01ffffffffffffffffff01 0721ffffffffffffffff7f00 "
		       "0820ffffffffffffffffff01",
	}, {
		.name = "CLIENT_GONE",
		.frame = ALONE, .op_count = 2, .op = {
			{ .type = BELAY_OP_CLIENT_GONE, .owner = { .node = 1 } },
			{ .type = BELAY_OP_CLIENT_GONE, .owner = { .node = 1, .client = UINT32_MAX } },
		},
		.hex = "424c594702001e00 010200000000000000000300 090000 0900ffffffff0f",
	}, {
		.name = "HELLO: synced and not",
		.frame = ALONE, .op_count = 2, .op = {
			{ .type = BELAY_OP_HELLO, .synced = true, .token = 1000,
			  .limits = { 1000000, 2000000, 100000, 10000, 65536, 32, 0x0102030405060708 } },
			{ .type = BELAY_OP_HELLO, .token = UINT64_MAX,
			  .limits = { UINT32_MAX, 1, 1, 1, 1, 1, 0 } },
		},
		.hex = "424c594702004d00 010200000000000000000300 "
		       "0a10c0843d80897aa08d06904e808004200807060504030201e807 "
		       "0a00ffffffff0f01010101010000000000000000ffffffffffffffffff01",
	}, {
		.name = "a cluster starts: SYNCED, START",
		.frame = ALONE, .op_count = 3, .op = {
			{ .type = BELAY_OP_SYNCED },
			{ .type = BELAY_OP_START, .members = 1 },
			{ .type = BELAY_OP_START, .token = UINT64_MAX, .members = BELAY_NODES_MAX },
		},
		.hex = "424c594702002800 010200000000000000000300 0b00 0c000001 "
		       "0c00ffffffffffffffffff018001",
	}, {
		.name = "FENCED: a life, and a node never met",
		.frame = ALONE, .op_count = 2, .op = {
			{ .type = BELAY_OP_FENCED, .node = UINT32_MAX, .incarnation = 0x0102030405060708 },
			{ .type = BELAY_OP_FENCED, .node = 1 },
		},
		.hex = "424c594702002e00 010200000000000000000300 0d00ffffffff0f0807060504030201 "
		       "0d00010000000000000000",
	}, {
		.name = "AGAIN",
		.frame = ALONE, .op_count = 1, .op = {
			{ .type = BELAY_OP_AGAIN, .node = 2, .incarnation = 0x0102030405060708 },
		},
		.hex = "424c594702001f00 010200000000000000000300 1000020807060504030201",
	}, {
		.name = "DIGEST, LEAVE",
		.frame = ALONE, .op_count = 3, .op = {
			{ .type = BELAY_OP_DIGEST, .place = 16384, .hash = 0xfedcba9876543210 },
			{ .type = BELAY_OP_DIGEST, .place = UINT64_MAX },
			{ .type = BELAY_OP_LEAVE },
		},
		.hex = "424c594702003700 010200000000000000000300 0f008080011032547698badcfe "
		       "0f00ffffffffffffffffff010000000000000000 0e00",
	},
};
const unsigned frame_sample_count = COUNT_OF(frame_samples);

#define CHUNK { .node = 1, .incarnation = 2, .to = 3, .to_incarnation = 4, .place = 5 }

const struct snapshot_sample snapshot_samples[] = {
	{
		.name = "nothing but a head",
		.head = CHUNK,
		.hex = "424c594702011d00 010200000000000000030400000000000000050000",
	}, {
		.name = "the highest values of a head",
		.head = {
			.node = UINT32_MAX, .incarnation = UINT64_MAX, .to = UINT32_MAX,
			.to_incarnation = UINT64_MAX, .place = UINT64_MAX, .part = UINT32_MAX,
			.last = true,
		},
		.hex = "424c594702013200 "
		       "ffffffff0fffffffffffffffffffffffff0fffffffffffffffffffffffffffffffffff01ffff"
		       "ffff0f01",
	}, {
		.name = "CORE, NODEs",
		.head = CHUNK, .record_count = 6, .record = {
			{ .type = BELAY_RECORD_CORE, .place = 5, .token = 1000 },
			{ .type = BELAY_RECORD_NODE, .node = 1, .standing = BELAY_NODE_MEMBER,
			  .synced = true, .incarnation = 2, .seq = 16384 },
			{ .type = BELAY_RECORD_NODE, .node = 2, .standing = BELAY_NODE_LEFT,
			  .incarnation = 3, .seq = 1 },
			{ .type = BELAY_RECORD_NODE, .node = 3, .standing = BELAY_NODE_UNSEEN },
			{ .type = BELAY_RECORD_NODE, .node = 4, .standing = BELAY_NODE_CLOSED,
			  .incarnation = 3, .seq = 1 },
			{ .type = BELAY_RECORD_OWNER, .number = 0, .owner = PROCESS },
		},
		.hex = "424c594702015c00 010200000000000000030400000000000000050000 000005e807 "
		       "0130010200000000000000808001 014002030000000000000001 010003000000000000000000 "
		       "016004030000000000000001 020000010700e724",
	}, {
		.name = "RESOURCEs",
		.head = CHUNK, .record_count = 3, .record = {
			{ .type = BELAY_RECORD_RESOURCE, .number = 0, .key = INODE, .epoch = 1 },
			{ .type = BELAY_RECORD_RESOURCE, .number = 128, .key = NAMED, .epoch = 300 },
			{ .type = BELAY_RECORD_RESOURCE, .number = 2 },
		},
		.hex = "424c594702016700 010200000000000000030400000000000000050000 "
		       "0300003412ed5e3031323334353637383961626364650001 "
		       "0300800101000000ffffff00000000000000000000000000ac02 "
		       "030002000000000000000000000000000000000000000000",
	}, {
		.name = "DELEGATIONs",
		.head = CHUNK, .record_count = 3, .record = {
			{ .type = BELAY_RECORD_DELEGATION, .resource_number = 1000, .node = 2,
			  .epoch = 300, .range = { 0, BELAY_OFFSET_MAX }, .mode = BELAY_MODE_EX,
			  .recalled = true },
			{ .type = BELAY_RECORD_DELEGATION, .resource_number = 1001, .node = 1,
			  .epoch = 1, .range = { 4096, 8191 } },
			{ .type = BELAY_RECORD_DELEGATION, .resource_number = UINT32_MAX,
			  .node = UINT32_MAX, .epoch = UINT64_MAX,
			  .range = { BELAY_OFFSET_MAX, BELAY_OFFSET_MAX }, .mode = BELAY_MODE_EX,
			  .recalled = true },
		},
		.hex = "424c594702015000 010200000000000000030400000000000000050000 "
		       "0409e80702ac020000 0400e907010180208020 "
		       "0409ffffffff0fffffffff0fffffffffffffffffff01ffffffffffffffff7f00",
	}, {
		.name = "LOCKs, WAITERs, END",
		.head = CHUNK, .record_count = 5, .record = {
			{ .type = BELAY_RECORD_LOCK, .resource_number = 1000, .owner_number = 50,
			  .range = { 4096, 8191 }, .mode = BELAY_MODE_EX },
			{ .type = BELAY_RECORD_LOCK, .resource_number = 1000, .owner_number = 51,
			  .range = { 0, BELAY_OFFSET_MAX }, .staged = true },
			{ .type = BELAY_RECORD_WAITER, .resource_number = 1001, .owner_number = 51,
			  .range = { 1, 1 }, .mode = BELAY_MODE_EX, .request = 9, .wait = true,
			  .queue = 301 },
			{ .type = BELAY_RECORD_WAITER, .resource_number = 1001, .owner_number = 52,
			  .range = { 1, 1 }, .request = 10, .test = true, .queue = 302 },
			{ .type = BELAY_RECORD_END, .hash = 0xfedcba9876543210, .count = 1000000 },
		},
		.hex = "424c594702014e00 010200000000000000030400000000000000050000 0501e8073280208020 "
		       "0508e807330000 0603e90733010109ad02 0604e9073401010aae02 "
		       "07001032547698badcfec0843d",
	}, {
		.name = "the highest values of the first records",
		.head = CHUNK, .record_count = 4, .record = {
			{ .type = BELAY_RECORD_CORE, .place = UINT64_MAX, .token = UINT64_MAX },
			{ .type = BELAY_RECORD_NODE, .node = UINT32_MAX, .standing = BELAY_NODE_CLOSED,
			  .synced = true, .incarnation = UINT64_MAX, .seq = UINT64_MAX },
			{ .type = BELAY_RECORD_OWNER, .number = UINT32_MAX,
			  .owner = { .node = UINT32_MAX, .client = UINT32_MAX, .key = UINT64_MAX,
				     .pid = UINT32_MAX, .kind = BELAY_KIND_FLOCK } },
			{ .type = BELAY_RECORD_RESOURCE, .number = UINT32_MAX, .key = HIGHEST,
			  .epoch = UINT64_MAX },
		},
		.hex = "424c594702019100 010200000000000000030400000000000000050000 "
		       "0000ffffffffffffffffff01ffffffffffffffffff01 "
		       "0170ffffffff0fffffffffffffffffffffffffffffffffff01 "
		       "0240ffffffff0fffffffff0fffffffff0fffffffffffffffffff01ffffffff0f "
		       "0300ffffffff0fffffffffffffffffffffffffffffffffffffffffffffffffffffffffff01",
	}, {
		.name = "the highest values of the last records",
		.head = CHUNK, .record_count = 3, .record = {
			{ .type = BELAY_RECORD_LOCK, .resource_number = UINT32_MAX,
			  .owner_number = UINT32_MAX, .range = { BELAY_OFFSET_MAX, BELAY_OFFSET_MAX },
			  .mode = BELAY_MODE_EX, .staged = true },
			{ .type = BELAY_RECORD_WAITER, .resource_number = UINT32_MAX,
			  .owner_number = UINT32_MAX,
			  .range = { BELAY_OFFSET_MAX - 1, BELAY_OFFSET_MAX - 1 },
			  .mode = BELAY_MODE_EX, .request = UINT32_MAX, .wait = true,
			  .queue = UINT64_MAX },
			{ .type = BELAY_RECORD_END, .hash = UINT64_MAX, .count = UINT64_MAX },
		},
		.hex = "424c594702016c00 010200000000000000030400000000000000050000 "
		       "0509ffffffff0fffffffff0fffffffffffffffff7f00 "
		       "0603ffffffff0fffffffff0ffeffffffffffffff7f01ffffffff0fffffffffffffffffff01 "
		       "0700ffffffffffffffffffffffffffffffffff01",
	},
};
const unsigned snapshot_sample_count = COUNT_OF(snapshot_samples);

#define HINTS { .node = 1, .incarnation = 2, .to = 3, .to_incarnation = 4 }

const struct hint_sample hint_samples[] = {
	{
		.name = "nothing but a head",
		.head = HINTS,
		.hex = "424c594702021a00 01020000000000000003 0400000000000000",
	}, {
		.name = "a process gives back a byte, an open file all of it",
		.head = HINTS, .hint_count = 2, .hint = {
			{ .node = 1, .incarnation = 2, .to_incarnation = 4, .waiter = 300, .prefix = 0x1234, .seq = 301,
			  .key = INODE, .range = { 100, 100 }, .owner = { .node = 1, .client = 7 },
			  .token = 0x123456 },
			{ .node = 1, .incarnation = 2, .to_incarnation = 4, .seq = 302,
			  .key = NAMED, .range = { 0, BELAY_OFFSET_MAX }, .request = 77,
			  .owner = { .node = 1, .client = 300, .key = 0x123456789,
				     .kind = BELAY_KIND_FLOCK } },
		},
		.hex = "424c594702026e0001020000000000000003040000000000000000ac023412000000000000ad"
		       "023412ed5e303132333435363738396162636465000700640100d6e848020000000000000000"
		       "00ae0201000000ffffff00000000000000000000000000ac0289cf959a1200004d00",
	}, {
		.name = "the highest values",
		.head = {
			.node = UINT32_MAX, .incarnation = UINT64_MAX, .to = UINT32_MAX,
			.to_incarnation = UINT64_MAX,
		},
		.hint_count = 1, .hint = { {
			.node = UINT32_MAX, .incarnation = UINT64_MAX, .to_incarnation = UINT64_MAX,
			.waiter = UINT32_MAX, .prefix = UINT64_MAX, .seq = UINT64_MAX, .key = HIGHEST,
			.range = { BELAY_OFFSET_MAX, BELAY_OFFSET_MAX },
			.owner = { .node = UINT32_MAX, .client = UINT32_MAX, .key = UINT64_MAX,
				   .kind = BELAY_KIND_FLOCK },
			.request = UINT32_MAX, .token = UINT64_MAX,
		} },
		.hex = "424c594702027600ffffffff0fffffffffffffffffffffffff0fffffffffffffffff02ffffff"
		       "ff0fffffffffffffffffffffffffffffffffff01ffffffffffffffffffffffffffffffffffff"
		       "ffffffffffff0fffffffffffffffffff01ffffffffffffffff7f00ffffffff0fffffffffffff"
		       "ffffff01",
	},
};
const unsigned hint_sample_count = COUNT_OF(hint_samples);

#define TEXT(string) .text = (string), .text_size = sizeof(string) - 1
#define TEXT2(string) .text2 = (string), .text2_size = sizeof(string) - 1

const struct client_sample client_samples[] = {
	{
		.name = "HELLO",
		.message_count = 1, .message = { {
			.type = CLIENT_HELLO, .magic = CLIENT_MAGIC, .version = CLIENT_VERSION,
		} },
		.hex = "0c000000 424c415902000000",
	}, {
		.name = "WELCOME",
		.message_count = 1, .message = { {
			.type = CLIENT_WELCOME, .version = CLIENT_VERSION, .node = 0x01020304,
		} },
		.hex = "0c000900 0200000004030201",
	}, {
		.name = "OPEN_FD",
		.message_count = 1, .message = { {
			.type = CLIENT_OPEN_FD, .number = 1, .kind = BELAY_KIND_OFD,
		} },
		.hex = "09000100 0100000001",
	}, {
		.name = "OPEN_NAME: of a lockspace, and of the default",
		.message_count = 2, .message = {
			{ .type = CLIENT_OPEN_NAME, .number = 2, TEXT("batch"), TEXT2("nightly run") },
			{ .type = CLIENT_OPEN_NAME, .number = 3, .kind = BELAY_KIND_FLOCK,
			  TEXT(""), TEXT2("x") },
		},
		.hex = "1d000200 0200000000050062617463680b006e696768746c792072756e 0e000200 "
		       "03000000020000010078",
	}, {
		.name = "LOCKs and an UNLOCK in one packet",
		.message_count = 3, .message = {
			{ .type = CLIENT_UNLOCK, .handle = 5, .kind = BELAY_KIND_POSIX,
			  .range = { 10, 19 } },
			{ .type = CLIENT_LOCK, .number = 4, .handle = 5, .kind = BELAY_KIND_POSIX,
			  .mode = BELAY_MODE_EX, .wait = true, .range = { 20, 29 } },
			{ .type = CLIENT_LOCK, .number = 5, .handle = 6, .kind = BELAY_KIND_FLOCK,
			  .mode = BELAY_MODE_SH, .lend = true, .cell = 7, .range = { 0, BELAY_OFFSET_MAX } },
		},
		.hex = "1d000600 0000000005000000000a000000000000001300000000000000 "
		       "24000400 04000000050000000001010000000000"
		       "14000000000000001d00000000000000 "
		       "24000400 05000000060000000200000107000000"
		       "0000000000000000ffffffffffffff7f",
	}, {
		.name = "TEST",
		.message_count = 1, .message = { {
			.type = CLIENT_TEST, .number = 6, .handle = 6, .kind = BELAY_KIND_OFD,
			.mode = BELAY_MODE_EX, .cell = 64, .range = { 1, 2 },
		} },
		.hex = "22000500 060000000600000001014000000001000000000000000200000000000000",
	}, {
		.name = "the highest values of a LOCK",
		.message_count = 1, .message = { {
			.type = CLIENT_LOCK, .number = UINT32_MAX, .handle = UINT32_MAX,
			.kind = BELAY_KIND_FLOCK, .mode = BELAY_MODE_EX, .wait = true, .lend = true,
			.cell = UINT32_MAX, .range = { BELAY_OFFSET_MAX, BELAY_OFFSET_MAX },
		} },
		.hex = "24000400 ffffffffffffffff02010101ffffffffffffffffffffff7fffffffffffffff7f",
	}, {
		.name = "CANCEL, CLOSE",
		.message_count = 2, .message = {
			{ .type = CLIENT_CANCEL, .number = 4 },
			{ .type = CLIENT_CLOSE, .number = 7, .handle = 5 },
		},
		.hex = "08000700 04000000 0c000300 0700000005000000",
	}, {
		.name = "COMMAND",
		.message_count = 1, .message = { { .type = CLIENT_COMMAND, .number = 8, TEXT("status") } },
		.hex = "10000800 080000000600737461747573",
	}, {
		.name = "RESULT: granted, and refused",
		.message_count = 2, .message = {
			{ .type = CLIENT_RESULT, .number = 4, .handle = 5, .token = 0x1122334455667788 },
			{ .type = CLIENT_RESULT, .number = 5, .result = -EAGAIN },
		},
		.hex = "20000a00 04000000050000000000000000000000887766554433221100000000 "
		       "20000a00 050000000000000000000000f5ffffff000000000000000000000000",
	}, {
		.name = "RESULT: opened, and granted with a loan",
		.message_count = 2, .message = {
			{ .type = CLIENT_RESULT, .number = 1, .handle = 5, .resource = 9 },
			{ .type = CLIENT_RESULT, .number = 4, .handle = 5, .token = 0x1122334455667788,
			  .slot = 3, .epoch = 0xabcdef, .mode = BELAY_MODE_EX,
			  .range = { 4096, BELAY_OFFSET_MAX }, .room = 64, .messages = 17 },
		},
		.hex = "20000a00 01000000050000000900000000000000000000000000000000000000 "
		       "3d000a00 04000000050000000000000000000000887766554433221103000000"
		       "efcdab00010010000000000000ffffffffffffff7f4000000011000000",
	}, {
		.name = "the highest values of a loan",
		.message_count = 1, .message = { {
			.type = CLIENT_RESULT, .number = UINT32_MAX, .handle = UINT32_MAX,
			.resource = UINT32_MAX, .token = UINT64_MAX, .slot = UINT32_MAX,
			.epoch = UINT32_MAX, .mode = BELAY_MODE_EX,
			.range = { BELAY_OFFSET_MAX, BELAY_OFFSET_MAX }, .room = UINT32_MAX,
			.messages = UINT32_MAX,
		} },
		.hex = "3d000a00 ffffffffffffffffffffffff00000000ffffffffffffffffffffffff"
		       "ffffffff01ffffffffffffff7fffffffffffffff7fffffffffffffffff",
	}, {
		.name = "SHARE, RETURN",
		.message_count = 2, .message = {
			{ .type = CLIENT_SHARE, .number = 9 },
			{ .type = CLIENT_RETURN, .slot = 256, .epoch = 0xffffff },
		},
		.hex = "08000f00 09000000 0c001000 00010000ffffff00",
	}, {
		.name = "TESTED: held, and free",
		.message_count = 2, .message = {
			{ .type = CLIENT_TESTED, .number = 6, .held = true, .mode = BELAY_MODE_EX,
			  .owner = { .node = 1, .client = 2, .key = 3, .pid = 4, .kind = BELAY_KIND_OFD },
			  .range = { 5, 6 } },
			{ .type = CLIENT_TESTED, .number = 7 },
		},
		.hex = "33000b00 "
		       "0600000000000000010105000000000000000600000000000000010000000200000003000000"
		       "000000000400000001 33000b00 "
		       "0700000000000000000000000000000000000000000000000000000000000000000000000000"
		       "000000000000000000",
	}, {
		.name = "TEXT in two pieces",
		.message_count = 2, .message = {
			{ .type = CLIENT_TEXT, .number = 8, .more = true, TEXT("{\"nodes\":") },
			{ .type = CLIENT_TEXT, .number = 8, .result = -ENOENT, TEXT("3}") },
		},
		.hex = "18000c00 08000000000000000109007b226e6f646573223a 11000c00 "
		       "08000000feffffff000200337d",
	}, {
		.name = "LOST, ERROR",
		.message_count = 2, .message = {
			{ .type = CLIENT_LOST },
			{ .type = CLIENT_ERROR, .result = -4095, TEXT("too many clients") },
		},
		.hex = "04000d00 1a000e00 01f0ffff1000746f6f206d616e7920636c69656e7473",
	},
};
const unsigned client_sample_count = COUNT_OF(client_samples);

size_t sample_bytes(const char *hex, uint8_t *ret_bytes, size_t size)
{
	size_t count = 0;

	while (*hex) {
		char digits[3] = { hex[0], hex[1], 0 };

		if (*hex == ' ') {
			hex++;
			continue;
		}
		if (!isxdigit((unsigned char)digits[0]) || !isxdigit((unsigned char)digits[1]) ||
		    count == size)
			abort();
		ret_bytes[count++] = (uint8_t)strtoul(digits, NULL, 16);
		hex += 2;
	}
	return count;
}
