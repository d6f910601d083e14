/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVTX: ranges and marks that programs and libraries set (nvtx.py, torch.cuda.nvtx, XLA, …). NVTX
 * is compiled into each library that uses it; at its first call each loads NVTX_INJECTION64_PATH
 * and calls InitializeInjectionNvtx2, which writes functions into that library's table.
 *
 * NVTX has one slot. A tool that was there before plumb is loaded and initialised first, and each
 * call goes on to its function. Handles and ids are then the other tool's, so that calls that plumb
 * does not take (categories, resources, extensions) go to it as they are.
 */
#include "collect/monitor/nvtx.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "collect/range.h"
#include "collect/table.h"

#define INJECTION "NVTX_INJECTION64_PATH"

/* ---- NVTX's interface, version 2 and 3 ---- */

typedef void (*function)(void);
typedef const void *(*get_export_table)(uint32_t table);
enum { TABLE_CALLBACKS = 1 };
struct export_callbacks {
	size_t size;
	int (*module_table)(int module, function ***table, unsigned *last);
};
enum { CORE = 1, CORE2 = 5 };

enum { MESSAGE_ASCII = 1, MESSAGE_WIDE = 2, MESSAGE_REGISTERED = 3 };
enum {
	PAYLOAD_UINT64 = 1,
	PAYLOAD_INT64 = 2,
	PAYLOAD_DOUBLE = 3,
	PAYLOAD_UINT32 = 4,
	PAYLOAD_INT32 = 5,
	PAYLOAD_FLOAT = 6,
};
struct attributes {
	uint16_t version, size;
	uint32_t category;
	int32_t color_type;
	uint32_t color;
	int32_t payload_type;
	int32_t reserved;
	union {
		uint64_t uint64;
		int64_t int64;
		double real64;
		uint32_t uint32;
		int32_t int32;
		float real32;
	} payload;
	int32_t message_type;
	union {
		const char *ascii;
		const wchar_t *wide;
		const void *registered;
	} message;
};
_Static_assert(sizeof(struct attributes) == 48, "nvtxEventAttributes_t");

/* ---- the functions of the tool that was there before ---- */

#define FUNCTIONS 24
static function _Atomic next_core[FUNCTIONS], next_core2[FUNCTIONS];

