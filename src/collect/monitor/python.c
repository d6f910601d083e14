/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interpreter's symbols are found in the process, its layout is found and proved once, and then
 * plain loads follow the thread state's frames. Nothing is allocated and no interpreter lock is
 * needed: a thread that is in our callback cannot change its frames meanwhile.
 *
 * One thing could: Py_FinalizeEx frees daemon threads' frames. So nothing is read once it has
 * begun, which is looked at again every few frames of a long walk. A thread that loses the
 * processor in the middle of a walk at just that time may still read freed memory: wrong frames, or
 * a fault.
 *
 * Only the frames of the thread's own first interpreter are seen, not those of subinterpreters.
 */
#include "collect/monitor/python.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/utf8.h"
#include "collect/collector.h"
#include "collect/monitor/python_frame.h"
#include "collect/monitor/python_layout.h"

enum {
	FRAMES_BETWEEN_CHECKS = 64, /* of Py_IsFinalizing */
	/* Interpreter-internal frames that may lie between two of the program's, with a margin: a C
	 * stack's, a class call's clean-up and an unfinished one. */
	HOPS_PER_FRAME = 4,
	FRAMES_ON_ONE_STACK = 16384, /* Python frames that one evaluation may run */
};

enum state {
	UNKNOWN,
	BUSY, /* a thread is attaching */
	READY,
	REFUSED,
};

PLUMB_HOT static _Atomic int state;

/* Written while BUSY, read when READY or REFUSED. */
static struct plumb_python_layout layout;
static struct plumb_python_api api;
static struct plumb_python_release release;
static struct plumb_error refusal;
static bool released;     /* `release` is filled */
static void *interpreter; /* the handle that finds its symbols */
PLUMB_HOT static void *(*thread_state)(void);
PLUMB_HOT static int (*finalising)(void);
static int (*_Atomic initialised)(void); /* Py_IsInitialized; NULL: not found, or no Python */
PLUMB_HOT struct plumb_python_path plumb_python_path;
static const void *evaluate; /* _PyEval_EvalFrameDefault; NULL unknown */

/* ---- code objects that go ---- */

/*
 * exec() in a loop makes a code object, and its file name and line table, at the very addresses
 * where the last ones were freed: nothing in them tells the two apart but their text. So we stand
 * before the destructor of code objects and count, by address, what is freed. A count stands for
 * many addresses; that one of them is freed makes the others be looked at again, and no more.
 */
enum { FREED_COUNTS = 4096 };
static _Atomic uint32_t freed[FREED_COUNTS];
static void (*code_free)(void *code);
PLUMB_HOT _Atomic uint32_t plumb_python_codes_freed;

static inline _Atomic uint32_t *
freed_at(const void *code)
{
	return &freed[((uint64_t)(uintptr_t)code * 0x9e3779b97f4a7c15u) >> 52];
}

static void
count_and_free(void *code)
{
	atomic_fetch_add_explicit(freed_at(code), 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&plumb_python_codes_freed, 1, memory_order_relaxed);
	code_free(code);
}

/* Puts count_and_free into the type's slot, when it looks as it has since Python 2. */
static void
watch_code(void)
{
	size_t name = layout.type + 16u, destructor = layout.type + 40u;
	char *type = (char *)(uintptr_t)api.code_type;
	Dl_info of_type, of_free;
	const char *text = plumb_python_pointer(type, name);
	const void *now = plumb_python_pointer(type, destructor);

	if (!text || strcmp(text, "code") || !now || !dladdr(type, &of_type) ||
	    !dladdr(now, &of_free) || of_type.dli_fbase != of_free.dli_fbase)
		return;
	*(const void **)&code_free = now;
	atomic_store_explicit(&plumb_python_codes_freed, 1, memory_order_relaxed);
	atomic_store_explicit((void *_Atomic *)(type + destructor), (void *)count_and_free,
	                      memory_order_release);
}

/* ---- attaching ---- */

