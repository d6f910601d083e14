/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Another profiler plugin of NCCL, of -DVERSION=N alone. It writes a line for each call into the
 * file $OTHER_LOG, with what it can read there. A parent that is not one of its own handles is "?".
 * $OTHER_MASK is what it asks for.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#define OTHER __attribute__((visibility("default")))
#define HANDLES 4096

static char contexts[16];
static int context_count;
static char handles[HANDLES];
static int handle_count;

static void
put(const char *format, ...)
{
	__builtin_va_list list;
	const char *path = getenv("OTHER_LOG");
	FILE *file = path ? fopen(path, "a") : NULL;
	if (!file)
		return;
	__builtin_va_start(list, format);
	vfprintf(file, format, list);
	__builtin_va_end(list);
	fputc('\n', file);
	fclose(file);
}

static const char *
name_of(const void *handle, char *text)
{
	if (!handle)
		return "none";
	if ((const char *)handle < handles || (const char *)handle >= handles + HANDLES)
		return "?";
	sprintf(text, "h%d", (int)((const char *)handle - handles));
	return text;
}

static int
asked(void)
{
	const char *mask = getenv("OTHER_MASK");
	return mask ? atoi(mask) : 2;
}

static void *
handle_new(void)
{
	return &handles[handle_count++ % HANDLES];
}

#if VERSION == 3
typedef struct {
	uint8_t type;
	void *parent;
	int rank;
	const char *name;
	uint64_t hash;
	uint64_t sequence;
	const char *func;
	const void *from;
	void *to;
	size_t count;
} event;
static const char *
func_of(const event *e)
{
	return e->type == 2 ? e->func : e->type == 4 ? (const char *)(uintptr_t)e->sequence : "-";
}
#elif VERSION == 4
typedef struct {
	uint8_t type;
	void *parent;
	int rank;
	uint64_t sequence;
	const char *func;
	const void *from;
	void *to;
	size_t count;
} event;
#else
typedef struct {
	uint64_t type;
	void *parent;
	int rank;
	uint64_t sequence;
	const char *func;
	const void *from;
	void *to;
	size_t count;
} event;
#endif
#if VERSION != 3
/* The first word of all but a COLLECTIVE is the function. */
static const char *
func_of(const event *e)
{
	uint64_t type = e->type;
	bool first = type == 4 || type == 512 || type == 1024;
	return type == 2 ? e->func : first ? (const char *)(uintptr_t)e->sequence : "-";
}
#endif

static int
start(void *context, void **handle, event *e)
{
	char text[2][32];
	*handle = handle_new();
	put("start c%d %s type %d parent %s func %s count %zu", (int)((char *)context - contexts),
	    name_of(*handle, text[0]), (int)e->type, name_of(e->parent, text[1]), func_of(e),
	    e->type == 2 ? e->count : 0);
	return 0;
}

static int
stop(void *handle)
{
	char text[32];
	put("stop %s", name_of(handle, text));
	return 0;
}

static int
state(void *handle, int what, void *arguments)
{
	char text[32];
	put("state %s %d %zu", name_of(handle, text), what, arguments ? *(size_t *)arguments : 0);
	return 0;
}

static int
finalize(void *context)
{
	put("finalize c%d", (int)((char *)context - contexts));
	return 0;
}

static int
begin(void **context, int *mask)
{
	*context = &contexts[context_count++ % 16];
	*mask = asked();
	return 0;
}

#if VERSION == 3
static int
init(void **context, int *mask)
{
	begin(context, mask);
	put("init c%d", (int)((char *)*context - contexts));
	return 0;
}
#elif VERSION == 4
static int
init(void **context, int *mask, const char *name, uint64_t id, int nodes, int ranks, int rank,
     void *log)
{
	(void)log;
	(void)nodes;
	begin(context, mask);
	put("init c%d %s %llx %d/%d", (int)((char *)*context - contexts), name ? name : "-",
	    (unsigned long long)id, rank, ranks);
	return 0;
}
#else
static int
init(void **context, uint64_t id, int *mask, const char *name, int nodes, int ranks, int rank,
     void *log)
{
	(void)log;
	(void)nodes;
	begin(context, mask);
	put("init c%d %s %llx %d/%d", (int)((char *)*context - contexts), name ? name : "-",
	    (unsigned long long)id, rank, ranks);
	return 0;
}
#endif

struct table {
	const char *name;
	void *functions[5];
};
#define NAME2(n) ncclProfiler_v##n
#define NAME(n) NAME2(n)
OTHER struct table NAME(VERSION) = {
	"other", { (void *)init, (void *)start, (void *)stop, (void *)state, (void *)finalize }
};
