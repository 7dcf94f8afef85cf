/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "lib/preload/preload.h"
#include "lib/share.h"

struct preload preload = { .mutex = PTHREAD_MUTEX_INITIALIZER };

/* linux/kcmp.h is not everywhere. */
#define KCMP_VM_TYPE 1

/* Values of the byte that fork() clears. */
enum {
	LIFE_CHILD,
	LIFE_SELF,
	LIFE_BEGINS,
};

/* ---- the process ---- */

void link_live(void)
{
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	_Atomic int *none = NULL, *page;

	if (atomic_load(&preload.life))
		return;
	page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return;
	preload.pid = getpid();
	if (madvise(page, size, MADV_WIPEONFORK) == 0) {
		atomic_init(page, LIFE_SELF);
		if (atomic_compare_exchange_strong(&preload.life, &none, page))
			return;
	}
	munmap(page, size);
}

/*
 * By vfork() or posix_spawn(): the memory is its parent's, who was forked and has not come
 * by here yet. To begin anew is that one's own affair.
 *
 * The C library has the number of a thread from when it, or fork(), made it; the clock of a thread
 * is that number as the kernel writes it. Who forked by the system call itself has an old one, too,
 * but memory of his own.
 */
static bool is_guest(void)
{
	clockid_t clock;

	if (pthread_getcpuclockid(pthread_self(), &clock) != 0 || ~(clock >> 3) == gettid())
		return false;
	return syscall(SYS_kcmp, getpid(), getppid(), KCMP_VM_TYPE, 0, 0) <= 0;
}

/* The parent's locks stay the parent's. Where another thread of it left things half done nobody looks. */
static void begin_anew(void)
{
	struct link *parent;

	alloc_abandon();
	pthread_mutex_init(&preload.mutex, NULL);
	table_clear();
	file_abandon();
	LIST_INIT(&preload.waiters);
	preload.dead = false;
	parent = atomic_exchange(&preload.link, NULL);
	if (parent)
		belay_disconnect(parent->belay);	/* closes what is open, and says nothing */
	preload.pid = getpid();
}

/*
 * This is a child. POSIX locks are not inherited; those of open files stay the
 * parent's, through whose connection they were taken. A handler that came between
 * would wait for what it interrupted.
 */
void link_reborn(void)
{
	int child = LIFE_CHILD;
	struct calm calm;

	if (is_guest())
		return;
	calm_begin(&calm);
	if (atomic_compare_exchange_strong(preload.life, &child, LIFE_BEGINS)) {
		begin_anew();
		atomic_store(preload.life, LIFE_SELF);
	}
	while (atomic_load(preload.life) != LIFE_SELF)
		sched_yield();
	calm_end(&calm);
}

bool link_is_self(void)
{
	link_renew();
	return getpid() == preload.pid;
}

/* ---- the connection ---- */

/* Where programs do not look for descriptors of theirs: below the limit, and far above them. */
static int high(int fd)
{
	struct rlimit limit;
	int from = 1000;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < 1024)
		from = limit.rlim_cur > 64 ? (int)limit.rlim_cur - 24 : 0;
	return (int)syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, from);
}

static void move_one(struct belay *belay, int *fd)
{
	struct epoll_event in = { .events = EPOLLIN };
	int to = high(*fd);

	if (to < 0)
		return;
	if (*fd != belay->epoll_fd) {
		(void)epoll_ctl(belay->epoll_fd, EPOLL_CTL_DEL, *fd, NULL);
		(void)epoll_ctl(belay->epoll_fd, EPOLL_CTL_ADD, to, &in);
	}
	syscall(SYS_close, *fd);
	*fd = to;
}

static int connect_new(struct link **ret_link)
{
	struct link *link = calloc(1, sizeof(*link));
	int r;

	if (!link)
		return -ENOMEM;
	r = belay_connect(&link->belay, NULL);
	if (r < 0) {
		free(link);
		return r;
	}
	move_one(link->belay, &link->belay->epoll_fd);
	move_one(link->belay, &link->belay->socket);
	move_one(link->belay, &link->belay->event_fd);
	link->fds[0] = link->belay->epoll_fd;
	link->fds[1] = link->belay->socket;
	link->fds[2] = link->belay->event_fd;
	link->fds[3] = -1;
	*ret_link = link;
	return 0;
}