static void
find_initialised(void *handle)
{
	int (*found)(void);

	*(void **)&found = plumb_real_dlsym(handle, "Py_IsInitialized");
	atomic_store_explicit(&initialised, found, memory_order_release);
}

void
plumb_python_look(void)
{
	if (!atomic_load_explicit(&initialised, memory_order_relaxed))
		find_initialised(RTLD_DEFAULT);
}

bool
plumb_python_runs(void)
{
	int (*asked)(void) = atomic_load_explicit(&initialised, memory_order_acquire);

	/* It only reads a variable of the interpreter. */
	return asked ? asked() != 0 : atomic_load_explicit(&state, memory_order_acquire) >= READY;
}

/* The handle that finds the interpreter's symbols: the program's own ones, or those of a libpython
 * that was loaded privately. False: no Python here. */
static bool
find_handle(void **handle)
{
	char path[PATH_MAX];

	*handle = RTLD_DEFAULT;
	if (plumb_real_dlsym(RTLD_DEFAULT, "Py_GetVersion"))
		return true;
	if (!plumb_find_library("libpython3", path, sizeof path))
		return false;
	/* Kept: the library must not go away while its functions are called. */
	*handle = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
	if (!*handle)
		return false;
	if (plumb_real_dlsym(*handle, "Py_GetVersion"))
		return true;
	dlclose(*handle);
	return false;
}

static int
find_release(void *handle, struct plumb_error *error)
{
	const char *(*version)(void);
	const char *text;

	*(void **)&version = plumb_real_dlsym(handle, "Py_GetVersion");
	text = version();
	if (!plumb_python_release_parse(text, &release))
		return plumb_fail(
			error, PLUMB_ESYSTEM,
			"this Python's version \"%.40s\" is not known; use a release of CPython "
			"to see Python lines",
			text ? text : "");
	released = true;
	return 0;
}

static int
find_symbols(void *handle, struct plumb_error *error)
{
	const struct {
		const char *name;
		void **to;
	} symbols[] = {
		{ "PyGILState_GetThisThreadState", (void **)&thread_state },
		{ "PyCode_Addr2Line", (void **)&api.line },
		{ "PyCode_Type", (void **)&api.code_type },
		{ "PyUnicode_Type", (void **)&api.unicode_type },
		{ "PyBytes_Type", (void **)&api.bytes_type },
		{ release.minor >= 13 ? "Py_IsFinalizing" : "_Py_IsFinalizing",
		  (void **)&finalising },
	};

	for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
		*symbols[i].to = plumb_real_dlsym(handle, symbols[i].name);
		if (!*symbols[i].to)
			return plumb_fail(
				error, PLUMB_ESYSTEM,
				"CPython %s does not export %s; use a build that exports its "
				"symbols to see Python lines",
				release.text, symbols[i].name);
	}
	return 0;
}

static void
prepare_path(void)
{
	plumb_python_path = (struct plumb_python_path){
		.previous = layout.previous,
		.code = layout.code,
		.instruction = layout.instruction,
		.owner = layout.owner,
		.first_instruction = layout.first_instruction,
		.traceable = layout.traceable,
		.type = layout.type,
		.tag = layout.tag,
		.scale = layout.lasti_scale,
		.code_type = api.code_type,
		.interpreter_frames = layout.first_instruction != PLUMB_PYTHON_ABSENT,
	};
}

/* As plumb_python_attach; only one thread is in here. */
static int
attach_python(struct plumb_error *error)
{
	static bool found; /* all but the proof is done */
	const void *ts;
	void *handle;
	int rc;

	if (!found) {
		if (!find_handle(&handle))
			return 1;
		find_initialised(handle);
		rc = find_release(handle, error);
		if (rc < 0)
			return rc;
		rc = plumb_python_layout_find(&release, plumb_real_dlsym(handle, "_PyRuntime"),
		                              &layout, error);
		if (rc < 0)
			return rc;
		rc = find_symbols(handle, error);
		if (rc < 0)
			return rc;
		plumb_python_signal_prepare(handle);
		interpreter = handle;
		evaluate = plumb_real_dlsym(handle, "_PyEval_EvalFrameDefault");
		found = true;
	}
	ts = finalising() ? NULL : thread_state();
	rc = ts ? plumb_python_layout_prove(&layout, &api, ts, error) : 1;
	if (rc == 0) {
		char *(*bytes_at)(void *);
		*(void **)&bytes_at = plumb_real_dlsym(interpreter, "PyBytes_AsString");
		plumb_python_layout_widen(&layout, ts, (uint64_t)pthread_self(), bytes_at);
		prepare_path();
		watch_code();
		plumb_python_watch_tasks(release.minor);
	}
	return rc;
}

