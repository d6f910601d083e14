/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which object an address lies in. The list is a sorted array that is replaced as a whole: there
 * are two, readers use the one that is published and look afterwards whether it still is, so they
 * take no lock and may be signal handlers. What an entry points to is written once and never freed.
 *
 * dl_iterate_phdr() tells what is loaded. It is asked when an address lies in no known object, and
 * after each dlclose(), which comes through here: from then on the address space may be used anew.
 */
#include "collect/stack/objects.h"

#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/search.h"
#include "collect/collector.h"
#include "collect/table.h"

enum {
	OBJECTS = 16384, /* of a process's life, unloaded ones counted */
	PATHS = 4 << 20, /* bytes for their paths */
	SEGMENTS = 32,   /* readable ones of an object that are looked at */
	TRIES = 4,       /* of a reader, while the list changes */
	WAITS = 100,     /* of 100 µs, for another thread that reads the list */
	NOTE_BUILD_ID = 3,
	NOTE_GO = 4,
	PAGE = 65536, /* at most */
};

struct entry {
	_Atomic uintptr_t start;
	_Atomic uint32_t index; /* of objects[] */
};

static struct plumb_stack_code *objects; /* [OBJECTS] */
static struct entry *lists[2];           /* [OBJECTS] each */
static _Atomic uint32_t counts[2];
static _Atomic uint32_t version; /* its last bit: which list is published */
PLUMB_HOT static _Atomic uint32_t generation = 1;
static _Atomic uint32_t unloading;
static uint32_t forks;     /* that this process is away from the first */
static _Atomic bool ready; /* the lists are there */
PLUMB_HOT _Atomic bool plumb_stack_stale;

/* Only for who holds `owner`. */
static _Atomic uint32_t owner; /* process that reads the list; 0 nobody */
static uint32_t known;         /* objects[] that are in use */
static char *paths;
static size_t paths_used;
static _Atomic uint64_t seen_loads, seen_unloads; /* the loader's counts */

/* ---- reading ---- */

struct plumb_stack_code *
plumb_stack_code_of(uintptr_t address)
{
	for (int i = 0; i < TRIES; i++) {
		uint32_t now = atomic_load_explicit(&version, memory_order_acquire);
		const struct entry *list = lists[now & 1];
		uint32_t count = atomic_load_explicit(&counts[now & 1], memory_order_relaxed);
		uint32_t behind = plumb_search(
			k, count,
			atomic_load_explicit(&list[k].start, memory_order_relaxed) <= address);
		/* Of the last one that starts at or before it. */
		uint32_t index =
			behind ? atomic_load_explicit(&list[behind - 1].index, memory_order_relaxed)
			       : 0;
		atomic_thread_fence(memory_order_acquire);
		if (atomic_load_explicit(&version, memory_order_relaxed) != now)
			continue;
		if (!behind || address >= objects[index].object.end)
			return NULL;
		return &objects[index];
	}
	return NULL;
}

struct plumb_stack_object *
plumb_stack_object_of(uintptr_t address)
{
	struct plumb_stack_code *code = plumb_stack_code_of(address);
	return code ? &code->object : NULL;
}

uint32_t
plumb_stack_generation(void)
{
	return atomic_load_explicit(&generation, memory_order_relaxed);
}

/* glibc's own list, from 2.35 on: it may be asked in a handler, and takes no lock. */
struct loaded {
	unsigned long long flags;
	void *start, *end, *link_map, *eh_frame;
	unsigned long long reserved[16];
};
extern int
find_loaded(void *address, struct loaded *result) __asm__("_dl_find_object") __attribute__((weak));

bool
plumb_stack_is_loaded(uintptr_t address)
{
	struct loaded found;
	return !find_loaded || !find_loaded((void *)address, &found);
}

bool
plumb_stack_still_there(const struct plumb_stack_code *code, uintptr_t address)
{
	struct loaded found;
	if (atomic_load_explicit(&unloading, memory_order_acquire))
		return false;
	if (!find_loaded || code->stays)
		return true;
	return !find_loaded((void *)address, &found) &&
	       (uintptr_t)found.start <= code->object.start &&
	       code->object.start - (uintptr_t)found.start < PAGE;
}

