/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Treap over pool items: a search tree that is a heap in a priority drawn
 * from the item's index, hence balanced without balance fields. Items carry a
 * struct link; a tree is its root's index. Shape never decides anything that
 * is replicated: only the order given by less() does.
 */
#ifndef BELAY_CORE_TREE_H
#define BELAY_CORE_TREE_H

#include <stdbool.h>
#include <stdint.h>

struct link {
	uint32_t left, right;
};

struct belay_core;

struct tree_ops {
	struct link *(*link)(const struct belay_core *core, uint32_t i);
	/* Strict total order of the items of one tree. */
	bool (*less)(const struct belay_core *core, uint32_t a, uint32_t b);
	/* Recompute what item i summarises of its subtree. */
	void (*update)(const struct belay_core *core, uint32_t i);
};

void tree_insert(const struct belay_core *core, const struct tree_ops *ops,
		 uint32_t *root, uint32_t i);

/* i must be in the tree. */
void tree_remove(const struct belay_core *core, const struct tree_ops *ops,
		 uint32_t *root, uint32_t i);

#endif
