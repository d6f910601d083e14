/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PyTorch's operators by their functions. at::_ops::add_Tensor::call is aten::add in its overload
 * Tensor: PyTorch joins the two by an underscore, which names have, too. The schemas of all
 * operators are in the library as text, "add.Tensor(Tensor self, …) -> Tensor", so they say where
 * a name ends. They are read at the first question.
 */
#include "settle/code_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#define SCHEMA_MAX 8192 /* bytes of a schema; the longest in PyTorch 2.15 has 1.5 KiB */
#define NAME_MAX_BYTES 200

static bool
is_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '.' || c == ':';
}

/* "add.Tensor" → "add_Tensor". */
static uint64_t
joined_hash(const char *name, size_t bytes)
{
	char joined[NAME_MAX_BYTES];

	for (size_t i = 0; i < bytes; i++)
		joined[i] = name[i] == '.' ? '_' : name[i];
	return plumb_hash_bytes(joined, bytes);
}

/* Takes in the schema whose arguments begin at OPEN, if it is one. */
static void
take_schema(struct plumb_code *code, const char *start, const char *open, const char *end)
{
	const char *name = open, *stop;
	size_t most = (size_t)(end - open) < SCHEMA_MAX ? (size_t)(end - open) : SCHEMA_MAX;
	struct plumb_code_operator *added;

	while (name > start && is_name(name[-1]) && open - name < NAME_MAX_BYTES)
		name--;
	if (name == open || name == start || name[-1] || open - name >= NAME_MAX_BYTES)
		return;
	stop = memchr(open, '\0', most);
	if (!stop || !memmem(open, (size_t)(stop - open), ") -> ", 5))
		return;
	if (open - name > 6 && !strncmp(name, "aten::", 6))
		name += 6;
	added = plumb_vec_add(&code->operators);
	if (!added)
		return;
	added->name = name;
	added->bytes = (uint32_t)(open - name);
	if (plumb_map_add(&code->operator_map, joined_hash(name, added->bytes),
	                  code->operators.count - 1))
		code->operators.count--;
}

static void
read_section(struct plumb_code *code, const struct plumb_elf *file)
{
	GElf_Shdr head;
	Elf_Scn *section = plumb_elf_section(file, ".rodata", 0, &head);
	Elf_Data *data = section ? elf_rawdata(section, NULL) : NULL;
	const char *start, *end;

	if (!data || !data->d_buf || head.sh_type == SHT_NOBITS)
		return;
	start = data->d_buf;
	end = start + data->d_size;
	for (const char *at = start; (at = memchr(at, '(', (size_t)(end - at))); at++)
		take_schema(code, start, at, end);
}

/* The kernels of GPUs are in a library of their own, and the schemas in the one beside it. */
static void
read_schemas(struct plumb_code *code)
{
	static const char beside[] = "libtorch_cpu.so";
	const char *slash = strrchr(code->path, '/');
	int folder = slash ? (int)(slash - code->path + 1) : 0;
	char path[4096];

	if (code->knows_operators)
		return;
	code->knows_operators = true;
	read_section(code, &code->file);
	if (code->operators.count ||
	    snprintf(path, sizeof path, "%.*s%s", folder, code->path, beside) >= (int)sizeof path)
		return;
	if (!plumb_elf_open(&code->schemas, path))
		read_section(code, &code->schemas);
}

/* Does KNOWN end with JOINED? Returns where in it, or NULL. */
static const char *
end_of(const struct plumb_code_operator *known, const char *joined, size_t bytes)
{
	const char *end = known->name + known->bytes - bytes;

	if (known->bytes < bytes)
		return NULL;
	for (size_t i = 0; i < bytes; i++)
		if (joined[i] != end[i] && !(joined[i] == '_' && end[i] == '.'))
			return NULL;
	return end;
}

/* The operator whose function PyTorch calls JOINED, as "add.Tensor". NULL: there is no such
 * schema. */
static const char *
find_whole(const struct plumb_code *code, const char *joined, size_t bytes)
{
	struct plumb_map_cursor at;
	uint64_t hash = plumb_hash_bytes(joined, bytes);

	for (uint32_t i = plumb_map_first(&code->operator_map, hash, &at); i != PLUMB_MAP_NONE;
	     i = plumb_map_next(&code->operator_map, &at)) {
		const struct plumb_code_operator *known = &code->operators.items[i];
		if (known->bytes == bytes && end_of(known, joined, bytes))
			return known->name;
	}
	return NULL;
}

/* The linker keeps one text for two if one ends with the other ("index.Tensor(…" is the end of
 * "_unsafe_index.Tensor(…"). */
static const char *
find_end(const struct plumb_code *code, const char *joined, size_t bytes)
{
	const char *found = NULL;

	for (uint32_t i = 0; i < code->operators.count && !found; i++)
		found = end_of(&code->operators.items[i], joined, bytes);
	return found;
}

/* A length and as many characters, as C++ mangles names; NULL: there are none. */
static const char *
take_name(const char **at, size_t *bytes)
{
	const char *name;
	char *after;
	unsigned long length;

	if (**at < '1' || **at > '9')
		return NULL;
	length = strtoul(*at, &after, 10);
	name = after;
	if (!length || length >= NAME_MAX_BYTES || strnlen(name, length) < length)
		return NULL;
	*bytes = length;
	*at = name + length;
	return name;
}