/* The other tool's function of a module, with TYPE's prototype, or NULL. */
#define NEXT(module, id, type)                                                                     \
	((type)atomic_load_explicit(&next_##module[id], memory_order_relaxed))

/* ---- domains and registered strings ---- */

/*
 * Texts that stay: each is kept once, in memory that is reserved and never given back. Nothing here
 * is locked, as any thread may be the first to register something.
 */
#define POOL_BYTES ((size_t)64 << 20)
/* Domains lie below this, strings above: so a handle's address tells its kind. */
#define POOL_STRINGS ((size_t)8 << 20)
#define TEXTS 65536u /* a power of two */
#define PROBES 256u
#define DOMAIN_MAGIC 0x4e56444du
#define STRING_MAGIC 0x4e565352u
PLUMB_HOT static char *pool;
static _Atomic size_t domains_used, strings_used = POOL_STRINGS;
static _Atomic(struct plumb_range_domain *) *texts;

/* Handles of the other tool → our texts. */
#define HANDLES 65536u
static struct handle {
	_Atomic uintptr_t key; /* 0 free */
	_Atomic(const struct plumb_range_domain *) ours;
} *handles;

static void
make_tables(void)
{
	char *reserved = plumb_map(POOL_BYTES, true);
	texts = plumb_map(TEXTS * sizeof *texts, true);
	handles = plumb_map(HANDLES * sizeof *handles, true);
	if (texts && handles)
		pool = reserved;
}

static struct plumb_range_domain *
text_new(uint32_t magic, const char *text, size_t bytes)
{
	size_t size = (sizeof(struct plumb_range_domain) + bytes + 1 + 15) & ~(size_t)15;
	bool is_string = magic == STRING_MAGIC;
	_Atomic size_t *used = is_string ? &strings_used : &domains_used;
	size_t at = atomic_fetch_add_explicit(used, size, memory_order_relaxed);
	if (at > (is_string ? POOL_BYTES : POOL_STRINGS) - size) {
		atomic_fetch_sub_explicit(used, size, memory_order_relaxed);
		return NULL;
	}
	struct plumb_range_domain *made = (void *)(pool + at);
	memcpy(made->text, text, bytes);
	made->bytes = (uint32_t)bytes;
	made->magic = magic;
	return made;
}

/* The one copy of a text; NULL: there is no room for it. */
static const struct plumb_range_domain *
text_keep(uint32_t magic, const char *text, size_t bytes)
{
	uint32_t hash = plumb_hash_text(text, bytes) ^ magic;
	for (uint32_t i = 0; i < PROBES; i++) {
		_Atomic(struct plumb_range_domain *) *slot = &texts[(hash + i) % TEXTS];
		struct plumb_range_domain *there = atomic_load_explicit(slot, memory_order_acquire);
		if (!there) {
			struct plumb_range_domain *made = text_new(magic, text, bytes);
			if (!made || atomic_compare_exchange_strong(slot, &there, made))
				return made;
		}
		if (there->magic == magic && there->bytes == bytes &&
		    !memcmp(there->text, text, bytes))
			return there;
	}
	return NULL;
}

/* Is HANDLE one that we gave out, of the kind MAGIC? Its memory is not read, which costs a cache
 * line. */
static inline const struct plumb_range_domain *
text_own(uint32_t magic, const void *handle)
{
	uintptr_t offset = (uintptr_t)handle - (uintptr_t)pool;
	return pool && offset < POOL_BYTES && !(offset & 15) &&
	                       (offset >= POOL_STRINGS) == (magic == STRING_MAGIC)
	               ? handle
	               : NULL;
}

/* A tool may number domains and strings alike, so the key says what it is of. */
static uintptr_t
handle_key(uint32_t magic, const void *theirs)
{
	return (uintptr_t)theirs << 1 | (magic == STRING_MAGIC);
}

static struct handle *
handle_at(uintptr_t key, uint32_t i)
{
	return &handles[((key * 0x9e3779b97f4a7c15u >> 40) + i) % HANDLES];
}

/* The program gets THEIRS for OURS; the newest holds where the tool uses a handle again. */
static void
handle_put(const void *theirs, const struct plumb_range_domain *ours)
{
	uintptr_t key = handle_key(ours->magic, theirs);
	for (uint32_t i = 0; i < PROBES; i++) {
		struct handle *handle = handle_at(key, i);
		uintptr_t there = 0;
		if (atomic_compare_exchange_strong(&handle->key, &there, key) || there == key) {
			atomic_store_explicit(&handle->ours, ours, memory_order_release);
			return;
		}
	}
}

/* The text behind a handle of a domain or a string; NULL: none is known. */
static const struct plumb_range_domain *
text_of(uint32_t magic, const void *handle)
{
	if (!handle)
		return NULL;
	const struct plumb_range_domain *text = text_own(magic, handle);
	uintptr_t key = handle_key(magic, handle);
	for (uint32_t i = 0; !text && i < PROBES; i++) {
		struct handle *at = handle_at(key, i);
		uintptr_t there = atomic_load_explicit(&at->key, memory_order_relaxed);
		if (there == key)
			return atomic_load_explicit(&at->ours, memory_order_acquire);
		if (!there)
			break;
	}
	return text;
}

static const struct plumb_range_domain *
domain_of(const void *handle)
{
	return text_of(DOMAIN_MAGIC, handle);
}

/* A domain's handle as the other tool has to see it: none where it gave none. */
static const void *
domain_theirs(const void *handle)
{
	return text_own(DOMAIN_MAGIC, handle) ? NULL : handle;
}

/* ---- messages and payloads ---- */

#define TEXT_BYTES PLUMB_RANGE_NAME_MAX

/* WIDE (UTF-32) as UTF-8 in TEXT, cut to fit. */
static const char *
narrow_text(const wchar_t *wide, char text[TEXT_BYTES])
{
	size_t used = 0;
	for (; *wide && used + 5 < TEXT_BYTES; wide++)
		used += plumb_utf8_put((uint32_t)*wide, text + used);
	text[used] = '\0';
	return text;
}

static const char no_name[] = "?";

static const char *
or_none(const char *text)
{
	return text && *text ? text : no_name;
}

static const char *
message_of(const struct attributes *a, char text[TEXT_BYTES])
{
	const struct plumb_range_domain *string;
	if (!a || a->size < sizeof *a || !a->message.ascii)
		return no_name;
	switch (a->message_type) {
	case MESSAGE_ASCII:
		return or_none(a->message.ascii);
	case MESSAGE_WIDE:
		return or_none(narrow_text(a->message.wide, text));
	case MESSAGE_REGISTERED:
		string = text_of(STRING_MAGIC, a->message.registered);
		return string ? or_none(string->text) : no_name;
	default:
		return no_name;
	}
}

static const int64_t *
round_number(double real, int64_t *number)
{
	if (!(real > -9.2e18 && real < 9.2e18))
		return NULL; /* no number, or one that a value cannot hold */
	*number = (int64_t)(real < 0 ? real - 0.5 : real + 0.5);
	return number;
}

/* The number that a range carries, or NULL. */
static const int64_t *
payload_of(const struct attributes *a, int64_t *number)
{
	if (!a || a->size < sizeof *a)
		return NULL;
	switch (a->payload_type) {
	case PAYLOAD_UINT64:
		*number = a->payload.uint64 > INT64_MAX ? INT64_MAX : (int64_t)a->payload.uint64;
		return number;
	case PAYLOAD_INT64:
		*number = a->payload.int64;
		return number;
	case PAYLOAD_DOUBLE:
		return round_number(a->payload.real64, number);
	case PAYLOAD_UINT32:
		*number = a->payload.uint32;
		return number;
	case PAYLOAD_INT32:
		*number = a->payload.int32;
		return number;
	case PAYLOAD_FLOAT:
		return round_number((double)a->payload.real32, number);
	default:
		return NULL;
	}
}

/* A as the other tool has to see it: a string that we registered, because it does not, in plain. */
static const struct attributes *
attributes_for(const struct attributes *a, struct attributes *copy)
{
	const struct plumb_range_domain *string;
	if (!a || a->size < sizeof *a || a->message_type != MESSAGE_REGISTERED ||
	    !(string = text_own(STRING_MAGIC, a->message.registered)))
		return a;
	*copy = *a;
	copy->message_type = MESSAGE_ASCII;
	copy->message.ascii = string->text;
	return copy;
}

/* ---- ranges and marks, with and without a domain ---- */

/* Apart, because of the memory that the text takes. */
static __attribute__((noinline)) int
push_text(const struct plumb_range_domain *domain, const struct attributes *a,
          const int64_t *payload)
{
	char text[TEXT_BYTES];
	return plumb_ranges_push(domain, message_of(a, text), payload);
}

static int
push_range(const struct plumb_range_domain *domain, const struct attributes *a)
{
	int64_t number;
	const int64_t *payload = payload_of(a, &number);
	if (plumb_likely(a && a->size >= sizeof *a && a->message_type == MESSAGE_REGISTERED)) {
		const struct plumb_range_domain *string =
			text_of(STRING_MAGIC, a->message.registered);
		if (string)
			return plumb_ranges_push_kept(domain, string, payload);
	}
	return push_text(domain, a, payload);
}

static uint64_t
start_range(const struct plumb_range_domain *domain, const struct attributes *a, uint64_t id)
{
	char text[TEXT_BYTES];
	int64_t number;
	return plumb_ranges_start(domain, message_of(a, text), payload_of(a, &number), id);
}

static void
put_mark(const struct plumb_range_domain *domain, const struct attributes *a)
{
	char text[TEXT_BYTES];
	int64_t number;
	plumb_ranges_mark(domain, message_of(a, text), payload_of(a, &number));
}

/* ---- what is written into the tables: module CORE ---- */

typedef int push_ex(const struct attributes *a);
typedef int push_a(const char *text);
typedef int push_w(const wchar_t *text);
typedef int pop_it(void);
typedef uint64_t start_ex(const struct attributes *a);
typedef uint64_t start_a(const char *text);
typedef uint64_t start_w(const wchar_t *text);
typedef void end_it(uint64_t id);
typedef void mark_ex(const struct attributes *a);
typedef void mark_a(const char *text);
typedef void mark_w(const wchar_t *text);

enum {
	MARK_EX = 1,
	MARK_A = 2,
	MARK_W = 3,
	START_EX = 4,
	START_A = 5,
	START_W = 6,
	END = 7,
	PUSH_EX = 8,
	PUSH_A = 9,
	PUSH_W = 10,
	POP = 11,
};

static int
core_push_ex(const struct attributes *a)
{
	push_ex *next = NEXT(core, PUSH_EX, push_ex *);
	struct attributes copy;
	int level = push_range(NULL, a);
	return next ? next(attributes_for(a, &copy)) : level;
}

static int
core_push_a(const char *name)
{
	push_a *next = NEXT(core, PUSH_A, push_a *);
	int level = plumb_ranges_push(NULL, or_none(name), NULL);
	return next ? next(name) : level;
}

static int
core_push_w(const wchar_t *name)
{
	push_w *next = NEXT(core, PUSH_W, push_w *);
	char text[TEXT_BYTES];
	int level =
		plumb_ranges_push(NULL, name ? or_none(narrow_text(name, text)) : no_name, NULL);
	return next ? next(name) : level;
}

static int
core_pop(void)
{
	pop_it *next = NEXT(core, POP, pop_it *);
	int level = plumb_ranges_pop(NULL);
	return next ? next() : level;
}

static uint64_t
core_start_ex(const struct attributes *a)
{
	start_ex *next = NEXT(core, START_EX, start_ex *);
	struct attributes copy;
	return start_range(NULL, a, next ? next(attributes_for(a, &copy)) : 0);
}

static uint64_t
core_start_a(const char *name)
{
	start_a *next = NEXT(core, START_A, start_a *);
	return plumb_ranges_start(NULL, or_none(name), NULL, next ? next(name) : 0);
}

static uint64_t
core_start_w(const wchar_t *name)
{
	start_w *next = NEXT(core, START_W, start_w *);
	char text[TEXT_BYTES];
	return plumb_ranges_start(NULL, name ? or_none(narrow_text(name, text)) : no_name, NULL,
	                          next ? next(name) : 0);
}

static void
core_end(uint64_t id)
{
	end_it *next = NEXT(core, END, end_it *);
	plumb_ranges_end(id);
	if (next && !plumb_ranges_is_own(id))
		next(id);
}

static void
core_mark_ex(const struct attributes *a)
{
	mark_ex *next = NEXT(core, MARK_EX, mark_ex *);
	struct attributes copy;
	put_mark(NULL, a);
	if (next)
		next(attributes_for(a, &copy));
}

static void
core_mark_a(const char *name)
{
	mark_a *next = NEXT(core, MARK_A, mark_a *);
	plumb_ranges_mark(NULL, or_none(name), NULL);
	if (next)
		next(name);
}

static void
core_mark_w(const wchar_t *name)
{
	mark_w *next = NEXT(core, MARK_W, mark_w *);
	char text[TEXT_BYTES];
	plumb_ranges_mark(NULL, name ? or_none(narrow_text(name, text)) : no_name, NULL);
	if (next)
		next(name);
}

/* ---- module CORE2: with domains ---- */

typedef void domain_mark(const void *domain, const struct attributes *a);
typedef uint64_t domain_start(const void *domain, const struct attributes *a);
typedef void domain_end(const void *domain, uint64_t id);
typedef int domain_push(const void *domain, const struct attributes *a);
typedef int domain_pop(const void *domain);
typedef const void *register_a(const void *domain, const char *text);
typedef const void *register_w(const void *domain, const wchar_t *text);
typedef const void *create_a(const char *name);
typedef const void *create_w(const wchar_t *name);
typedef void domain_destroy(const void *domain);

enum {
	DOMAIN_MARK = 1,
	DOMAIN_START = 2,
	DOMAIN_END = 3,
	DOMAIN_PUSH = 4,
	DOMAIN_POP = 5,
	REGISTER_A = 10,
	REGISTER_W = 11,
	CREATE_A = 12,
	CREATE_W = 13,
	DESTROY = 14,
};

static void
core2_mark(const void *domain, const struct attributes *a)
{
	domain_mark *next = NEXT(core2, DOMAIN_MARK, domain_mark *);
	struct attributes copy;
	put_mark(domain_of(domain), a);
	if (next)
		next(domain_theirs(domain), attributes_for(a, &copy));
}

static uint64_t
core2_start(const void *domain, const struct attributes *a)
{
	domain_start *next = NEXT(core2, DOMAIN_START, domain_start *);
	struct attributes copy;
	uint64_t id = next ? next(domain_theirs(domain), attributes_for(a, &copy)) : 0;
	return start_range(domain_of(domain), a, id);
}

static void
core2_end(const void *domain, uint64_t id)
{
	domain_end *next = NEXT(core2, DOMAIN_END, domain_end *);
	plumb_ranges_end(id);
	if (next && !plumb_ranges_is_own(id))
		next(domain_theirs(domain), id);
}

static int
core2_push(const void *domain, const struct attributes *a)
{
	domain_push *next = NEXT(core2, DOMAIN_PUSH, domain_push *);
	struct attributes copy;
	int level = push_range(domain_of(domain), a);
	return next ? next(domain_theirs(domain), attributes_for(a, &copy)) : level;
}

static int
core2_pop(const void *domain)
{
	domain_pop *next = NEXT(core2, DOMAIN_POP, domain_pop *);
	int level = plumb_ranges_pop(domain_of(domain));
	return next ? next(domain_theirs(domain)) : level;
}

/* What the program gets for a text: the other tool's handle where it gives one, else ours. */
static const void *
hand_out(const void *their_handle, const struct plumb_range_domain *ours)
{
	if (!their_handle)
		return ours;
	if (ours)
		handle_put(their_handle, ours);
	return their_handle;
}

static const struct plumb_range_domain *
keep_string(const char *text)
{
	return text_keep(STRING_MAGIC, text, strnlen(text, TEXT_BYTES - 1));
}

static const void *
core2_register_a(const void *domain, const char *text)
{
	register_a *next = NEXT(core2, REGISTER_A, register_a *);
	return hand_out(next ? next(domain_theirs(domain), text) : NULL,
	                keep_string(or_none(text)));
}

static const void *
core2_register_w(const void *domain, const wchar_t *wide)
{
	register_w *next = NEXT(core2, REGISTER_W, register_w *);
	char text[TEXT_BYTES];
	return hand_out(next ? next(domain_theirs(domain), wide) : NULL,
	                keep_string(wide ? or_none(narrow_text(wide, text)) : no_name));
}

static const struct plumb_range_domain *
keep_domain(const char *name)
{
	char text[TEXT_BYTES / 2];
	size_t bytes = plumb_utf8_cut(name, sizeof text - 1);
	memcpy(text, name, bytes);
	text[bytes++] = '/';
	return text_keep(DOMAIN_MAGIC, text, bytes);
}

static const void *
core2_create_a(const char *name)
{
	create_a *next = NEXT(core2, CREATE_A, create_a *);
	return hand_out(next ? next(name) : NULL, keep_domain(or_none(name)));
}

static const void *
core2_create_w(const wchar_t *wide)
{
	create_w *next = NEXT(core2, CREATE_W, create_w *);
	char text[TEXT_BYTES];
	return hand_out(next ? next(wide) : NULL,
	                keep_domain(wide ? or_none(narrow_text(wide, text)) : no_name));
}

/* Ours stays: the program may still have ranges open in it, or make it again. */
static void
core2_destroy(const void *domain)
{
	domain_destroy *next = NEXT(core2, DESTROY, domain_destroy *);
	if (next)
		next(domain_theirs(domain));
}

/* ---- installing ---- */

static const function core[FUNCTIONS] = {
	[MARK_EX] = (function)core_mark_ex, [MARK_A] = (function)core_mark_a,
	[MARK_W] = (function)core_mark_w,   [START_EX] = (function)core_start_ex,
	[START_A] = (function)core_start_a, [START_W] = (function)core_start_w,
	[END] = (function)core_end,         [PUSH_EX] = (function)core_push_ex,
	[PUSH_A] = (function)core_push_a,   [PUSH_W] = (function)core_push_w,
	[POP] = (function)core_pop,
};
static const function core2[FUNCTIONS] = {
	[DOMAIN_MARK] = (function)core2_mark,      [DOMAIN_START] = (function)core2_start,
	[DOMAIN_END] = (function)core2_end,        [DOMAIN_PUSH] = (function)core2_push,
	[DOMAIN_POP] = (function)core2_pop,        [REGISTER_A] = (function)core2_register_a,
	[REGISTER_W] = (function)core2_register_w, [CREATE_A] = (function)core2_create_a,
	[CREATE_W] = (function)core2_create_w,     [DESTROY] = (function)core2_destroy,
};

/* One library's table of a module, and what stood there before the other tool came. */
struct module {
	function **table;
	unsigned last;
	function before[FUNCTIONS];
};

static bool
read_module(const struct export_callbacks *callbacks, int number, struct module *module)
{
	module->table = NULL;
	if (!callbacks->module_table(number, &module->table, &module->last) || !module->table)
		return false;
	if (module->last >= FUNCTIONS)
		module->last = FUNCTIONS - 1;
	for (unsigned id = 1; id <= module->last; id++)
		module->before[id] = module->table[id] ? *module->table[id] : NULL;
	return true;
}

/* Writes our functions over those of the other tool, which are kept as the next ones. Where it has
 * another function in this library than in the first one, it stays, for a call could not be
 * told. */
static void
write_module(struct module *module, const function *ours, function _Atomic *next)
{
	for (unsigned id = 1; id <= module->last; id++) {
		if (!ours[id] || !module->table[id])
			continue;
		function there = *module->table[id], known = NULL;
		if (there == module->before[id])
			there = NULL;
		if (!atomic_compare_exchange_strong(&next[id], &known, there) && known != there)
			continue;
		*module->table[id] = ours[id];
	}
}

/* The tool that was there before, its entry NAME; NULL: there is none. */
static void *
find_chained(const char *name)
{
	const char *path = getenv(PLUMB_ENV_CHAIN_NVTX);
	void *library = path && *path ? dlopen(path, RTLD_LAZY | RTLD_LOCAL) : NULL;
	return library ? plumb_real_dlsym(library, name) : NULL;
}

PLUMB_EXPORT int InitializeInjectionNvtx2(get_export_table get);

int
InitializeInjectionNvtx2(get_export_table get)
{
	const struct export_callbacks *callbacks = get ? get(TABLE_CALLBACKS) : NULL;
	int (*other)(get_export_table) =
		(int (*)(get_export_table))find_chained("InitializeInjectionNvtx2");
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct module modules[2];
	pthread_once(&once, make_tables);
	if (other == InitializeInjectionNvtx2)
		other = NULL;
	if (!callbacks || callbacks->size < sizeof *callbacks || !pool)
		return other ? other(get) : 0;
	bool have_core = read_module(callbacks, CORE, &modules[0]);
	bool have_core2 = read_module(callbacks, CORE2, &modules[1]);
	if (other)
		other(get);
	if (have_core)
		write_module(&modules[0], core, next_core);
	if (have_core2)
		write_module(&modules[1], core2, next_core2);
	return 1;
}

/* NVTX's extensions (structured payloads, counters) are not plumb's; the other tool may have them.
 * To fail here would say that domains are disabled, and Python's nvtx would then not push
 * anything. */
PLUMB_EXPORT int InitializeInjectionNvtxExtension(void *module);

int
InitializeInjectionNvtxExtension(void *module)
{
	int (*other)(void *) = (int (*)(void *))find_chained("InitializeInjectionNvtxExtension");
	if (other && other != InitializeInjectionNvtxExtension)
		other(module);
	return 1;
}

void
plumb_nvtx_offer(void)
{
	Dl_info self;
	if (!getenv(INJECTION) && dladdr((void *)(uintptr_t)plumb_nvtx_offer, &self) &&
	    self.dli_fname)
		setenv(INJECTION, self.dli_fname, 0);
}

/* `plumb run` sets the variable; a preload by hand does not. */
static __attribute__((constructor)) void
nvtx_load(void)
{
	if (getenv(PLUMB_ENV_FOLDER))
		plumb_nvtx_offer();
}
