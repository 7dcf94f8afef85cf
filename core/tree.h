/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Treap over pool items: a search tree that is a heap in a priority drawn
 * from the item's index, hence balanced without balance fields. Items carry a
 * struct link; a tree is its root's index. Shape never decides anything that
 * is replicated: only the order given by LESS does.
 *
 * TREE(NAME, LINK, LESS, UPDATE) makes NAME_insert() and NAME_remove() for one
 * kind of tree. A macro, for these run several times for each lock, and calls
 * through pointers made half of their time:
 *	struct link *LINK(core, i)	the item's link in this tree
 *	bool LESS(core, a, b)		strict total order
 *	void UPDATE(core, i)		recompute what i summarises of its subtree
 */
#ifndef BELAY_CORE_TREE_H
#define BELAY_CORE_TREE_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

struct link {
	uint32_t left, right;
};

static inline uint32_t tree_priority(uint32_t i)
{
	i ^= i >> 16;
	i *= 0x7feb352du;
	i ^= i >> 15;
	i *= 0x846ca68bu;
	return i ^ (i >> 16);
}

#define TREE(NAME, LINK, LESS, UPDATE)                                                           \
	/* Parts the tree at root into the items before item i and those behind it. */           \
	static void NAME##_split(const struct belay_core *c, uint32_t root, uint32_t i,          \
				 uint32_t *ret_left, uint32_t *ret_right)                        \
	{                                                                                        \
		struct link *l;                                                                  \
                                                                                                 \
		if (root == 0) {                                                                 \
			*ret_left = *ret_right = 0;                                              \
			return;                                                                  \
		}                                                                                \
		l = LINK(c, root);                                                               \
		if (LESS(c, i, root)) {                                                          \
			NAME##_split(c, l->left, i, ret_left, &l->left);                         \
			*ret_right = root;                                                       \
		} else {                                                                         \
			NAME##_split(c, l->right, i, &l->right, ret_right);                      \
			*ret_left = root;                                                        \
		}                                                                                \
		UPDATE(c, root);                                                                 \
	}                                                                                        \
                                                                                                 \
	static uint32_t NAME##_merge(const struct belay_core *c, uint32_t a, uint32_t b)         \
	{                                                                                        \
		struct link *l;                                                                  \
                                                                                                 \
		if (a == 0 || b == 0)                                                            \
			return a | b;                                                            \
		if (tree_priority(a) > tree_priority(b)) {                                       \
			l = LINK(c, a);                                                          \
			l->right = NAME##_merge(c, l->right, b);                                 \
			UPDATE(c, a);                                                            \
			return a;                                                                \
		}                                                                                \
		l = LINK(c, b);                                                                  \
		l->left = NAME##_merge(c, a, l->left);                                           \
		UPDATE(c, b);                                                                    \
		return b;                                                                        \
	}                                                                                        \
                                                                                                 \
	static void NAME##_insert(const struct belay_core *c, uint32_t *root, uint32_t i)        \
	{                                                                                        \
		struct link *l;                                                                  \
                                                                                                 \
		assert(i != 0);                                                                  \
		if (*root == 0 || tree_priority(i) > tree_priority(*root)) {                     \
			l = LINK(c, i);                                                          \
			NAME##_split(c, *root, i, &l->left, &l->right);                          \
			*root = i;                                                               \
		} else {                                                                         \
			l = LINK(c, *root);                                                      \
			NAME##_insert(c, LESS(c, i, *root) ? &l->left : &l->right, i);           \
		}                                                                                \
		UPDATE(c, *root);                                                                \
	}                                                                                        \
                                                                                                 \
	/* i must be in the tree. */                                                             \
	static void NAME##_remove(const struct belay_core *c, uint32_t *root, uint32_t i)        \
	{                                                                                        \
		struct link *l;                                                                  \
                                                                                                 \
		assert(*root != 0);                                                              \
		l = LINK(c, *root);                                                              \
		if (*root == i) {                                                                \
			*root = NAME##_merge(c, l->left, l->right);                              \
			*l = (struct link){ 0 };                                                 \
			return;                                                                  \
		}                                                                                \
		NAME##_remove(c, LESS(c, i, *root) ? &l->left : &l->right, i);                   \
		UPDATE(c, *root);                                                                \
	}

#endif
