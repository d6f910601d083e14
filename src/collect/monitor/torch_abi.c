/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calibration: a callback for user scopes is registered, one RecordFunction is made on a buffer of
 * ours with a magic sequence number, and the callback copies the object. Two copies tell the fields
 * apart: the sequence number is the magic word, the handle is the word that grew by exactly one (it
 * follows the forward thread's number), the thread's number is followed by the scope.
 */
#include "collect/monitor/torch_abi.h"

#include <dlfcn.h>
#include <string.h>

#include "collect/collector.h"

#define MAGIC 0x1122334455667788
#define PROBE_NAME "plumb_probe"
#define PROBED_BYTES 512
#define OBJECT_BYTES 2048 /* more than any at::RecordFunction: 344 bytes in 2.14 */

static const char *const symbol_add = "_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE";
static const char *const symbol_remove = "_ZN2at14removeCallbackEm";
static const char *const symbol_name = "_ZNK2at14RecordFunction4nameEv";
static const char *const symbol_thread = "_ZN2at14RecordFunction15currentThreadIdEv";
static const char *const symbol_new = "_ZN2at14RecordFunctionC1ENS_11RecordScopeE";
static const char *const symbol_delete = "_ZN2at14RecordFunctionD1Ev";
static const char *const symbol_before = "_ZN2at14RecordFunction6beforeEPKcl";
static const char *const symbol_before_variant =
	"_ZN2at14RecordFunction6beforeESt7variantIJSt17basic_string_viewIcSt11char_traitsIcEE"
	"St17reference_wrapperIKN3c1014FunctionSchemaEEEEl";

/* Which thread probes: callbacks of others are not ours to look at. */
static _Thread_local unsigned char *probe_copy;
static _Thread_local const void *probe_seen;
static _Atomic uint64_t empty_calls;

/*
 * PyTorch calls start with a hidden pointer to the result (a C++ unique_ptr is returned in memory)
 * and the record. C can say that for x86-64 where both are plain arguments and the pointer is
 * returned; for AArch64 the pointer comes in x8, which C cannot name.
 */
#if defined(__x86_64__)
static void *
probe_start(void **result, const void *record)
{
	*result = NULL;
	if (probe_copy) {
		memcpy(probe_copy, record, PROBED_BYTES);
		probe_seen = record;
	}
	return result;
}
#elif defined(__aarch64__)
__attribute__((used, visibility("hidden"))) void
plumb_probe_start_c(const void *record, void **result);
void
plumb_probe_start_c(const void *record, void **result)
{
	*result = NULL;
	if (probe_copy) {
		memcpy(probe_copy, record, PROBED_BYTES);
		probe_seen = record;
	}
}
__attribute__((visibility("hidden"))) void probe_start(void) __asm__("plumb_probe_start");
__asm__(".text\n.globl plumb_probe_start\n.hidden plumb_probe_start\n.type "
        "plumb_probe_start,%function\n"
        "plumb_probe_start:\n.cfi_startproc\nhint #34\nmov x1,x8\nb plumb_probe_start_c\n"
        ".cfi_endproc\n.size plumb_probe_start,.-plumb_probe_start\n");
#else
#error "the PyTorch shim knows the calling conventions of x86-64 and AArch64 only"
#endif

static void
probe_end(const void *record, void *context)
{
	(void)record;
	(void)context;
	atomic_fetch_add_explicit(&empty_calls, 1, memory_order_relaxed);
}

/* std::variant<std::string_view, …>: 24 bytes, passed in memory, index last. */
struct probe_variant {
	size_t bytes;
	const char *text;
	uint8_t index;
	uint8_t pad[7];
};

struct probe {
	void (*construct)(void *, uint8_t scope);
	void (*destroy)(void *);
	void (*before)(void *, const char *, int64_t);
	void (*before_variant)(void *, struct probe_variant, int64_t);
};

static void
probe_once(const struct probe *probe, void *object)
{
	memset(object, 0, PROBED_BYTES);
	probe->construct(object, TORCH_SCOPE_USER);
	if (probe->before)
		probe->before(object, PROBE_NAME, MAGIC);
	else
		probe->before_variant(
			object, (struct probe_variant){ strlen(PROBE_NAME), PROBE_NAME, 0, { 0 } },
			MAGIC);
}

static uint64_t
read_word(const unsigned char *copy, int offset)
{
	uint64_t value;
	memcpy(&value, copy + offset, sizeof value);
	return value;
}

/* Finds the fields from the two copies. */
static int
locate_fields(struct torch_abi *abi, const unsigned char *first, const unsigned char *second,
              struct plumb_error *error)
{
	int handle = -1;
	abi->sequence = abi->forward_thread = abi->scope = -1;
	for (int at = 8; at + 8 <= PROBED_BYTES && abi->sequence < 0; at += 8)
		if (read_word(first, at) == MAGIC && read_word(second, at) == MAGIC)
			abi->sequence = at;
	if (abi->sequence < 0)
		return plumb_fail(
			error, PLUMB_ESYSTEM,
			"operators are not recorded: at::RecordFunction does not return the "
			"sequence number that was written");
	for (int at = abi->sequence + 8; at + 8 <= PROBED_BYTES && handle < 0; at += 8)
		if (read_word(first, at) && read_word(second, at) == read_word(first, at) + 1)
			handle = at;
	uint64_t self = abi->current_thread();
	for (int at = 8; at + 9 <= abi->sequence && abi->scope < 0; at += 8)
		if (read_word(first, at) == self && first[at + 8] == TORCH_SCOPE_USER)
			abi->scope = at + 8;
	if (handle > 0)
		abi->forward_thread = handle - 8;
	/* A vector without values lies before it. */
	abi->outputs = abi->forward_thread - 24;
	if (abi->outputs < abi->sequence + 24)
		abi->outputs = -1;
	for (int at = 0; at < 24 && abi->outputs > 0; at += 8)
		if (read_word(first, abi->outputs + at) || read_word(second, abi->outputs + at))
			abi->outputs = -1;
	return 0;
}

static int
probe_fields(struct torch_abi *abi, const struct probe *probe, struct plumb_error *error)
{
	static unsigned char object[OBJECT_BYTES] __attribute__((aligned(64)));
	static unsigned char copies[2][PROBED_BYTES];
	int result = 0;
	for (int round = 0; round < 2 && !result; round++) {
		probe_copy = copies[round];
		probe_seen = NULL;
		probe_once(probe, object);
		probe_copy = NULL;
		if (probe_seen != object)
			result = plumb_fail(
				error, PLUMB_ESYSTEM,
				"operators are not recorded: PyTorch's record functions are "
				"disabled in this program");
		else if (strcmp(abi->name(object), PROBE_NAME))
			result = plumb_fail(error, PLUMB_ESYSTEM,
			                    "operators are not recorded: at::RecordFunction::name "
			                    "returned another name than the probe's");
		probe->destroy(object);
	}
	return result ? result : locate_fields(abi, copies[0], copies[1], error);
}

/* What PyTorch itself spends on an empty pair of callbacks: part of plumb's overhead that plumb's
 * own clock cannot see. Least of three rounds. */
static void
measure_empty(struct torch_abi *abi, const struct probe *probe)
{
	static unsigned char object[OBJECT_BYTES] __attribute__((aligned(64)));
	enum { PAIRS = 2000 };
	for (int round = 0; round < 3; round++) {
		uint64_t start = plumb_clock_ns();
		for (int i = 0; i < PAIRS; i++) {
			probe_once(probe, object);
			probe->destroy(object);
		}
		double each = (double)(plumb_clock_ns() - start) / PAIRS;
		if (!round || each < abi->empty_pair_ns)
			abi->empty_pair_ns = each;
	}
}

static void *
find_symbol(void *library, const char *name)
{
	return plumb_real_dlsym(library, name);
}

int
torch_abi_find(struct torch_abi *abi, struct plumb_error *error)
{
	if (!plumb_find_library("libtorch_cpu.so", abi->library, sizeof abi->library))
		return 1;
	void *library = dlopen(abi->library, RTLD_NOLOAD | RTLD_LAZY);
	if (!library)
		return 1;
	abi->add_global_callback =
		(uint64_t (*)(struct torch_callback))find_symbol(library, symbol_add);
	abi->remove_callback = (void (*)(uint64_t))find_symbol(library, symbol_remove);
	abi->name = (const char *(*)(const void *))find_symbol(library, symbol_name);
	abi->current_thread = (uint64_t (*)(void))find_symbol(library, symbol_thread);
	struct probe probe = {
		.construct = (void (*)(void *, uint8_t))find_symbol(library, symbol_new),
		.destroy = (void (*)(void *))find_symbol(library, symbol_delete),
		.before = (void (*)(void *, const char *, int64_t))find_symbol(library,
		                                                               symbol_before),
		.before_variant = (void (*)(void *, struct probe_variant, int64_t))find_symbol(
			library, symbol_before_variant),
	};
	dlclose(library); /* it stays: PyTorch is never unloaded */
	if (!abi->add_global_callback || !abi->remove_callback || !abi->name ||
	    !abi->current_thread)
		return plumb_fail(
			error, PLUMB_ESYSTEM,
			"operators are not recorded: %s lacks the record-function symbols; use "
			"PyTorch 1.13 or 2.x, or a newer plumb",
			abi->library);
	abi->sequence = abi->forward_thread = abi->scope = abi->outputs = -1;
	if (!probe.construct || !probe.destroy || (!probe.before && !probe.before_variant))
		return 0; /* names only: the caller says so */

	struct torch_callback callback = {
		.start = (void *)probe_start,
		.end = (void *)probe_end,
		.sampling_probability = 1.0,
		.needs_ids = 1,
	};
	callback.scopes[TORCH_SCOPE_USER] = 1;
	uint64_t handle = abi->add_global_callback(callback);
	int result = probe_fields(abi, &probe, error);
	if (!result)
		measure_empty(abi, &probe);
	abi->remove_callback(handle);
	return result;
}
