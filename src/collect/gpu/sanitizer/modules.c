/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modules and their functions. A module is patched once its context can reach another device's
 * memory: at that moment if it is there, else when it is loaded. Patching happens between launches,
 * never at the beginning of one, where it is not certain which code would run.
 */
#include <elf.h>
#include <string.h>

#include "collect/gpu/code.h"
#include "collect/gpu/sanitizer/runtime.h"
#include "collect/table.h"

#define MODULES 16384u
#define FUNCTIONS 65536u
#define CODES 131072u
#define NAMES_BYTES ((size_t)64 << 20)

/* The sanitizer wants calls that add patches or patch to come one after another. */
static pthread_mutex_t patching = PTHREAD_MUTEX_INITIALIZER;

static struct plumb_sanitizer_module *modules;
static struct plumb_sanitizer_function *functions;
static struct plumb_sanitizer_code *codes;
static uint32_t modules_count, functions_count, codes_count;
static struct plumb_id_table function_index;
static char *names;
static size_t names_used;

static bool
make_tables(void)
{
	if (!modules) {
		modules = plumb_map(MODULES * sizeof *modules, true);
		functions = plumb_map(FUNCTIONS * sizeof *functions, true);
		codes = plumb_map(CODES * sizeof *codes, true);
		names = plumb_map(NAMES_BYTES, true);
	}
	return modules && functions && codes && names;
}

static const char *
keep_name(const char *name)
{
	size_t bytes = name ? strlen(name) + 1 : 0;
	if (!bytes || bytes > NAMES_BYTES - names_used)
		return "?";
	char *copy = memcpy(names + names_used, name, bytes);
	names_used += bytes;
	return copy;
}

static struct plumb_sanitizer_module *
module_of(sanitizer_module handle)
{
	for (uint32_t i = modules_count; i; i--)
		if (modules[i - 1].live && modules[i - 1].handle == handle)
			return &modules[i - 1];
	return NULL;
}

/* ---- patching ---- */

/* Tells the sanitizer which instructions of a module to patch. With the lock for patching. */
static bool
mark(struct plumb_sanitizer_module *module)
{
	static const struct {
		enum sanitizer_patch id;
		const char *function;
		bool needed;
	} patches[] = {
		{ SANITIZER_GLOBAL, "plumb_patch_global", true },
		{ SANITIZER_ASYNC_COPY, "plumb_patch_async_copy", false },
		{ SANITIZER_BULK_LOAD, "plumb_patch_bulk_load", false },
		{ SANITIZER_BULK_STORE, "plumb_patch_bulk_store", false },
		{ SANITIZER_BULK_REDUCTION, "plumb_patch_bulk_reduction", false },
	};
	struct plumb_sanitizer_context *context = module->context;
	size_t bytes;
	if (!context->patched &&
	    SANITIZER(AddPatches(plumb_sanitizer_patches(&bytes), context->handle)))
		return false;
	context->patched = true;
	for (size_t i = 0; i < sizeof patches / sizeof *patches; i++) {
		if (!SANITIZER(
			    PatchInstructions(patches[i].id, module->handle, patches[i].function)))
			continue;
		if (patches[i].needed)
			return false;
		plumb_sanitizer_unseen(PLUMB_UNSEEN_BULK, 1);
	}
	return true;
}

/* With the lock for patching. */
static void
patch(struct plumb_sanitizer_module *module, bool on)
{
	if (!module->live || module->failed || module->patched == on)
		return;
	uint64_t start = plumb_clock_ns();
	if (!on) {
		module->patched = SANITIZER(UnpatchModule(module->handle)) != 0;
		module->marked = module->patched;
	} else {
		module->marked = module->marked || mark(module);
		module->patched = module->marked && !SANITIZER(PatchModule(module->handle));
		module->failed = !module->patched;
		if (module->failed)
			plumb_sanitizer_unseen(PLUMB_UNSEEN_MODULES, 1);
	}
	module->patch_ns = plumb_clock_ns() - start;
}

