/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Descriptor to description. The first page costs nothing until it is
 * written to, and few programs ever need another one.
 */
#include <errno.h>
#include <sys/mman.h>

#include "lib/preload/preload.h"

/* A million descriptors: the kernel's own limit, usually. */
#define PAGE_BITS 10
#define PAGES TABLE_PAGE
_Static_assert(TABLE_PAGE == 1 << PAGE_BITS, "a page is indexed by the lowest bits");

struct table table;

static struct description *_Atomic *find(int fd)
{
	struct description *_Atomic *page;

	if ((unsigned)fd < TABLE_PAGE)
		return &table.first[fd];
	if ((unsigned)fd >> PAGE_BITS >= PAGES)
		return NULL;
	page = atomic_load_explicit(&table.page[fd >> PAGE_BITS], memory_order_acquire);
	return page ? &page[fd & (TABLE_PAGE - 1)] : NULL;
}

struct description *table_get_far(int fd)
{
	struct description *_Atomic *e = find(fd);

	return e ? atomic_load_explicit(e, memory_order_acquire) : NULL;
}

static int add_page(int fd)
{
	struct description *_Atomic *none = NULL, *_Atomic *page;

	page = mmap(NULL, TABLE_PAGE * sizeof(*page), PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return -ENOLCK;
	if (!atomic_compare_exchange_strong(&table.page[fd >> PAGE_BITS], &none, page))
		munmap(page, TABLE_PAGE * sizeof(*page));
	return 0;
}

int table_set(int fd, struct description *description)
{
	struct description *_Atomic *e = find(fd);

	if (!e) {
		if (!description)
			return 0;
		if (fd < 0 || (unsigned)fd >> PAGE_BITS >= PAGES || add_page(fd) < 0)
			return -ENOLCK;
		e = find(fd);
	}
	atomic_store_explicit(e, description, memory_order_release);
	return 0;
}

/* One page; from @at to @end in it. False: the call wants no more. */
static int scan(struct description *_Atomic *page, int base, unsigned at, unsigned end,
		const struct description *wanted, void (*call)(int fd))
{
	for (; at < end; at++) {
		const struct description *d = atomic_load_explicit(&page[at], memory_order_acquire);

		if (wanted && d == wanted)
			return base + (int)at;
		if (call && d)
			call(base + (int)at);
	}
	return -1;
}

static int scan_all(unsigned first, unsigned last, const struct description *wanted,
		    void (*call)(int fd))
{
	for (unsigned p = first >> PAGE_BITS; p < PAGES && p <= last >> PAGE_BITS; p++) {
		struct description *_Atomic *page = p == 0 ? table.first :
			      atomic_load_explicit(&table.page[p], memory_order_acquire);
		unsigned at = p == first >> PAGE_BITS ? first & (TABLE_PAGE - 1) : 0;
		unsigned end = p == last >> PAGE_BITS ? (last & (TABLE_PAGE - 1)) + 1 : TABLE_PAGE;
		int fd = page ? scan(page, (int)(p << PAGE_BITS), at, end, wanted, call) : -1;

		if (fd >= 0)
			return fd;
	}
	return -1;
}

int table_find(const struct description *description)
{
	return scan_all(0, UINT32_MAX, description, NULL);
}

void table_each(unsigned first, unsigned last, void (*call)(int fd))
{
	(void)scan_all(first, last, NULL, call);
}

static void clear(int fd)
{
	(void)table_set(fd, NULL);
}

void table_clear(void)
{
	table_each(0, UINT32_MAX, clear);
}