/* ---- one object ---- */

/* A copy of TEXT, and of what comes before it, that stays; "" when there is no room. */
static const char *
keep_path(const char *before, const char *text)
{
	size_t first = strlen(before), bytes = strlen(text) + 1;
	char *at = paths + paths_used;
	if (first + bytes > PATHS - paths_used)
		return "";
	memcpy(at, before, first);
	memcpy(at + first, text, bytes);
	paths_used += first + bytes;
	return at;
}

/* The program itself has no name in the loader's list; others may have one that is relative. */
static const char *
path_of(const char *name)
{
	char path[4096];
	if (!name || !*name) {
		ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
		path[length > 0 ? length : 0] = '\0';
		return keep_path("", path);
	}
	if (name[0] == '/' || !strchr(name, '/') || syscall(SYS_getcwd, path, sizeof path - 1) <= 0)
		return keep_path("", name);
	strcat(path, "/");
	return keep_path(path, name);
}

/* Does the object's file name begin with one of NAMES (NULL-terminated)? */
static bool
is_called(const struct plumb_stack_object *object, const char *const *names)
{
	const char *slash = strrchr(object->path, '/');
	const char *base = slash ? slash + 1 : object->path;
	for (; *names; names++)
		if (!strncmp(base, *names, strlen(*names)))
			return true;
	return false;
}

/* Whether these frames are left out where they are innermost: they lead from the driver call to
 * us. */
static bool
is_internal(const struct plumb_stack_object *object)
{
	static const char *const names[] = { "libcuda.so", "libcupti.so", "libnvperf", NULL };
	uintptr_t own = (uintptr_t)&plumb_stack_refresh;
	return is_called(object, names) || (own >= object->start && own < object->end);
}

bool
plumb_stack_is_framework(uintptr_t address)
{
	static const char *const names[] = { "libtorch", "libc10", "libplumb", NULL };
	const struct plumb_stack_object *object = plumb_stack_object_of(address);
	return object && is_called(object, names);
}

/* The build id among the notes of a segment, and the one that Go's linker writes. */
static void
read_notes(struct plumb_stack_code *code, const uint8_t *notes, size_t bytes)
{
	struct plumb_stack_object *object = &code->object;
	while (bytes >= sizeof(ElfW(Nhdr))) {
		ElfW(Nhdr) note;
		memcpy(&note, notes, sizeof note);
		size_t name = ((size_t)note.n_namesz + 3) & ~(size_t)3;
		size_t all = sizeof note + name + (((size_t)note.n_descsz + 3) & ~(size_t)3);
		if (all > bytes)
			return;
		if (note.n_type == NOTE_GO && note.n_namesz == 4 &&
		    !memcmp(notes + sizeof note, "Go\0", 4))
			code->is_go = true;
		if (note.n_type == NOTE_BUILD_ID && note.n_namesz == 4 && !object->build_id_bytes &&
		    !memcmp(notes + sizeof note, "GNU", 4)) {
			object->build_id_bytes = note.n_descsz < sizeof object->build_id
			                                 ? note.n_descsz
			                                 : sizeof object->build_id;
			memcpy(object->build_id, notes + sizeof note + name,
			       object->build_id_bytes);
		}
		notes += all;
		bytes -= all;
	}
}

static const uint8_t *
mapped_at(const struct dl_phdr_info *info, const ElfW(Phdr) * header)
{
	return (const uint8_t *)(info->dlpi_addr + header->p_vaddr);
}

/* Where the object lies, and its readable segments. */
static unsigned
measure_object(const struct dl_phdr_info *info, struct plumb_eh_range *segments, uintptr_t *start,
               uintptr_t *end)
{
	unsigned count = 0;
	*start = UINTPTR_MAX;
	*end = 0;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];
		const uint8_t *low = mapped_at(info, header), *high = low + header->p_memsz;
		if (header->p_type != PT_LOAD || !header->p_memsz)
			continue;
		if ((uintptr_t)low < *start)
			*start = (uintptr_t)low;
		if ((uintptr_t)high > *end)
			*end = (uintptr_t)high;
		/* Beyond what the file holds there are no tables. */
		if (header->p_flags & PF_R && count < SEGMENTS)
			segments[count++] = (struct plumb_eh_range){ low, low + header->p_filesz };
	}
	return count;
}