int
plumb_python_attach(struct plumb_error *error)
{
	int now = atomic_load_explicit(&state, memory_order_acquire);
	int saved = errno;
	int rc;

	if (plumb_likely(now == READY))
		return 0;
	if (now == UNKNOWN && atomic_compare_exchange_strong(&state, &now, BUSY)) {
		rc = attach_python(&refusal);
		now = rc == 0 ? READY : rc > 0 ? UNKNOWN : REFUSED;
		atomic_store_explicit(&state, now, memory_order_release);
	}
	errno = saved;
	if (now == REFUSED) {
		if (error)
			*error = refusal;
		return refusal.code;
	}
	return now == READY ? 0 : 1;
}

void
plumb_python_forked(void)
{
	int busy = BUSY;

	atomic_compare_exchange_strong(&state, &busy, UNKNOWN);
}

bool
plumb_python_ready(void)
{
	return atomic_load_explicit(&state, memory_order_acquire) == READY;
}

const struct plumb_python_layout *
plumb_python_layout_found(void)
{
	return &layout;
}

void *
plumb_python_symbol(const char *name)
{
	return plumb_real_dlsym(interpreter, name);
}

int
plumb_python_minor(void)
{
	return release.minor;
}

bool
plumb_python_publish(struct plumb_region_python *to)
{
	const struct plumb_python_layout *l = &layout;
	uint32_t none = 0;

	if (!plumb_python_ready() || l->thread_id == PLUMB_PYTHON_ABSENT ||
	    l->bytes_data == PLUMB_PYTHON_ABSENT)
		return false;
	if (!atomic_compare_exchange_strong(&to->state, &none, 1))
		return true;
	to->minor = (uint16_t)release.minor;
	to->thread_id = l->thread_id;
	to->entry = l->entry;
	to->indirect = l->indirect;
	to->previous = l->previous;
	to->code = l->code;
	to->instruction = l->instruction;
	to->owner = l->owner;
	to->owner_internal = PLUMB_PYTHON_OWNER_INTERNAL;
	to->owner_generator = PLUMB_PYTHON_OWNER_GENERATOR;
	to->tag = l->tag;
	to->lasti_scale = l->lasti_scale;
	to->first_instruction = l->first_instruction;
	to->traceable = l->traceable;
	to->file = l->file;
	to->name = l->qualified_name != PLUMB_PYTHON_ABSENT ? l->qualified_name : l->name;
	to->lines = l->lines;
	to->first_line = l->first_line;
	to->type = l->type;
	to->flags = l->flags;
	to->length = l->length;
	to->text_state = l->state;
	to->ascii_data = l->ascii_data;
	to->wide_data = l->wide_data;
	to->bytes_data = l->bytes_data;
	to->code_type = (uintptr_t)api.code_type;
	to->unicode_type = (uintptr_t)api.unicode_type;
	to->bytes_type = (uintptr_t)api.bytes_type;
	to->codes_freed = (uintptr_t)&plumb_python_codes_freed;
	atomic_store_explicit(&to->state, PLUMB_REGION_PYTHON_READY, memory_order_release);
	return true;
}

const char *
plumb_python_version(void)
{
	int now = atomic_load_explicit(&state, memory_order_acquire);

	return (now == READY || now == REFUSED) && released ? release.text : NULL;
}

/* ---- walking ---- */

const char *
plumb_python_state(int *minor)
{
	if (!plumb_python_ready() || finalising())
		return NULL;
	*minor = release.minor;
	return thread_state();
}

