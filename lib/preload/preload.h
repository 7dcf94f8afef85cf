/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libbelay-preload: unmodified programs lock by belay. The library stands before
 * the C library (LD_PRELOAD) and takes the calls that lock, and those that end
 * or copy descriptors; all but what concerns regular files below the configured
 * directories goes to the kernel as it came. belay-preload(7) tells what a
 * program sees.
 *
 *	fcntl.c flock.c close.c exec.c	the calls that it stands before
 *	syscall.c	the same by another name
 *	table.c		descriptors: whose file it is, is looked up at the first lock
 *	file.c		files and open file descriptions, and their handles
 *	link.c		the connection; fork; the loss of belayd
 *	wait.c		locks: taken at once, or waited for as the kernel does
 *	calm.c		nothing may come between: signals, cancellation
 *	place.c		configuration, from the environment
 *	extent.c held.c	arithmetic
 *	say.c alloc.c	words to people; memory
 *
 * What is unusual here: this code runs inside of programs that know nothing of
 * it, and in place of calls that may be made from signal handlers and between
 * vfork() and exec. So it never calls what such code must not call: its
 * memory is its own, not malloc()'s; while it is at work no handler can run in
 * that thread, but at the places where it waits; and it is ready for a program
 * that closes every descriptor.
 */
#ifndef BELAY_PRELOAD_H
#define BELAY_PRELOAD_H

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/single_threaded.h>
#include <sys/types.h>
#include <unistd.h>

#include "include/belay.h"
#include "lib/preload/held.h"

/* A symbol that programs are meant to find before the C library's. */
#define INTERPOSED __attribute__((visibility("default")))

/* ---- what there is ---- */

/* An open file description, as the kernel calls what open() makes and dup() shares. */
struct description {
	LIST_ENTRY(description) link;	/* of the file; or of the free ones */
	struct file *file;
	int fd;				/* one of its descriptors */
	unsigned fds;			/* known ones */
	bool may_read, may_write;
	/* Threads that use it just now. Counted also on a free one, by those who come
	 * too late: descriptions are never given back to the memory. A handler that jumps
	 * out of a call leaves one that never goes. */
	_Atomic unsigned users;
	_Atomic bool dying;		/* its last descriptor is closed; goes with its last user */
	struct belay_handle *_Atomic ofd, *_Atomic flock;	/* NULL: not used yet */
	struct held held;		/* by OFD locks */
	_Atomic uint64_t flock_held;	/* LOCK_SH, LOCK_EX or 0 in its lowest bits, above them a number */
	_Atomic uint8_t busy;		/* not 0: waits are long */
};
LIST_HEAD(description_list, description);

/* A file of which this process has locked something, or tried. */
struct file {
	LIST_ENTRY(file) link;
	dev_t device;
	ino_t inode;
	struct link *connection;
	struct description_list descriptions;
	struct belay_handle *_Atomic posix[2];	/* by mode that it may lock in; perhaps the same */
	struct held held;		/* by POSIX locks */
};
LIST_HEAD(file_list, file);

/* A connection to belayd. */
#define LINK_FDS 4
struct link {
	struct belay *belay;
	int fds[LINK_FDS];		/* not the program's, which may close what it does not know */
	unsigned files;
	bool gone;			/* ends with its last file */
};

/* A request that is waited for. */
struct waiter {
	LIST_ENTRY(waiter) link;
	struct link *connection;
	uint32_t request;
	int result;
	int event_fd;			/* wakes its thread when another one takes its answer; or -1 */
	bool done;
};
LIST_HEAD(waiter_list, waiter);

enum place_mode {
	PLACE_UNREAD,			/* the environment has not been looked at */
	PLACE_NONE,			/* nothing to do here */
	PLACE_BELAY,
	PLACE_KERNEL,			/* belayd could not be reached, and that is allowed */
};

enum once {
	ONCE_NO_PATHS, ONCE_BAD_PATH, ONCE_UNREACHABLE, ONCE_LOST, ONCE_REFUSED, ONCE_EXEC,
	ONCE_NO_PROC, ONCE_TABLE, ONCE_COUNT
};

#define PLACES_MAX 64
struct place {
	const char *path;
	size_t size;
};

/*
 * All of the library's state: there is no other place for it, the calls have no
 * argument for us.
 */
struct preload {
	_Atomic int mode;		/* enum place_mode */
	bool may_fall_back;
	unsigned place_count;
	struct place place[PLACES_MAX];

	/* 1; in a child of fork() the kernel makes it 0. NULL: there was no connection yet. */
	_Atomic int *_Atomic life;
	pid_t pid;			/* whose state this is; a vfork()ed child sees it, too */