/* The part of [AT, AT + BYTES) that lies in one of the segments. */
static size_t
clip_to_segment(const struct plumb_eh_range *segments, unsigned count, const uint8_t *at,
                size_t bytes)
{
	for (unsigned i = 0; i < count; i++)
		if (at >= segments[i].low && at < segments[i].high)
			return bytes < (size_t)(segments[i].high - at)
			               ? bytes
			               : (size_t)(segments[i].high - at);
	return 0;
}

static void
describe_object(struct plumb_stack_code *code, const struct dl_phdr_info *info)
{
	struct plumb_eh_range segments[SEGMENTS];
	struct plumb_stack_object *object = &code->object;
	unsigned count = measure_object(info, segments, &object->start, &object->end);
	object->bias = info->dlpi_addr;
	object->path = path_of(info->dlpi_name);
	code->headers = info->dlpi_phdr;
	code->stays = !info->dlpi_name || !strchr(info->dlpi_name, '/');
	code->internal = is_internal(object);
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];
		const uint8_t *at = mapped_at(info, header);
		size_t bytes = clip_to_segment(segments, count, at, header->p_memsz);
		if (header->p_type == PT_GNU_EH_FRAME && bytes)
			code->has_tables = plumb_eh_open(&code->image, at, bytes, segments, count);
		else if (header->p_type == PT_NOTE && bytes)
			read_notes(code, at, bytes);
	}
}

/* ---- the list ---- */

struct reading {
	uint32_t list, count; /* the list that is made */
	uint32_t matched;     /* objects of the published one that are still there */
	uint64_t loads, unloads;
};

/* The entry of the published list that starts at START; the list's length when there is none. */
static uint32_t
published_at(uintptr_t start)
{
	const struct entry *list = lists[version & 1];
	uint32_t count = counts[version & 1];
	uint32_t at = plumb_search(i, count, list[i].start < start);

	return at < count && list[at].start == start ? at : count;
}

/* The object that INFO is, known from before, or a new one; OBJECTS when there is no room. */
static uint32_t
object_for(struct reading *reading, const struct dl_phdr_info *info, uintptr_t start, uintptr_t end)
{
	uint32_t at = published_at(start), which = version & 1;
	if (at < counts[which]) {
		uint32_t index = lists[which][at].index;
		const struct plumb_stack_code *code = &objects[index];
		if (code->object.end == end && code->object.bias == info->dlpi_addr &&
		    code->headers == info->dlpi_phdr) {
			reading->matched++;
			return index;
		}
	}
	if (known == OBJECTS)
		return OBJECTS;
	describe_object(&objects[known], info);
	return known++;
}

static int
read_object(struct dl_phdr_info *info, size_t size, void *data)
{
	struct reading *reading = data;
	struct plumb_eh_range segments[SEGMENTS];
	uintptr_t start, end;
	(void)size;
	reading->loads = info->dlpi_adds;
	reading->unloads = info->dlpi_subs;
	if (!measure_object(info, segments, &start, &end) || start >= end ||
	    reading->count == OBJECTS)
		return 0;
	uint32_t index = object_for(reading, info, start, end);
	if (index == OBJECTS)
		return 0;
	/* The list is short and its order nearly the loader's reverse: insertion will do. */
	struct entry *list = lists[reading->list];
	uint32_t at = reading->count++;
	for (; at && list[at - 1].start > start; at--) {
		atomic_store_explicit(&list[at].start, list[at - 1].start, memory_order_relaxed);
		atomic_store_explicit(&list[at].index, list[at - 1].index, memory_order_relaxed);
	}
	atomic_store_explicit(&list[at].start, start, memory_order_relaxed);
	atomic_store_explicit(&list[at].index, index, memory_order_relaxed);
	return 0;
}

static int
read_counts(struct dl_phdr_info *info, size_t size, void *data)
{
	struct reading *reading = data;
	(void)size;
	reading->loads = info->dlpi_adds;
	reading->unloads = info->dlpi_subs;
	return 1;
}

