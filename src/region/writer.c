/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why it is done so:
 *
 * - A hole of a full file system kills a program that touches it (SIGBUS). So no page of the
 *   mapping is touched before a system call has made it present: that gets an error instead.
 * - No descriptor is kept, because programs close and reuse descriptors that they did not open.
 * - sigprocmask, not pthread_sigmask: the same system call for one thread on Linux, and no symbol
 *   newer than glibc 2.28.
 */
#include "region/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/procstat.h"

#define POPULATE_WRITE 23 /* MADV_POPULATE_WRITE, since Linux 5.14; older headers lack it */
#define KERNEL_SIGSET 8   /* bytes of the kernel's signal set */
/* Ids are 32 bits and count 8 bytes. */
#define LARGEST_REGION ((uint64_t)1 << 35)
/* After "no space" for a chunk of the standard size, so many appends fail at once before the file
 * system is asked again. A larger chunk tells nothing about smaller ones. */
#define RETRY_AFTER 1024

/* ---- making pages present ---- */

/*
 * Writes each page by a system call, for kernels without MADV_POPULATE_WRITE. Asking for the signal
 * mask works everywhere: it needs no descriptor and no permission, changes nothing, and no seccomp
 * filter can do without it. The eight bytes it leaves are wiped again; the pages are not in use.
 */
static bool
populate_by_call(char *start, char *end, size_t page)
{
	for (char *p = start; p < end; p += page) {
		if (syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, p, KERNEL_SIGSET))
			return false;
		memset(p, 0, KERNEL_SIGSET);
	}
	return true;
}

/*
 * Makes the SIZE bytes at START present; nobody may use them yet. START need not be a page's start:
 * with pages larger than 4 KiB a chunk begins inside one, whose first part belongs to another chunk
 * and is present already.
 */
static bool
populate_pages(char *start, size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *end = start + size;
	char *first = (char *)((uintptr_t)start & ~(uintptr_t)(page - 1));
	int result;

	do
		result = madvise(first, (size_t)(end - first), POPULATE_WRITE);
	while (result && errno == EINTR);
	if (!result)
		return true;
	if (errno == EFAULT || errno == ENOMEM)
		return false;
	/* Not known to this kernel, or filtered: the slow way. It must not write before START, and
	 * must reach every page up to END. */
	if (!populate_by_call(start, start + 1, page))
		return false;
	return populate_by_call(first + page, end, page);
}

/* Frees the pages of a failed populate_pages(), so that a full file system does not become fuller.
 * It frees only whole pages inside, and it may fail. */
static void
release_pages(char *start, size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uintptr_t first = ((uintptr_t)start + page - 1) & ~(uintptr_t)(page - 1);
	uintptr_t end = ((uintptr_t)start + size) & ~(uintptr_t)(page - 1);

	if (first < end)
		(void)madvise((void *)first, end - first, MADV_REMOVE);
}

/* ---- the file ---- */

/* ftruncate; a file size limit gives EFBIG and no SIGXFSZ. */
static int
size_quietly(int fd, uint64_t size)
{
	sigset_t block, before, pending;
	struct timespec no_wait = { 0, 0 };
	bool was_pending;
	int result, why;

	sigemptyset(&block);
	sigaddset(&block, SIGXFSZ);
	sigprocmask(SIG_BLOCK, &block, &before);
	was_pending = !sigpending(&pending) && sigismember(&pending, SIGXFSZ) == 1;
	do
		result = ftruncate(fd, (off_t)size);
	while (result && errno == EINTR);
	why = errno;
	/* Take our own signal away, but not one that waited there before. */
	if (result && why == EFBIG && !was_pending)
		while (sigtimedwait(&block, NULL, &no_wait) < 0 && errno == EINTR)
			;
	sigprocmask(SIG_SETMASK, &before, NULL);
	errno = why;
	return result;
}