void
plumb_sanitizer_switch(struct plumb_sanitizer_module *module, bool on)
{
	if (module->patched == on || (!on && module->in_graph) || pthread_mutex_trylock(&patching))
		return;
	patch(module, on);
	pthread_mutex_unlock(&patching);
}

void
plumb_sanitizer_reaches(sanitizer_context handle)
{
	pthread_mutex_lock(&plumb_sanitizer_lock);
	struct plumb_sanitizer_context *context = plumb_sanitizer_context_of(handle, UINT32_MAX);
	bool before = !context || context->reaches;
	uint32_t last = modules_count;
	if (context)
		context->reaches = true;
	pthread_mutex_unlock(&plumb_sanitizer_lock);
	if (before || !plumb_sanitizer_prepare(context, true))
		return;
	/* What is loaded meanwhile patches itself. */
	pthread_mutex_lock(&patching);
	for (uint32_t i = 0; i < last; i++)
		if (modules[i].context == context &&
		    (!plumb_sanitizer_settings.unpatch || !plumb_sanitizer_settings.sampled ||
		     modules[i].draw.drawn))
			patch(&modules[i], true);
	pthread_mutex_unlock(&patching);
}

#define REST_MOST 65536u

void
plumb_sanitizer_rest(struct plumb_sanitizer_context *context)
{
	const struct plumb_sanitizer_settings *settings = &plumb_sanitizer_settings;
	if (settings->sampled || !settings->idle || !settings->unpatch)
		return;
	pthread_mutex_lock(&plumb_sanitizer_lock);
	for (uint32_t i = 0; i < modules_count; i++) {
		struct plumb_sanitizer_module *module = &modules[i];
		if (module->context != context || !module->live || module->in_graph ||
		    module->rest || module->idle < settings->idle)
			continue;
		module->rest = module->next_rest;
		module->idle = 0;
		if (module->next_rest < REST_MOST)
			module->next_rest *= 2;
	}
	pthread_mutex_unlock(&plumb_sanitizer_lock);
}

/* ---- modules ---- */

/* Instructions that no patch sees: UTMALDG, UTMASTG and UTMAREDG, which have their addresses in a
 * tensor map. From Volta on an instruction takes 16 bytes, and its number the lowest 9 bits. */
static uint64_t
count_tensor_copies(const char *image, size_t size)
{
	const Elf64_Ehdr *head = (const void *)image;
	uint64_t count = 0, word;
	if (size < sizeof *head || memcmp(head->e_ident, ELFMAG, SELFMAG) ||
	    head->e_shentsize != sizeof(Elf64_Shdr) || head->e_shoff % 8 || head->e_shoff > size ||
	    head->e_shnum > (size - head->e_shoff) / sizeof(Elf64_Shdr))
		return 0;
	const Elf64_Shdr *sections = (const void *)(image + head->e_shoff);
	for (unsigned s = 0; s < head->e_shnum; s++) {
		const Elf64_Shdr *code = &sections[s];
		if (code->sh_type != SHT_PROGBITS || !(code->sh_flags & SHF_EXECINSTR) ||
		    code->sh_offset > size || code->sh_size > size - code->sh_offset)
			continue;
		for (uint64_t at = 0; at + 16 <= code->sh_size; at += 16) {
			memcpy(&word, image + code->sh_offset + at, sizeof word);
			count += (word & 0x1ff) - 0x1b4 <= 2;
		}
	}
	return count;
}