/* Makes the other list and publishes it. */
static void
read_list(void)
{
	struct reading reading = { .list = ~version & 1 };
	uint32_t before = counts[version & 1];
	dl_iterate_phdr(read_object, &reading);
	seen_loads = reading.loads;
	seen_unloads = reading.unloads;
	atomic_store_explicit(&counts[reading.list], reading.count, memory_order_relaxed);
	atomic_fetch_add_explicit(&version, 1, memory_order_release);
	if (reading.matched != before)
		atomic_fetch_add_explicit(&generation, 1, memory_order_release);
}

/*
 * One thread at a time reads the list; others wait for it a moment, and go on without after 10 ms.
 * The word holds the process: in a child that was forked meanwhile nobody would ever finish.
 */
static bool
take_turn(void)
{
	const struct timespec pause = { 0, 100000 };
	uint32_t self = (uint32_t)syscall(SYS_getpid);
	for (int i = 0; i < WAITS; i++) {
		uint32_t now = 0;
		if (atomic_compare_exchange_strong(&owner, &now, self) ||
		    (now != self && atomic_compare_exchange_strong(&owner, &now, self)))
			return true;
		nanosleep(&pause, NULL);
	}
	return false;
}

void
plumb_stack_refresh(void)
{
	struct reading now = { 0 };
	int saved = errno;
	if (!atomic_load_explicit(&ready, memory_order_acquire))
		return;
	atomic_store_explicit(&plumb_stack_stale, false, memory_order_relaxed);
	dl_iterate_phdr(read_counts, &now);
	if ((now.loads != seen_loads || now.unloads != seen_unloads) && take_turn()) {
		read_list();
		atomic_store_explicit(&owner, 0, memory_order_release);
	}
	errno = saved;
}

void
plumb_stack_forked(void)
{
	forks++;
	atomic_store(&unloading, 0);
	atomic_store(&owner, 0);
	seen_loads = seen_unloads = 0; /* a list that was not finished is made again */
	for (uint32_t i = 0; i < known; i++)
		atomic_store_explicit(&objects[i].object.record, 0, memory_order_relaxed);
}

struct plumb_stack_code *
plumb_stack_code_now(uintptr_t address)
{
	struct plumb_stack_code *code = plumb_stack_code_of(address);
	if (code || !plumb_stack_is_loaded(address))
		return code;
	plumb_stack_refresh();
	return plumb_stack_code_of(address);
}

bool
plumb_stack_objects_begin(void)
{
	if (!take_turn())
		return false;
	if (!objects) {
		size_t list = sizeof(struct entry) * OBJECTS;
		char *memory = plumb_map(sizeof *objects * OBJECTS + 2 * list + PATHS, true);
		if (memory) {
			lists[0] = (void *)(memory + sizeof *objects * OBJECTS);
			lists[1] = lists[0] + OBJECTS;
			paths = (char *)(lists[1] + OBJECTS);
			objects = (void *)memory;
			read_list();
			atomic_store_explicit(&ready, true, memory_order_release);
		}
	}
	atomic_store_explicit(&owner, 0, memory_order_release);
	return objects && counts[version & 1];
}

/* ---- unloading ---- */

/* A sanitizer's runtime looks symbols up before its own memory is there. */
PLUMB_EXPORT __attribute__((no_sanitize("address", "undefined"))) int
dlclose(void *handle)
{
	static int (*_Atomic real)(void *);
	int (*found)(void *) = atomic_load_explicit(&real, memory_order_relaxed);
	if (!found) {
		*(void **)&found = plumb_real_dlsym(RTLD_NEXT, "dlclose");
		atomic_store_explicit(&real, found, memory_order_relaxed);
	}
	if (plumb_likely(!atomic_load_explicit(&ready, memory_order_acquire)))
		return found(handle);
	atomic_fetch_add(&unloading, 1);
	uint32_t before = forks;
	int result = found(handle);
	plumb_stack_refresh();
	if (plumb_likely(forks == before)) /* else a library's own end forked */
		atomic_fetch_sub(&unloading, 1);
	return result;
}