	pthread_mutex_t mutex;		/* for what follows */
	struct link *_Atomic link;
	_Atomic unsigned posix_files;	/* files with a handle for POSIX locks */
	bool dead;			/* locks were lost: nothing works any more */
	struct file_list files;
	struct description_list free;
	struct waiter_list waiters;
	atomic_flag said[ONCE_COUNT];
};
extern struct preload preload __attribute__((visibility("hidden")));

/* ---- calm.c ---- */

/*
 * Between the two no handler runs in this thread, it is not cancelled, and errno
 * stays. Signals that just end the process do so even then, for some of what is
 * done here may take long.
 */
struct calm {
	sigset_t mask;
	int cancel, error;
};
void calm_begin(struct calm *calm);
void calm_end(const struct calm *calm);
/* From here to calm_end() no signal at all does anything. */
void calm_all(void);

enum calm_due {
	CALM_NOTHING,
	CALM_PASSING,			/* only what no handler awaits: calm_pass() */
	CALM_RESTART,			/* handlers, all of them with SA_RESTART */
	CALM_INTERRUPT,			/* a handler without: the call ends with EINTR */
};
/* What is pending for this thread, and was not blocked by the program. After calm_all(). */
enum calm_due calm_due(const struct calm *calm);
/* Let those that no handler awaits have their way: stop the process, end it, or nothing. */
void calm_pass(const struct calm *calm);

/* ---- place.c ---- */

/* Read the environment once. */
enum place_mode place_mode(void);
/* Is the file of @fd below one of the directories? 1, 0, -ENOLCK: that cannot be told. */
int place_has(int fd);
/* The list of directories, as it stands in the environment, which must last. What is no
 * absolute directory is left out. Returns how many there are, at most PLACES_MAX. */
unsigned place_parse(const char *list, struct place *place, bool *ret_wrong);
bool place_match(const struct place *place, unsigned count, const char *path, size_t size);

/* ---- table.c ---- */

#define TABLE_NOT_OURS ((struct description *)1)

#define TABLE_PAGE 1024
struct table {
	struct description *_Atomic first[TABLE_PAGE];
	struct description *_Atomic *_Atomic page[TABLE_PAGE];
};
extern struct table table __attribute__((visibility("hidden")));

/* As table_get(), of large numbers. */
struct description *table_get_far(int fd);
/* What is known of the descriptor: NULL, nothing; TABLE_NOT_OURS; or its description. */
static inline struct description *table_get(int fd)
{
	return (unsigned)fd < TABLE_PAGE ?
	       atomic_load_explicit(&table.first[fd], memory_order_acquire) : table_get_far(fd);
}
/* -ENOLCK: the number is too large for the table. */
int table_set(int fd, struct description *description);
/* Some descriptor with that description; -1. */
int table_find(const struct description *description);
/* Call for each in [first, last] of which something is known. */
void table_each(unsigned first, unsigned last, void (*call)(int fd));
/* Nothing is known any more. */
void table_clear(void);

/* ---- file.c ---- */

/*
 * Whose file is it? 1: ours, and *ret_description is in use until file_leave();
 * 0: the kernel's; or a negative errno for the caller.
 */
int file_enter(int fd, struct description **ret_description);
static inline void file_leave(struct description *description);
/* The same, if that takes nothing but a look: false, and it is not in use. */
static inline bool file_enter_quickly(int fd, struct description **ret_description);
/* What is locked by flock(): LOCK_SH, LOCK_EX, or 0. */
#define FLOCK_KIND ((uint64_t)3)
static inline int file_flock_kind(const struct description *d)
{
	return (int)(d->flock_held & FLOCK_KIND);
}
/* It may be that its end is due. */
void file_end(struct description *description);
/* The handle for such an owner and mode, opened if need be. */
int file_handle(int fd, struct description *d, enum belay_lock_owner owner,
		enum belay_lock_mode mode, struct belay_handle **ret_handle);
/* The descriptor is about to be closed. */
void file_closing(int fd);
/* Must that be called at all? */
bool file_concerns(int fd);
/* @copy has become a descriptor of what @fd is one of. */
void file_copied(int fd, int copy);
/* Mutex held: does this process hold anything? */
bool file_anything_held(void);
/* Mutex held: the files of a connection that is gone are known no more. */
void file_forget(const struct link *link);
/* In a child: the parent's files. */
void file_abandon(void);

/* ---- link.c ---- */