/* The names of a module's functions, one after another; an empty one is the end. */
static char *
copy_functions(const char *image, size_t size)
{
	const Elf64_Ehdr *head = (const void *)image;
	if (size < sizeof *head || memcmp(head->e_ident, ELFMAG, SELFMAG) ||
	    head->e_shentsize != sizeof(Elf64_Shdr) || head->e_shoff % 8 || head->e_shoff > size ||
	    head->e_shnum > (size - head->e_shoff) / sizeof(Elf64_Shdr))
		return NULL;
	const Elf64_Shdr *sections = (const void *)(image + head->e_shoff);
	char *first = names + names_used;
	for (unsigned s = 0; s < head->e_shnum; s++) {
		const Elf64_Shdr *table = &sections[s];
		if (table->sh_type != SHT_SYMTAB || table->sh_link >= head->e_shnum)
			continue;
		const Elf64_Shdr *texts = &sections[table->sh_link];
		if (table->sh_offset > size || table->sh_size > size - table->sh_offset ||
		    table->sh_offset % 8 || texts->sh_offset > size ||
		    texts->sh_size > size - texts->sh_offset || !texts->sh_size ||
		    image[texts->sh_offset + texts->sh_size - 1])
			continue;
		const Elf64_Sym *symbols = (const void *)(image + table->sh_offset);
		for (size_t i = 0; i < table->sh_size / sizeof *symbols; i++)
			if (ELF64_ST_TYPE(symbols[i].st_info) == STT_FUNC && symbols[i].st_shndx &&
			    symbols[i].st_name < texts->sh_size &&
			    image[texts->sh_offset + symbols[i].st_name])
				keep_name(image + texts->sh_offset + symbols[i].st_name);
	}
	if (names_used < NAMES_BYTES)
		names[names_used++] = '\0';
	return first;
}

static struct plumb_sanitizer_module *
add_module(const struct sanitizer_module_data *data, uint64_t hash)
{
	struct plumb_sanitizer_context *context =
		plumb_sanitizer_context_of(data->context, UINT32_MAX);
	if (!context || !make_tables() || modules_count == MODULES)
		return NULL;
	struct plumb_sanitizer_module *module = &modules[modules_count++];
	*module = (struct plumb_sanitizer_module){
		.handle = data->module,
		.context = context,
		.hash = hash,
		.live = true,
		.bank = -1,
		.next_rest = 64,
		.draw = { .state =
		                  plumb_sanitizer_settings.seed ^
		                  plumb_mix(hash, (uint64_t)(context - plumb_sanitizer_contexts)) },
	};
	if (data->cubin)
		module->image = copy_functions(data->cubin, data->cubin_size);
	if (plumb_sanitizer_settings.sampled)
		plumb_draw_unit(&module->draw, plumb_sanitizer_settings.rate, 1);
	else
		module->draw.drawn = true;
	return module;
}

void
plumb_sanitizer_module_loaded(const struct sanitizer_module_data *data)
{
	uint64_t hash = data->cubin && data->cubin_size
	                        ? plumb_code_keep(data->cubin, data->cubin_size)
	                        : 0;
	if (plumb_sanitizer_settings.own)
		plumb_sanitizer_reaches(data->context);
	pthread_mutex_lock(&plumb_sanitizer_lock);
	struct plumb_sanitizer_module *module = add_module(data, hash);
	bool now = module && module->context->reaches && module->draw.drawn;
	pthread_mutex_unlock(&plumb_sanitizer_lock);
	if (!module)
		plumb_sanitizer_unseen(PLUMB_UNSEEN_MODULES, 1);
	if (hash)
		plumb_sanitizer_unseen(PLUMB_UNSEEN_TENSOR,
		                       count_tensor_copies(data->cubin, data->cubin_size));
	if (!now && plumb_sanitizer_settings.unpatch)
		return;
	if (!module || !module->context->reaches || !plumb_sanitizer_prepare(module->context, true))
		return;
	pthread_mutex_lock(&patching);
	patch(module, true);
	pthread_mutex_unlock(&patching);
}