void link_look(struct link *link)
{
	struct belay *belay = link->belay;
	int to;

	if (link->fds[3] >= 0)
		return;
	enter(belay);
	if (belay->share) {
		to = high(belay->share->fd);
		if (to >= 0) {
			syscall(SYS_close, belay->share->fd);
			belay->share->fd = to;
		}
		link->fds[3] = belay->share->fd;
	}
	leave(belay);
}

static const char *reason(int error)
{
	switch (error) {
	case -ENOENT:
	case -ECONNREFUSED:
		return "it does not run; start it: systemctl start belayd, or belayd --standalone without a cluster";
	case -EACCES:
		return "this user may not use it; see socket_group in belay.conf(5)";
	case -EPROTONOSUPPORT:
		return "it is of another version; restart it, or this program";
	case -EUSERS:
		return "it has as many clients as clients_max in belay.conf(5) allows";
	case -EAGAIN:
		return "it does not serve yet; belay status says what it waits for";
	case -ETIMEDOUT:
		return "it hangs or is stopped; see systemctl status belayd";
	default:
		return strerror(-error);
	}
}

int link_get(struct link **ret_link)
{
	struct link *link = atomic_load(&preload.link);
	int r;

	if (preload.dead)
		return -EIO;
	if (link) {
		*ret_link = link;
		return 0;
	}
	if (atomic_load(&preload.mode) == PLACE_KERNEL)
		return 1;
	r = connect_new(&link);
	if (r == 0) {
		atomic_store(&preload.link, link);
		*ret_link = link;
		return 0;
	}
	if (preload.may_fall_back) {
		say_once(ONCE_UNREACHABLE, "no connection to belayd: %s. Locks of this process are the "
			 "kernel's, as on_unreachable = kernel allows: they exclude nobody on other "
			 "nodes", reason(r));
		/* For good: half of the locks here and half there would exclude nobody at all. */
		atomic_store(&preload.mode, PLACE_KERNEL);
		return 1;
	}
	say_once(ONCE_UNREACHABLE, "no connection to belayd: %s. Locks fail with ENOLCK until then; "
		 "on_unreachable = kernel in belay.conf(5) would allow the kernel's locks", reason(r));
	return -ENOLCK;
}

static void link_end(struct link *link)
{
	belay_disconnect(link->belay);
	free(link);
}

void link_put(struct link *link)
{
	link->files--;
	if (link->files == 0 && link->gone)
		link_end(link);
}

/*
 * Whoever held something must not go on as if it had it still; belayd would take a new
 * connection as a sign that the process knows. Nobody can tell that of a
 * program but its own stop. One that held nothing has lost nothing.
 */
int link_lost(struct link *link)
{
	int r;

	pthread_mutex_lock(&preload.mutex);
	if (atomic_load(&preload.link) == link && !preload.dead) {
		/* Before we look: whoever notes a lock later sees that it is void. */
		atomic_store(&preload.link, NULL);
		if (file_anything_held()) {
			preload.dead = true;
			atomic_store(&preload.link, link);
			say_once(ONCE_LOST, "belayd or the quorum is gone, and with it locks that this "
				 "process held: what they protected may be in use by others. All its locks "
				 "fail with EIO from here on; restart it");
		} else {
			link->gone = true;
			link->files++;
			file_forget(link);
			link_put(link);
		}
	}
	r = preload.dead ? -EIO : 0;
	pthread_mutex_unlock(&preload.mutex);
	return r;
}

bool link_owns(int fd)
{
	const struct link *link = atomic_load_explicit(&preload.link, memory_order_acquire);

	if (!link)
		return false;
	for (int i = 0; i < LINK_FDS; i++)
		if (link->fds[i] == fd)
			/* Not the parent's in a child. */
			return link_is_self() && atomic_load(&preload.link) == link;
	return false;
}