/* NAME: "add.Tensor", of BYTES. */
static void
set_operation(struct plumb_code_place *place, const char *name, size_t bytes)
{
	const char *dot = memchr(name, '.', bytes);

	snprintf(place->operation_text, sizeof place->operation_text, "aten::%.*s",
	         (int)(dot ? (size_t)(dot - name) : bytes), name);
}

typedef const char *(*find_function)(const struct plumb_code *, const char *, size_t);

/* KERNEL: the overload and the operator as C++ calls it ("add_out" is the overload "out" of "add"),
 * or the operator and then the overload. */
static bool
find_kernel(const struct plumb_code *code, const char *kernel, size_t bytes, find_function find,
            struct plumb_code_place *place)
{
	static const char out[] = "_out";
	const size_t length = sizeof out - 1;
	bool is_out = bytes > 2 * length && !memcmp(kernel + bytes - length, out, length);
	char joined[2 * NAME_MAX_BYTES];
	const char *found = find(code, kernel, bytes);

	if (!found && is_out)
		found = find(code, kernel, bytes -= length);
	for (size_t i = 0; i < bytes && !found; i++) {
		if (kernel[i] != '_')
			continue;
		int used = snprintf(joined, sizeof joined, "%.*s%s%.*s", (int)(bytes - i - 1),
		                    kernel + i + 1, i ? "_" : "", (int)i, kernel);
		found = find(code, joined, (size_t)used);
		if (found) {
			set_operation(place, found, (size_t)used);
			return true;
		}
	}
	if (found)
		set_operation(place, found, bytes);
	return found;
}

/* at::_ops::NAME::call and ::redispatch. */
static bool
find_aten(struct plumb_code *code, const char *symbol, struct plumb_code_place *place)
{
	static const char prefix[] = "_ZN2at4_ops";
	const char *name, *found;
	size_t bytes;

	if (strncmp(symbol, prefix, sizeof prefix - 1))
		return false;
	symbol += sizeof prefix - 1;
	name = take_name(&symbol, &bytes);
	place->redispatch = !strncmp(symbol, "10redispatchE", 13);
	if (!name || (!place->redispatch && strncmp(symbol, "4callE", 6)))
		return false;
	read_schemas(code);
	found = find_whole(code, name, bytes);
	if (!found)
		found = find_end(code, name, bytes);
	set_operation(place, found ? found : name, bytes);
	return true;
}

/*
 * What runs an operator that Python called by its name (torch.ops.aten.NAME): a function whose
 * template argument is the kernel, "wrapper_CUDA_add_Tensor", "wrapper_CUDA_add_out_Tensor_out" or
 * "wrapper_CUDA_Tensor_out_add_out". Only the symbol table has it, which distributions strip.
 */
static bool
find_boxed(struct plumb_code *code, const char *symbol, struct plumb_code_place *place)
{
	static const char prefix[] = "_ZN3c104impl31make_boxed_from_unboxed_functor";
	static const char wrapper[] = "wrapper_";
	const char *at, *name;
	size_t bytes = 0;

	if (strncmp(symbol, prefix, sizeof prefix - 1) || !(name = strstr(symbol, wrapper)))
		return false;
	/* Its length stands before it, perhaps after other digits, and an E behind it. */
	for (const char *digits = name - 1; digits > symbol && *digits >= '0' && *digits <= '9';
	     digits--) {
		at = digits;
		if (take_name(&at, &bytes) == name && *at == 'E')
			break;
		bytes = 0;
	}
	if (bytes < sizeof wrapper)
		return false;
	at = memchr(name + sizeof wrapper - 1, '_', bytes - (sizeof wrapper - 1));
	if (!at)
		return false;
	bytes -= (size_t)(at + 1 - name);
	name = at + 1; /* after the name of the dispatch key */
	read_schemas(code);
	place->redispatch = true;
	return find_kernel(code, name, bytes, find_whole, place) ||
	       find_kernel(code, name, bytes, find_end, place);
}

/* c10d::ProcessGroup::NAME runs the operator c10d::NAME_, or c10d::NAME if it writes to none of its
 * arguments. */
static bool
find_c10d(const char *symbol, struct plumb_code_place *place)
{
	static const char *const prefixes[] = { "_ZN4c10d12ProcessGroup",
		                                "_ZNK4c10d12ProcessGroup" };
	static const char *const pure[] = { "barrier", "send" };
	const char *underscore = "_", *name;
	size_t bytes, i = 0;

	while (i < 2 && strncmp(symbol, prefixes[i], strlen(prefixes[i])))
		i++;
	if (i == 2)
		return false;
	symbol += strlen(prefixes[i]);
	name = take_name(&symbol, &bytes);
	if (!name || *symbol != 'E')
		return false;
	for (i = 0; i < sizeof pure / sizeof *pure; i++)
		if (bytes == strlen(pure[i]) && !memcmp(name, pure[i], bytes))
			underscore = "";
	snprintf(place->operation_text, sizeof place->operation_text, "c10d::%.*s%s", (int)bytes,
	         name, underscore);
	place->redispatch = false;
	return true;
}

void
plumb_code_operator(struct plumb_code *code, struct plumb_code_place *place)
{
	place->operation = NULL;
	if (place->symbol &&
	    (find_aten(code, place->symbol, place) || find_boxed(code, place->symbol, place) ||
	     find_c10d(place->symbol, place)))
		place->operation = place->operation_text;
}

void
plumb_code_operators_free(struct plumb_code *code)
{
	plumb_vec_free(&code->operators);
	plumb_map_free(&code->operator_map);
	plumb_elf_close(&code->schemas);
}