PLUMB_HOT_CODE const void *
plumb_python_top(void)
{
	const char *ts, *top;

	if (plumb_unlikely(!plumb_python_ready()) || plumb_unlikely(finalising()))
		return NULL;
	ts = thread_state();
	if (plumb_unlikely(!ts))
		return NULL;
	top = plumb_python_pointer(ts, layout.entry);
	if (layout.indirect != PLUMB_PYTHON_ABSENT && top)
		top = plumb_python_pointer(top, layout.indirect);
	return top;
}

static inline bool
look_at_frame(const struct plumb_python_path *path, const char *frame,
              struct plumb_python_frame *into)
{
	return plumb_python_read(path, frame, into) && plumb_python_is_traced(path, into);
}

/* How many frames of any kind may be met on the way to COUNT of the program's. */
static inline size_t
hops_for(size_t count)
{
	return count < SIZE_MAX / HOPS_PER_FRAME - 64 ? (count + 16) * HOPS_PER_FRAME : SIZE_MAX;
}

/* Whether a walk must end before its HOPth frame. */
static inline bool
is_over(size_t hop, size_t limit)
{
	return hop >= limit ||
	       (hop % FRAMES_BETWEEN_CHECKS == FRAMES_BETWEEN_CHECKS - 1 && finalising());
}

size_t
plumb_python_walk(const void *top, const void *stop, struct plumb_python_frame *frames, size_t max,
                  bool *truncated)
{
	const struct plumb_python_path path = plumb_python_path;
	struct plumb_python_frame beyond;
	const char *frame = top;
	size_t limit = hops_for(max), count = 0;

	*truncated = false;
	if (!plumb_python_ready())
		return 0;
	for (size_t hop = 0; frame && frame != stop; hop++) {
		if (plumb_unlikely(is_over(hop, limit)))
			break;
		if (plumb_likely(count < max))
			count += look_at_frame(&path, frame, &frames[count]);
		else if (look_at_frame(&path, frame, &beyond))
			break;
		frame = plumb_python_pointer(frame, path.previous);
	}
	*truncated = frame && frame != stop;
	return count;
}

size_t
plumb_python_chain(const void *top, const void *stop, const void **chain, size_t max,
                   bool *truncated)
{
	const size_t previous = plumb_python_path.previous;
	const char *frame = top;
	size_t count = 0;

	*truncated = false;
	if (!plumb_python_ready())
		return 0;
	for (; frame && frame != stop; frame = plumb_python_pointer(frame, previous)) {
		if (plumb_unlikely(is_over(count, max)))
			break;
		chain[count++] = frame;
	}
	*truncated = frame && frame != stop;
	return count;
}

/* A ring of frames, which only a stale one can lead into, ends too. */
#define REACH_MAX ((size_t)1 << 20)

bool
plumb_python_reaches(const void *top, const void *stop)
{
	const char *frame = top;

	for (size_t hop = 0; frame && frame != stop && !is_over(hop, REACH_MAX); hop++)
		frame = plumb_python_pointer(frame, layout.previous);
	return frame == stop;
}

bool
plumb_python_walkable(const void *top, const void *stop)
{
	return plumb_python_layout_walkable(&layout, &api, top, stop);
}

/* From 3.12 on an evaluation begins with a frame of its own, which lies on the C stack. */
static uintptr_t
entry_frame(const void *top, uintptr_t low, uintptr_t high)
{
	const char *frame = top;

	for (size_t hop = 0; frame && !is_over(hop, hops_for(FRAMES_ON_ONE_STACK)); hop++) {
		if ((unsigned char)frame[layout.owner] >= PLUMB_PYTHON_OWNER_INTERNAL &&
		    (uintptr_t)frame >= low && (uintptr_t)frame < high)
			return (uintptr_t)frame;
		frame = plumb_python_pointer(frame, layout.previous);
	}
	return 0;
}