/* Asks where the functions of a module are. Without the lock. */
static void
locate_all(struct plumb_sanitizer_module *module)
{
	char *name = module->image;
	module->image = NULL;
	for (; name && *name; name += strlen(name) + 1) {
		uint64_t pc = 0, bytes = 0;
		if (SANITIZER(GetFunctionPcAndSize(module->handle, name, &pc, &bytes)) || !bytes)
			continue;
		pthread_mutex_lock(&plumb_sanitizer_lock);
		if (codes_count < CODES)
			codes[codes_count++] = (struct plumb_sanitizer_code){
				.module = module, .pc = pc, .bytes = bytes, .name = name
			};
		pthread_mutex_unlock(&plumb_sanitizer_lock);
	}
}

void
plumb_sanitizer_module_unloading(const struct sanitizer_module_data *data)
{
	pthread_mutex_lock(&plumb_sanitizer_lock);
	struct plumb_sanitizer_module *module = module_of(data->module);
	bool used = false;
	for (uint32_t i = 0; module && i < functions_count; i++)
		if (functions[i].module == module) {
			functions[i].handle = NULL;
			used = true;
		}
	pthread_mutex_unlock(&plumb_sanitizer_lock);
	if (!module)
		return;
	if (used) /* what it counted is read later, and names nothing any more */
		locate_all(module);
	pthread_mutex_lock(&patching);
	module->live = false;
	pthread_mutex_unlock(&patching);
}

/* ---- functions ---- */

struct plumb_sanitizer_function *
plumb_sanitizer_function_of(const struct sanitizer_launch_data *data)
{
	uint64_t mixed = plumb_mix((uintptr_t)data->function, 1);
	uint32_t hash = (uint32_t)(mixed ^ mixed >> 32), at = hash, id;
	if (!make_tables())
		return NULL;
	while ((id = plumb_id_table_next(&function_index, hash, &at)))
		if (functions[id - 1].handle == data->function)
			return &functions[id - 1];
	struct plumb_sanitizer_module *module = module_of(data->module);
	if (!module || functions_count == FUNCTIONS)
		return NULL;
	struct plumb_sanitizer_function *function = &functions[functions_count];
	*function = (struct plumb_sanitizer_function){
		.handle = data->function,
		.module = module,
		.name = keep_name(data->name),
		.wanted = plumb_sanitizer_wants_kernel(data->name),
		.fixed = UINT32_MAX,
	};
	if (!plumb_id_table_add(&function_index, hash, functions_count + 1))
		return NULL;
	functions_count++;
	return function;
}

void
plumb_sanitizer_locate(struct plumb_sanitizer_function *function)
{
	uint64_t pc = 0, bytes = 0;
	if (SANITIZER(GetFunctionPcAndSize(function->module->handle, function->name, &pc, &bytes)))
		return;
	pthread_mutex_lock(&plumb_sanitizer_lock);
	if (codes_count < CODES)
		codes[codes_count++] = (struct plumb_sanitizer_code){
			.module = function->module, .pc = pc, .bytes = bytes, .name = function->name
		};
	pthread_mutex_unlock(&plumb_sanitizer_lock);
}

static const struct plumb_sanitizer_code *
find_code(const struct plumb_sanitizer_module *module, uint64_t pc)
{
	for (uint32_t i = codes_count; i; i--) {
		const struct plumb_sanitizer_code *code = &codes[i - 1];
		if (code->module == module && pc - code->pc < code->bytes)
			return code;
	}
	return NULL;
}

const struct plumb_sanitizer_code *
plumb_sanitizer_code_at(struct plumb_sanitizer_module *module, uint64_t pc)
{
	const struct plumb_sanitizer_code *code = find_code(module, pc);
	if (code || !module->image || !module->live)
		return code;
	/* It is in a function that the kernel calls. */
	pthread_mutex_unlock(&plumb_sanitizer_lock);
	locate_all(module);
	pthread_mutex_lock(&plumb_sanitizer_lock);
	return find_code(module, pc);
}

void
plumb_sanitizer_modules_renew(void)
{
	patching = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}