/* From here on a child of fork() can be told from its parent. */
void link_live(void);
/* Mutex held. The connection, made if need be: 0, 1: fall back to the kernel, or a negative errno. */
int link_get(struct link **ret_link);
/* An operation of the connection has ended with -EIO: 0, nothing was held, so try again; or -EIO. */
int link_lost(struct link *link);
/* Mutex held. A file less. */
void link_put(struct link *link);
/* True in the process whose state this is, not in a vfork()ed child. Sees to it that
 * a fork()ed child begins anew, unless that one's vfork()ed child asks. */
bool link_is_self(void);
/* The same, cheaper: a vfork()ed child counts as its parent. */
static inline void link_renew(void);
static inline bool link_is_alive(void);
void link_reborn(void);
/* Is it one of the library's own descriptors? */
bool link_owns(int fd);
/* Mutex held. The connection may have got one more descriptor. */
void link_look(struct link *link);

/* After a lock was noted: false, another thread, or a handler, has given up the connection for which it was
 * granted, as one by which nothing is held. */
static inline bool link_is_valid(const struct link *link)
{
	return atomic_load(&preload.link) == link;
}

/* There is a connection, or was, and this is no child of who made it. */
static inline bool link_is_alive(void)
{
	_Atomic int *life = atomic_load_explicit(&preload.life, memory_order_relaxed);

	return life && atomic_load_explicit(life, memory_order_relaxed) == 1;
}

static inline void link_renew(void)
{
	if (atomic_load_explicit(&preload.life, memory_order_relaxed) && !link_is_alive())
		link_reborn();
}

/* Nobody but signal handlers of the one thread there is could come between. */
static inline unsigned file_users_add(struct description *d, int n)
{
	unsigned users;

	if (!__libc_single_threaded)
		return atomic_fetch_add(&d->users, (unsigned)n) + (unsigned)n;
	users = atomic_load_explicit(&d->users, memory_order_relaxed) + (unsigned)n;
	atomic_store_explicit(&d->users, users, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	return users;
}

static inline void file_leave(struct description *d)
{
	if (file_users_add(d, -1) == 0 && atomic_load(&d->dying))
		file_end(d);
}

static inline bool file_enter_quickly(int fd, struct description **ret_description)
{
	struct description *d = table_get(fd);

	if ((uintptr_t)d <= (uintptr_t)TABLE_NOT_OURS || !link_is_alive())
		return false;
	(void)file_users_add(d, 1);
	/* It was of no use to count on one that had ended meanwhile. */
	if (table_get(fd) != d) {
		file_leave(d);
		return false;
	}
	*ret_description = d;
	return true;
}

/* ---- wait.c ---- */

/* From the start again, after calm_end(): handlers that want that are due. No errno of the system. */
#define WAIT_RESTART 4096

/*
 * Within @calm, @end included: a lock as fcntl(2) takes it. 0; -EAGAIN if not @wait; -EINTR and
 * -WAIT_RESTART with the request withdrawn; or what belay_lock() returns.
 */
int wait_lock(const struct calm *calm, struct description *d, struct belay_handle *handle,
	      enum belay_lock_mode mode, uint64_t start, uint64_t end, bool wait);
int wait_unlock(struct belay_handle *handle, uint64_t start, uint64_t end);

/* ---- fcntl.c ---- */

/* A lock command on a descriptor, whoever's it is. Returns as fcntl(2). */
int fcntl_lock(int fd, int cmd, struct flock *l);

/* ---- exec.c, close.c, syscall.c ---- */

/*
 * The C library's own function of that name, with *place to remember it. Constructors of
 * other libraries run before ours, and they may call anything: so it is looked up by whoever
 * comes first, and ours only sees to it that those who must not look need not.
 */
void *next_find(void *_Atomic *place, const char *name);
void exec_begin(void);
void close_begin(void);

/* ---- syscall.c ---- */

/* The C library's syscall(), found if need be; what stands by that name here is the program's. */
typedef long kernel_call(long number, ...);
extern kernel_call *_Atomic kernel_found __attribute__((visibility("hidden")));
kernel_call *kernel_find(void);

static inline kernel_call *kernel(void)
{
	kernel_call *found = atomic_load_explicit(&kernel_found, memory_order_relaxed);

	return found ? found : kernel_find();
}

#undef syscall
#define syscall(...) kernel()(__VA_ARGS__)

/* ---- say.c ---- */

/* Say it on stderr, if that was not done before and stderr is something to say it on. */
__attribute__((format(printf, 2, 3)))
void say_once(enum once what, const char *format, ...);

/* ---- alloc.c ---- */

/* In a child: memory that another thread of the parent was just working on is left alone. */
void alloc_abandon(void);

#endif
