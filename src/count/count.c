/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of a process is made at its first launch. Each launch takes the next entry, and the
 * thread that comes to the middle of the last chunk makes room for the next one: the others have
 * half a chunk until it has done so.
 */
#include "count/count.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rank.h"
#include "collect/collector.h"
#include "region/launches.h"

#define CHUNK (UINT64_C(1) << 16) /* entries */
#define ENTRY sizeof(uint64_t)
#define NAMES 8 /* files of one pid: a process may execute another program */

bool plumb_count_wanted;

static char prefix[PATH_MAX];

enum { OFF, OPENING, OPEN, REFUSED };
static _Atomic int state;
static struct plumb_launches_header *header;
static uint64_t *entries;
static uint64_t most; /* entries that the file may have */
static int file = -1;

/* ---- the file ---- */

static int
create(uint32_t pid)
{
	char path[PATH_MAX + 64];
	int fd = -1;

	for (int number = 0; fd < 0 && number < NAMES; number++) {
		snprintf(path, sizeof path, "%s%u-%d" PLUMB_LAUNCHES_SUFFIX, prefix, pid, number);
		fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (fd < 0 && errno != EEXIST)
			break;
	}
	return fd;
}

/* How many entries a file may have: beyond the limit of a file's size there is a signal. */
static uint64_t
entries_allowed(void)
{
	struct rlimit size;

	if (getrlimit(RLIMIT_FSIZE, &size) != 0 || size.rlim_cur == RLIM_INFINITY ||
	    size.rlim_cur >= PLUMB_LAUNCHES_HEADER_SIZE + PLUMB_LAUNCHES_MOST * ENTRY)
		return PLUMB_LAUNCHES_MOST;
	if (size.rlim_cur < PLUMB_LAUNCHES_HEADER_SIZE)
		return 0;
	return (size.rlim_cur - PLUMB_LAUNCHES_HEADER_SIZE) / ENTRY / CHUNK * CHUNK;
}

/* Makes the pages of a chunk present. */
static bool
reserve(uint64_t from)
{
	off_t at = (off_t)(PLUMB_LAUNCHES_HEADER_SIZE + from * ENTRY);

	return from + CHUNK <= most && posix_fallocate(file, at, (off_t)(CHUNK * ENTRY)) == 0;
}

static bool
make_file(void)
{
	static const char *const ranks[] = PLUMB_RANK_VARIABLES;
	uint32_t pid = (uint32_t)syscall(SYS_getpid);
	size_t bytes;
	void *mapped;

	most = entries_allowed();
	bytes = PLUMB_LAUNCHES_HEADER_SIZE + most * ENTRY;
	file = most ? create(pid) : -1;
	if (file < 0)
		return false;
	if (ftruncate(file, (off_t)bytes) != 0 ||
	    posix_fallocate(file, 0, PLUMB_LAUNCHES_HEADER_SIZE) != 0 || !reserve(0))
		return false;
	mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (mapped == MAP_FAILED)
		return false;
	header = mapped;
	entries = (uint64_t *)((char *)mapped + PLUMB_LAUNCHES_HEADER_SIZE);
	header->version = PLUMB_LAUNCHES_VERSION;
	header->pid = pid;
	header->rank = plumb_rank_from(ranks);
	header->start = plumb_clock_ns();
	atomic_store(&header->room, CHUNK);
	memcpy(header->magic, PLUMB_LAUNCHES_MAGIC, sizeof header->magic);
	return true;
}

/* False: this process is not counted, or another thread makes the file just now. */
static bool
open_file(void)
{
	int expected = OFF, saved = errno;

	if (!atomic_compare_exchange_strong(&state, &expected, OPENING))
		return expected == OPEN;
	bool made = make_file();
	if (!made && file >= 0) {
		close(file);
		file = -1;
	}
	atomic_store_explicit(&state, made ? OPEN : REFUSED, memory_order_release);
	errno = saved;
	return made;
}

/* ---- launches ---- */

static void __attribute__((noinline))
make_room(void)
{
	uint64_t room = atomic_load_explicit(&header->room, memory_order_relaxed);
	int saved = errno;

	if (reserve(room))
		atomic_store_explicit(&header->room, room + CHUNK, memory_order_release);
	errno = saved;
}

void
plumb_count_launch(const void *function)
{
	uint64_t at;

	if (plumb_unlikely(atomic_load_explicit(&state, memory_order_acquire) != OPEN) &&
	    (!plumb_count_wanted || !open_file()))
		return;
	at = atomic_fetch_add_explicit(&header->count, 1, memory_order_relaxed);
	if (plumb_unlikely(at >= atomic_load_explicit(&header->room, memory_order_acquire)))
		return;
	entries[at] = plumb_launch_entry(plumb_clock_ns() - header->start, function);
	if (plumb_unlikely(at % CHUNK == CHUNK / 2))
		make_room();
}

/* ---- loading ---- */

/* A forked child has a file of its own, if it launches anything. */
static void
forget_parent(void)
{
	atomic_store(&state, OFF);
	if (file >= 0)
		close(file);
	file = -1;
}

static __attribute__((constructor)) void
load(void)
{
	const char *path = getenv(PLUMB_ENV_LAUNCHES);

	if (!path || path[0] != '/' || strlen(path) >= sizeof prefix)
		return;
	strcpy(prefix, path);
	plumb_count_wanted = true;
	pthread_atfork(NULL, NULL, forget_parent);
}