uintptr_t
plumb_python_stack(const void *top, uintptr_t low, uintptr_t high, const void **function)
{
	uintptr_t address = 0;
	const char *ts;

	*function = NULL;
	if (!plumb_python_ready() || finalising() || !(ts = thread_state()))
		return 0;
	if (layout.stack != PLUMB_PYTHON_ABSENT)
		address = (uintptr_t)plumb_python_pointer(ts, layout.stack);
	else if (layout.first_instruction != PLUMB_PYTHON_ABSENT)
		address = entry_frame(top, low, high);
	else if (top)
		*function = evaluate;
	return address >= low && address < high ? address : 0;
}

void
plumb_python_identify(const void *code, struct plumb_python_identity *identity)
{
	identity->file = plumb_python_pointer(code, layout.file);
	identity->name = plumb_python_pointer(code, layout.name);
	identity->lines = plumb_python_pointer(code, layout.lines);
	identity->first_line = plumb_python_int(code, layout.first_line);
	identity->freed = atomic_load_explicit(freed_at(code), memory_order_relaxed);
}

/* ---- text ---- */

static uint32_t
character_at(const char *data, int kind, size_t index)
{
	uint16_t two;
	uint32_t four;

	switch (kind) {
	case 1:
		return (unsigned char)data[index];
	case 2:
		memcpy(&two, data + index * 2, sizeof two);
		return two;
	default:
		memcpy(&four, data + index * 4, sizeof four);
		return four;
	}
}

/* Where a str keeps its characters, or NULL for what is no str or an unfinished one. */
static const char *
text_data(const char *text, int *kind)
{
	int32_t bits;

	if (!text || !plumb_python_is_text(&layout, api.unicode_type,
	                                   plumb_python_pointer(text, layout.type)))
		return NULL;
	bits = plumb_python_int(text, layout.state);
	*kind = bits >> PLUMB_PYTHON_TEXT_KIND_SHIFT & PLUMB_PYTHON_TEXT_KIND_MASK;
	if (*kind != 1 && *kind != 2 && *kind != 4)
		return NULL;
	if (!(bits & PLUMB_PYTHON_TEXT_COMPACT)) /* an object of a class made from str */
		return plumb_python_pointer(text, layout.wide_data);
	return text + (bits & PLUMB_PYTHON_TEXT_ASCII ? layout.ascii_data : layout.wide_data);
}

size_t
plumb_python_text(const void *text, char *out, size_t size)
{
	int kind;
	const char *data = text_data(text, &kind);
	int64_t length = data ? plumb_python_size(text, layout.length) : 0;
	size_t used = 0;

	if (!data)
		return (size_t)snprintf(out, size, "<unknown>");
	for (int64_t i = 0; i < length; i++) {
		char bytes[4];
		size_t n = plumb_utf8_put(character_at(data, kind, (size_t)i), bytes);
		if (n > size - 1 - used)
			break;
		memcpy(out + used, bytes, n);
		used += n;
	}
	out[used] = '\0';
	return used;
}

/* How many bytes of instructions CODE has. */
static int64_t
instruction_bytes(const char *code)
{
	size_t size =
		layout.type + 8u; /* the head of a variable-sized object: how many units follow */

	if (layout.bytecode == PLUMB_PYTHON_ABSENT)
		return 2 * plumb_python_size(code, size);
	return plumb_python_size(plumb_python_pointer(code, layout.bytecode), size);
}

void
plumb_python_symbolise(const struct plumb_python_frame *frame, struct plumb_python_symbol *symbol)
{
	const char *code = frame->code;
	uint16_t name = layout.qualified_name;
	int line = -1;

	if (name == PLUMB_PYTHON_ABSENT)
		name = layout.name;
	plumb_python_text(plumb_python_pointer(code, layout.file), symbol->file,
	                  sizeof symbol->file);
	plumb_python_text(plumb_python_pointer(code, name), symbol->function,
	                  sizeof symbol->function);
	/* Beyond the code, Addr2Line could look beyond its own tables. */
	if (frame->lasti < instruction_bytes(code))
		line = api.line(code, frame->lasti);
	symbol->line = line > 0 ? (uint32_t)line : 0;
}
