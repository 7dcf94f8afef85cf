/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "core/tree.h"

#include <assert.h>

static uint32_t priority(uint32_t i)
{
	i ^= i >> 16;
	i *= 0x7feb352du;
	i ^= i >> 15;
	i *= 0x846ca68bu;
	return i ^ (i >> 16);
}

/* Parts the tree at `root` into the items before item i and those behind it. */
static void split(const struct belay_core *core, const struct tree_ops *ops, uint32_t root,
		  uint32_t i, uint32_t *ret_left, uint32_t *ret_right)
{
	struct link *l;

	if (root == 0) {
		*ret_left = *ret_right = 0;
		return;
	}
	l = ops->link(core, root);
	if (ops->less(core, i, root)) {
		split(core, ops, l->left, i, ret_left, &l->left);
		*ret_right = root;
	} else {
		split(core, ops, l->right, i, &l->right, ret_right);
		*ret_left = root;
	}
	ops->update(core, root);
}

static uint32_t merge(const struct belay_core *core, const struct tree_ops *ops, uint32_t a,
		      uint32_t b)
{
	struct link *l;

	if (a == 0 || b == 0)
		return a | b;
	if (priority(a) > priority(b)) {
		l = ops->link(core, a);
		l->right = merge(core, ops, l->right, b);
		ops->update(core, a);
		return a;
	}
	l = ops->link(core, b);
	l->left = merge(core, ops, a, l->left);
	ops->update(core, b);
	return b;
}

void tree_insert(const struct belay_core *core, const struct tree_ops *ops, uint32_t *root,
		 uint32_t i)
{
	struct link *l;

	assert(i != 0);
	if (*root == 0 || priority(i) > priority(*root)) {
		l = ops->link(core, i);
		split(core, ops, *root, i, &l->left, &l->right);
		*root = i;
	} else {
		l = ops->link(core, *root);
		tree_insert(core, ops, ops->less(core, i, *root) ? &l->left : &l->right, i);
	}
	ops->update(core, *root);
}

void tree_remove(const struct belay_core *core, const struct tree_ops *ops, uint32_t *root,
		 uint32_t i)
{
	struct link *l;

	assert(*root != 0);
	l = ops->link(core, *root);
	if (*root == i) {
		*root = merge(core, ops, l->left, l->right);
		*l = (struct link){ 0 };
		return;
	}
	tree_remove(core, ops, ops->less(core, i, *root) ? &l->left : &l->right, i);
	ops->update(core, *root);
}
