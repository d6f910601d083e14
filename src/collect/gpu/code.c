/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/gpu/code.h"

#include <pthread.h>
#include <string.h>

#include "region/code.h"

#define MODULES 8192u /* of a process; a power of two */
#define WAITING 64u

/* What was loaded, by hash; guarded by the lock, which is held over no call of the program's or of
 * a vendor's. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t known[MODULES];
static uint32_t known_count;

struct module {
	uint64_t hash, bytes;
	enum plumb_fate fate;
};
static struct module waiting[WAITING]; /* for their record */
static uint32_t waiting_count;

/* True: HASH was not there, and is now. */
static bool
remember(uint64_t hash)
{
	bool fresh = false;
	pthread_mutex_lock(&lock);
	if (known_count < MODULES / 2) {
		uint32_t at = (uint32_t)hash & (MODULES - 1);
		while (known[at] && known[at] != hash)
			at = (at + 1) & (MODULES - 1);
		fresh = !known[at];
		known[at] = hash;
		known_count += fresh;
	}
	pthread_mutex_unlock(&lock);
	return fresh;
}

static enum plumb_fate
write_file(const void *image, size_t size, uint64_t hash)
{
	const char *folder = plumb_collector_options()->folder;
	struct plumb_region *region = plumb_region_of_process();
	bool made = false;
	if (!folder[0] || !region || !region->header)
		return PLUMB_FATE_CODE_NOT_WRITTEN;
	if (plumb_code_has(folder, hash))
		return PLUMB_FATE_ATTRIBUTED;
	if (size > PLUMB_CODE_MOST || !plumb_region_take_beside(region, size))
		return PLUMB_FATE_REGION_FULL;
	enum plumb_fate fate = plumb_code_write(folder, hash, image, size, &made);
	if (!made)
		plumb_region_give_beside(region, size);
	return fate;
}

static void
write_record(struct plumb_thread *thread, const struct module *module)
{
	struct plumb_arena *arena = plumb_thread_arena(thread);
	struct plumb_record_gpu_code *record =
		plumb_arena_append(arena, PLUMB_RECORD_GPU_CODE, sizeof *record);
	enum plumb_fate fate = record ? module->fate : arena->fate;
	if (record) {
		record->id = record->hash = module->hash;
		record->bytes = module->bytes;
		record->fate = module->fate;
		plumb_arena_commit(arena, record);
	}
	plumb_count(thread, PLUMB_SOURCE_CODE, PLUMB_FATE_RECEIVED, 1);
	plumb_count(thread, PLUMB_SOURCE_CODE, fate, 1);
}

static void
wait_for_record(const struct module *module)
{
	pthread_mutex_lock(&lock);
	if (waiting_count < WAITING)
		waiting[waiting_count++] = *module;
	pthread_mutex_unlock(&lock);
}

uint64_t
plumb_code_keep(const void *image, size_t size)
{
	struct module module = { .hash = plumb_code_hash(image, size), .bytes = size };
	if (!plumb_recording() || !remember(module.hash))
		return module.hash;
	module.fate = write_file(image, size, module.hash);
	struct plumb_thread *thread = plumb_enter_paused(PLUMB_CALLBACK_GPU);
	if (thread) {
		write_record(thread, &module);
		plumb_leave(thread);
	} else {
		wait_for_record(&module);
	}
	return module.hash;
}

void
plumb_code_tell(struct plumb_thread *thread)
{
	struct module module;
	for (;;) {
		pthread_mutex_lock(&lock);
		bool any = waiting_count;
		if (any)
			module = waiting[--waiting_count];
		pthread_mutex_unlock(&lock);
		if (!any)
			return;
		write_record(thread, &module);
	}
}

void
plumb_code_renew(void)
{
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	if (known_count) /* else its pages were never touched */
		memset(known, 0, sizeof known);
	known_count = waiting_count = 0;
}