static uint64_t
clock_ns(clockid_t clock)
{
	struct timespec ts = { 0 };
	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void
fill_header(struct plumb_region_header *header, uint64_t size)
{
	struct plumb_procstat self = { 0 };

	(void)plumb_procstat_read("/proc/self/stat", &self);
	header->version = PLUMB_REGION_VERSION;
	header->min_version = PLUMB_REGION_VERSION;
	header->endian = PLUMB_REGION_ENDIAN;
	header->header_size = PLUMB_REGION_HEADER_SIZE;
	header->chunk_size = PLUMB_CHUNK_SIZE;
	header->pid = (uint32_t)getpid();
	header->size = size;
	header->start_monotonic = clock_ns(CLOCK_MONOTONIC);
	header->start_realtime = clock_ns(CLOCK_REALTIME);
	header->start_boottime_ticks = self.start;
	atomic_store(&header->next, PLUMB_REGION_HEADER_SIZE);
	atomic_store(&header->state, PLUMB_REGION_RECORDING);
	/* Last: what has the magic is a region. */
	atomic_thread_fence(memory_order_release);
	memcpy(header->magic, PLUMB_REGION_MAGIC, sizeof header->magic);
}

/* Sizes and maps the open file; NULL with ERROR filled. */
static void *
map_file(int fd, const char *path, uint64_t size, struct plumb_error *error)
{
	void *base;

	if (size_quietly(fd, size)) {
		plumb_fail_errno(error, "cannot size %s to %llu bytes", path,
		                 (unsigned long long)size);
		return NULL;
	}
	base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (base == MAP_FAILED) {
		plumb_fail_errno(error, "cannot map %s", path);
		return NULL;
	}
	/* A hole has nothing to read ahead: without this the first touch of a page may bring in
	 * megabytes of zeros. */
	(void)madvise(base, size, MADV_RANDOM);
	if (!populate_pages(base, PLUMB_REGION_HEADER_SIZE + PLUMB_CHUNK_SIZE)) {
		munmap(base, size);
		plumb_fail(error, PLUMB_ESYSTEM,
		           "no space left for %s; free some, or choose another folder", path);
		return NULL;
	}
	return base;
}

int
plumb_region_create_private(struct plumb_region *region, uint64_t size, struct plumb_error *error)
{
	int before = errno, code = 0;
	void *base = MAP_FAILED;

	memset(region, 0, sizeof *region);
	if (size >= PLUMB_REGION_HEADER_SIZE + PLUMB_CHUNK_SIZE && size <= LARGEST_REGION)
		base = mmap(NULL, size, PROT_READ | PROT_WRITE,
		            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (base == MAP_FAILED) {
		code = plumb_fail_memory(error, "for a region of %llu bytes",
		                         (unsigned long long)size);
	} else {
		fill_header(base, size);
		region->header = base;
	}
	errno = before;
	return code;
}

int
plumb_region_create(struct plumb_region *region, const char *path, uint64_t size,
                    struct plumb_error *error)
{
	int before = errno, code = 0, fd;
	void *base;

	memset(region, 0, sizeof *region);
	if (size < PLUMB_REGION_HEADER_SIZE + PLUMB_CHUNK_SIZE || size > LARGEST_REGION)
		return plumb_fail(error, PLUMB_EUSAGE,
		                  "a region of %llu bytes: the limit must be 68 KiB to 32 GiB",
		                  (unsigned long long)size);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0) {
		code = plumb_fail_errno(error, "cannot create %s", path);
		errno = before;
		return code;
	}
	base = map_file(fd, path, size, error);
	close(fd);
	if (base) {
		fill_header(base, size);
		region->header = base;
	} else {
		unlink(path);
		code = PLUMB_ESYSTEM;
	}
	errno = before;
	return code;
}

void
plumb_region_close(struct plumb_region *region)
{
	int before = errno;

	if (region->header)
		munmap(region->header, region->header->size);
	region->header = NULL;
	errno = before;
}

/* ---- arenas ---- */

void
plumb_arena_init(struct plumb_arena *arena, struct plumb_region *region)
{
	memset(arena, 0, sizeof *arena);
	arena->region = region;
	arena->number = atomic_fetch_add_explicit(&region->arenas, 1, memory_order_relaxed) + 1;
}

/* Takes SIZE bytes of the region and returns their offset; 0 if the region is full. */
static uint64_t
take_bytes(struct plumb_region_header *header, uint64_t size)
{
	uint64_t offset = atomic_load_explicit(&header->next, memory_order_relaxed);
	uint64_t beside = atomic_load_explicit(&header->beside, memory_order_relaxed);
	uint64_t end = beside < header->size ? header->size - beside : 0;

	do {
		if (offset > end || size > end - offset)
			return 0;
	} while (!atomic_compare_exchange_weak_explicit(
		&header->next, &offset, offset + size, memory_order_relaxed, memory_order_relaxed));
	return offset;
}

bool
plumb_region_take_beside(struct plumb_region *region, uint64_t size)
{
	struct plumb_region_header *header = region->header;
	uint64_t used = atomic_load_explicit(&header->next, memory_order_relaxed);
	uint64_t beside = atomic_fetch_add_explicit(&header->beside, size, memory_order_relaxed);

	if (beside + size >= beside && used <= header->size &&
	    beside + size <= (header->size - used) / 4 * 3)
		return true;
	plumb_region_give_beside(region, size);
	return false;
}

void
plumb_region_give_beside(struct plumb_region *region, uint64_t size)
{
	atomic_fetch_sub_explicit(&region->header->beside, size, memory_order_relaxed);
}

/* Gives back what take_bytes() took, unless somebody has taken more since. Then the bytes stay a
 * hole, which readers step over. */
static void
give_back(struct plumb_region_header *header, uint64_t offset, uint64_t size)
{
	uint64_t next = offset + size;

	atomic_compare_exchange_strong_explicit(&header->next, &next, offset, memory_order_relaxed,
	                                        memory_order_relaxed);
}

/* Makes a chunk with room for NEED bytes of records the arena's current one. The rest of the old
 * one is left. On failure the arena keeps the old one, where smaller records may still fit. */
static bool
new_chunk(struct plumb_arena *arena, size_t need)
{
	struct plumb_region_header *header = arena->region->header;
	struct plumb_chunk_header *chunk;
	uint64_t offset, size = need + sizeof *chunk;
	int before = errno;
	bool present;

	if (arena->retry) {
		arena->retry--;
		arena->fate = PLUMB_FATE_NO_SPACE;
		return false;
	}
	size = (size + PLUMB_CHUNK_SIZE - 1) / PLUMB_CHUNK_SIZE * PLUMB_CHUNK_SIZE;
	offset = size > UINT32_MAX ? 0 : take_bytes(header, size);
	if (!offset) {
		arena->fate = PLUMB_FATE_REGION_FULL;
		return false;
	}
	chunk = (struct plumb_chunk_header *)((char *)header + offset);
	present = populate_pages((char *)chunk, size);
	if (!present) {
		release_pages((char *)chunk, size);
		give_back(header, offset, size);
		arena->fate = PLUMB_FATE_NO_SPACE;
		if (size == PLUMB_CHUNK_SIZE)
			arena->retry = RETRY_AFTER;
	} else {
		chunk->arena = arena->number;
		chunk->size = (uint32_t)size;
		atomic_store_explicit(&chunk->used, 0, memory_order_relaxed);
		atomic_thread_fence(memory_order_release);
		chunk->magic = PLUMB_CHUNK_MAGIC;
		arena->chunk = chunk;
	}
	errno = before;
	return present;
}

void *
plumb_arena_append(struct plumb_arena *arena, enum plumb_record_type type, size_t length)
{
	struct plumb_chunk_header *chunk = arena->chunk;
	struct plumb_record *record;
	uint32_t used = 0;

	if (length < sizeof *record || length > UINT32_MAX - 2 * PLUMB_CHUNK_SIZE) {
		arena->fate = PLUMB_FATE_REGION_FULL;
		return NULL;
	}
	length = (length + 7) & ~(size_t)7;
	if (chunk)
		used = atomic_load_explicit(&chunk->used, memory_order_relaxed);
	if (!chunk || length > chunk->size - sizeof *chunk - used) {
		if (!new_chunk(arena, length))
			return NULL;
		chunk = arena->chunk;
		used = 0;
	}
	record = (struct plumb_record *)((char *)(chunk + 1) + used);
	/* An append that was not committed may have left something here. */
	memset(record, 0, length);
	record->type = (uint16_t)type;
	record->length = (uint32_t)length;
	return record;
}

void
plumb_arena_commit(struct plumb_arena *arena, const void *record)
{
	struct plumb_chunk_header *chunk = arena->chunk;
	const struct plumb_record *head = record;
	size_t end = (size_t)((const char *)record - (const char *)(chunk + 1)) + head->length;

	/* Release: who sees `used` sees the record. */
	atomic_store_explicit(&chunk->used, (uint32_t)end, memory_order_release);
}

/* ---- common records ---- */

plumb_id
plumb_arena_string(struct plumb_arena *arena, const char *text, size_t bytes)
{
	struct plumb_record_string *string;

	if (bytes > PLUMB_STRING_MAX) {
		bytes = PLUMB_STRING_MAX;
		/* Not inside a UTF-8 character, which has at most three bytes of this kind. */
		for (int i = 0; i < 3 && ((unsigned char)text[bytes] & 0xc0) == 0x80; i++)
			bytes--;
	}
	string = plumb_arena_append(arena, PLUMB_RECORD_STRING, sizeof *string + bytes + 1);
	if (!string)
		return 0;
	string->bytes = (uint32_t)bytes;
	memcpy(string + 1, text, bytes);
	plumb_arena_commit(arena, string);
	return plumb_region_id(arena->region, string);
}

void
plumb_region_lost(struct plumb_region *region, enum plumb_source source, enum plumb_fate fate,
                  enum plumb_fate why, uint64_t count)
{
	struct plumb_region_header *header = region->header;
	struct plumb_region_lost *lost = &header->lost[source];
	bool no_space = why == PLUMB_FATE_NO_SPACE;
	_Atomic uint64_t *tally = no_space ? &header->lost_no_space : &header->lost_full;

	_Static_assert(PLUMB_SOURCE_COUNT <= PLUMB_REGION_SOURCES, "each source has its place");
	if (source && fate == PLUMB_FATE_RECEIVED)
		tally = &lost->received;
	else if (source && fate == PLUMB_FATE_ATTRIBUTED)
		tally = &lost->attributed;
	else if (source && (fate == PLUMB_FATE_REGION_FULL || fate == PLUMB_FATE_NO_SPACE))
		tally = fate == PLUMB_FATE_NO_SPACE ? &lost->no_space : &lost->full;
	atomic_fetch_add_explicit(tally, count, memory_order_relaxed);
}

void
plumb_arena_count(struct plumb_arena *arena, enum plumb_source source, enum plumb_fate fate,
                  uint64_t count)
{
	if ((unsigned)source >= PLUMB_SOURCE_COUNT || (unsigned)fate >= PLUMB_FATE_COUNT)
		return;
	if (!arena->ledger[source][fate]) {
		struct plumb_record_ledger *tally =
			plumb_arena_append(arena, PLUMB_RECORD_LEDGER, sizeof *tally);
		if (!tally) {
			plumb_region_lost(arena->region, source, fate, arena->fate, count);
			return;
		}
		tally->source = (uint16_t)source;
		tally->fate = (uint16_t)fate;
		plumb_arena_commit(arena, tally);
		arena->ledger[source][fate] = plumb_region_id(arena->region, tally);
	}
	plumb_arena_tally(arena, source, fate, count);
}

bool
plumb_arena_environment(struct plumb_arena *arena, const char *key, const char *value)
{
	struct plumb_record_environment *fact;
	plumb_id key_id, value_id;

	if (!value)
		return false;
	key_id = plumb_arena_string(arena, key, strlen(key));
	value_id = key_id ? plumb_arena_string(arena, value, strlen(value)) : 0;
	if (!value_id)
		return false;
	fact = plumb_arena_append(arena, PLUMB_RECORD_ENVIRONMENT, sizeof *fact);
	if (!fact)
		return false;
	fact->key = key_id;
	fact->value = value_id;
	plumb_arena_commit(arena, fact);
	return true;
}
