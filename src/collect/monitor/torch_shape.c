/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/monitor/torch_shape.h"

#include <dlfcn.h>
#include <string.h>

#include "collect/collector.h"

enum {
	VALUES_MAX = 64, /* arguments of an operator that are looked at */
	LIST_MAX = 16,   /* members of a list that are shown */
	DIMENSIONS_MAX = 64,
	TENSOR_BYTES = 192, /* of a TensorImpl that are searched; it has more */
	TAGS = 40,
};

/* c10::IValue */
struct value {
	union {
		const char *pointer;
		int64_t number;
	};
	uint32_t tag;
	uint32_t pad;
};

/* c10::IntArrayRef: returned in two registers. */
struct numbers {
	const int64_t *items;
	size_t count;
};

/* Tags that have not moved since 1.13; the others are asked for. */
enum { TAG_NONE = 0, TAG_TENSOR = 1, TAG_DOUBLE = 3, TAG_COMPLEX = 4, TAG_INT = 5 };

static struct {
	int inputs, outputs; /* in the record; -1: not known */
	const char *plain;   /* what a plain tensor's virtual table is */
	const char *undefined;
	struct numbers (*sizes)(const void *tensor);
	struct numbers (*strides)(const void *tensor);
	int type, keys;  /* in a tensor */
	uint64_t python; /* its dispatch key */
	uint32_t tag_bool, tag_list;
	int items; /* of a list; 0 not found yet, -1 not to be found */
} known;

/* at::ScalarType, from 0. */
static const char *const type_names[] = {
	"uint8",           "int8",
	"int16",           "int32",
	"int64",           "float16",
	"float32",         "float64",
	"complex32",       "complex64",
	"complex128",      "bool",
	"qint8",           "quint8",
	"qint32",          "bfloat16",
	"quint4x2",        "quint2x4",
	"bits1x8",         "bits2x4",
	"bits4x2",         "bits8",
	"bits16",          "float8_e5m2",
	"float8_e4m3fn",   "float8_e5m2fnuz",
	"float8_e4m3fnuz", "uint16",
	"uint32",          "uint64",
};

/* ---- text ---- */

struct out {
	char *text;
	size_t used, size;
};

static void
put_text(struct out *out, const char *text)
{
	size_t bytes = strlen(text);

	if (bytes > out->size - out->used)
		bytes = out->size - out->used;
	memcpy(out->text + out->used, text, bytes);
	out->used += bytes;
}

static void
put_number(struct out *out, int64_t number)
{
	char digits[24], *at = digits + sizeof digits - 1;
	uint64_t rest = number < 0 ? -(uint64_t)number : (uint64_t)number;

	*at = '\0';
	do
		*--at = (char)('0' + rest % 10);
	while (rest /= 10);
	if (number < 0)
		*--at = '-';
	put_text(out, at);
}

static void
put_numbers(struct out *out, const char *open, struct numbers numbers, const char *close)
{
	put_text(out, open);
	for (size_t i = 0; i < numbers.count; i++) {
		if (i)
			put_text(out, ",");
		put_number(out, numbers.items[i]);
	}
	put_text(out, close);
}

/* ---- tensors ---- */

static uint64_t
word_at(const void *base, int offset)
{
	uint64_t word;
	memcpy(&word, (const char *)base + offset, sizeof word);
	return word;
}

static bool
is_contiguous(struct numbers sizes, struct numbers strides)
{
	int64_t expected = 1;

	for (size_t i = sizes.count; i-- > 0;) {
		if (sizes.items[i] == 0)
			return true;
		if (sizes.items[i] != 1 && strides.items[i] != expected)
			return false;
		expected *= sizes.items[i];
	}
	return true;
}

static void
put_tensor(struct out *out, const char *tensor)
{
	struct numbers sizes, strides;
	uint16_t type;

	if (!tensor || tensor == known.undefined) {
		put_text(out, "None");
		return;
	}
	if ((const char *)word_at(tensor, 0) != known.plain ||
	    word_at(tensor, known.keys) & known.python) {
		put_text(out, "tensor");
		return;
	}
	memcpy(&type, tensor + known.type, sizeof type);
	sizes = known.sizes(tensor);
	strides = known.strides(tensor);
	if (sizes.count > DIMENSIONS_MAX || strides.count != sizes.count) {
		put_text(out, "tensor");
		return;
	}
	put_text(out, type < sizeof type_names / sizeof *type_names ? type_names[type] : "unknown");
	put_numbers(out, "[", sizes, "]");
	if (!is_contiguous(sizes, strides))
		put_numbers(out, " strides (", strides, ")");
}

/* ---- values ---- */

/* A range of values between two pointers of a vector. False: that is no vector of values. */
static bool
values_between(const struct value *begin, const struct value *end, size_t *count)
{
	uintptr_t from = (uintptr_t)begin, to = (uintptr_t)end;

	*count = (to - from) / sizeof *begin;
	if (from == to)
		return from == 0 || from >= 4096;
	return from >= 4096 && from % 8 == 0 && to > from && (to - from) % sizeof *begin == 0 &&
	       *count < 1 << 20;
}

/* The members of a list; false: unknown. Its vector follows one count of references, or two. */
static bool
list_values(const char *list, const struct value **values, size_t *count)
{
	for (int at = known.items ? known.items : 16; list && at > 0 && at <= 24; at += 8) {
		*values = (const struct value *)word_at(list, at);
		if (values_between(*values, (const struct value *)word_at(list, at + 8), count) &&
		    (!*count || (*values)->tag < TAGS)) {
			if (*count)
				known.items = at;
			return true;
		}
		if (known.items)
			break;
	}
	return false;
}

static void put_value(struct out *out, const struct value *value, bool in_list);

static void
put_list(struct out *out, const char *list)
{
	const struct value *values;
	size_t count;

	if (!known.tag_list || !list_values(list, &values, &count)) {
		put_text(out, "[...]");
		return;
	}
	put_text(out, "[");
	for (size_t i = 0; i < count && i < LIST_MAX; i++) {
		if (i)
			put_text(out, ", ");
		put_value(out, &values[i], true);
	}
	put_text(out, count > LIST_MAX ? ", ...]" : "]");
}

/* A number alone may be another at each call, and shapes are what is asked for; in a list it is
 * itself a shape, a stride, a padding. */
static void
put_value(struct out *out, const struct value *value, bool in_list)
{
	if (value->tag == TAG_TENSOR)
		put_tensor(out, value->pointer);
	else if (value->tag == TAG_NONE)
		put_text(out, "None");
	else if (value->tag == TAG_INT && in_list)
		put_number(out, value->number);
	else if (value->tag == TAG_INT)
		put_text(out, "int");
	else if (value->tag == TAG_DOUBLE)
		put_text(out, "float");
	else if (value->tag == TAG_COMPLEX)
		put_text(out, "complex");
	else if (known.tag_bool && value->tag == known.tag_bool)
		put_text(out, "bool");
	else if (known.tag_list && value->tag == known.tag_list && !in_list)
		put_list(out, value->pointer);
	else
		put_text(out, "...");
}

static void
put_values(struct out *out, const struct value *values, size_t count)
{
	for (size_t i = 0; i < count && i < VALUES_MAX; i++) {
		if (i)
			put_text(out, ", ");
		put_value(out, &values[i], false);
	}
	if (count > VALUES_MAX)
		put_text(out, ", ...");
}

/* The tag of a list, from the first operator that must have one: their schemas are as old as
 * they. */
static void
learn_list(const char *name, const struct value *values, size_t count)
{
	static const struct {
		const char *name;
		unsigned argument;
	} lists[] = {
		{ "aten::empty", 0 },  { "aten::empty_strided", 0 }, { "aten::zeros", 0 },
		{ "aten::ones", 0 },   { "aten::randn", 0 },         { "aten::rand", 0 },
		{ "aten::cat", 0 },    { "aten::stack", 0 },         { "aten::view", 1 },
		{ "aten::expand", 1 }, { "aten::as_strided", 1 },    { "aten::reshape", 1 },
	};

	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
		const struct value *value = &values[lists[i].argument], *members;
		size_t of_list;

		if (lists[i].argument < count && !strcmp(name, lists[i].name) &&
		    value->tag > known.tag_bool && value->tag < TAGS &&
		    list_values(value->pointer, &members, &of_list) && of_list)
			known.tag_list = value->tag;
	}
}

size_t
torch_shape_inputs(const void *record, const char *name, char *text, size_t size)
{
	const struct value *values = (const struct value *)word_at(record, known.inputs);
	uint64_t count = word_at(record, known.inputs + 8);
	struct out out = { text, 0, size };

	if (!count || count > 1 << 16 || (uintptr_t)values < 4096 || (uintptr_t)values % 8)
		return 0;
	if (plumb_unlikely(!known.tag_list) && known.tag_bool)
		learn_list(name, values, count);
	put_text(&out, "(");
	out.size -= 5; /* for what closes a text that is cut off */
	put_values(&out, values, count);
	bool cut = out.used == out.size;
	out.size = size;
	put_text(&out, cut ? " ...)" : ")");
	return out.used;
}

size_t
torch_shape_outputs(const void *record, char *text, size_t size)
{
	struct out out = { text, 0, size };
	const struct value *values;
	size_t count;

	if (known.outputs < 0)
		return 0;
	values = (const struct value *)word_at(record, known.outputs);
	if (!values_between(values, (const struct value *)word_at(record, known.outputs + 8),
	                    &count) ||
	    !count)
		return 0;
	for (size_t i = 0; i < count && i < VALUES_MAX; i++)
		if (values[i].tag >= TAGS)
			return 0;
	if (count > 1)
		put_text(&out, "(");
	out.size -= 5;
	put_values(&out, values, count);
	bool cut = out.used == out.size;
	out.size = size;
	if (cut)
		put_text(&out, " ...");
	if (count > 1)
		put_text(&out, ")");
	return out.used;
}

/* ---- finding the layout ---- */

/* A c10::TypePtr, returned in memory. */
struct type {
	const void *type;
	void *more[2];
};

/* The tag of a truth value: the one whose type is c10::BoolType. Those before it are numbers. */
static void
find_bool(void *library)
{
	enum { LAST = 10 };
	static const char empty[256];
	struct type (*type_of)(const struct value *);
	const void *(*bool_type)(const void **room), *room[3] = { 0 }, *wanted;

	type_of = (struct type(*)(const struct value *))plumb_real_dlsym(
		library, "_ZN3c106IValue7TagTypeINS_4TypeEE3getERKS0_");
	bool_type =
		(const void *(*)(const void **))plumb_real_dlsym(library, "_ZN3c108BoolType3getEv");
	if (!type_of || !bool_type)
		return;
	/* A plain pointer, or returned in memory as before. */
	wanted = bool_type(room);
	if (wanted == room)
		wanted = room[0];
	for (uint32_t tag = TAG_INT + 1; !known.tag_bool && tag <= LAST; tag++) {
		struct value value = { .pointer = empty, .tag = tag };
		if (type_of(&value).type == wanted)
			known.tag_bool = tag;
	}
}

/* The number of the dispatch key NAME, or -1. */
static int
key_of(const char *(*name_of)(uint16_t), const char *name)
{
	for (uint16_t key = 1; key < 256; key++) {
		const char *text = name_of(key);
		if (text && !strcmp(text, name))
			return key;
	}
	return -1;
}

/* at::TensorBase, returned in memory. */
struct made {
	const char *tensor;
	void *more[2];
};

/* Where all TENSORS have what is expected; -1 when there is none or more than one such place. */
static int
find_type(const char *const *tensors, const uint8_t *types, int count)
{
	int found = -1;

	for (int at = 8; at + 2 <= TENSOR_BYTES; at += 2) {
		bool fits = true;
		for (int i = 0; i < count; i++) {
			uint16_t type;
			memcpy(&type, tensors[i] + at, sizeof type);
			fits &= type == types[i];
		}
		if (fits && found >= 0)
			return -1;
		if (fits)
			found = at;
	}
	return found;
}

static int
find_keys(const char *const *tensors, int count, uint64_t needed, uint64_t allowed)
{
	int found = -1;

	for (int at = 8; at + 8 <= TENSOR_BYTES; at += 8) {
		bool fits = true;
		for (int i = 0; i < count; i++) {
			uint64_t word = word_at(tensors[i], at);
			fits &= (word & needed) == needed && !(word & ~allowed);
		}
		if (fits && found >= 0)
			return -1;
		if (fits)
			found = at;
	}
	return found;
}

static bool
same_numbers(struct numbers numbers, const int64_t *expected, size_t count)
{
	return numbers.count == count && !memcmp(numbers.items, expected, count * sizeof *expected);
}

/* Makes tensors and finds in them what is known of them. They stay: nothing here knows how to free
 * one, and they are small. NULL, or what is wrong. */
static const char *
find_tensor(void *library)
{
	enum { MADE = 4 };
	static const uint8_t types[MADE] = { 7, 3, 6, 1 };
	static const int64_t sizes[MADE][3] = { { 3, 5 }, { 2, 7, 11 }, { 13 }, { 4, 4 } };
	static const int64_t strides[MADE][3] = { { 1, 3 }, { 77, 11, 1 }, { 1 }, { 4, 1 } };
	static const size_t dimensions[MADE] = { 2, 3, 1, 2 };
	static const char *const key_names[] = { "CPU", "AutogradCPU", "AutocastCPU",
		                                 "ADInplaceOrView", "Python" };
	struct made (*make)(struct numbers, struct numbers, int8_t, bool);
	uint64_t (*set_of)(uint16_t);
	const char *(*name_of)(uint16_t);
	const char *tensors[MADE], *table, **undefined;
	uint64_t keys[5];

	make = (struct made(*)(struct numbers, struct numbers, int8_t, bool))plumb_real_dlsym(
		library,
		"_ZN2at6detail17empty_strided_cpuEN3c108ArrayRefIlEES3_NS1_10ScalarTypeEb");
	set_of = (uint64_t (*)(uint16_t))plumb_real_dlsym(
		library, "_ZN3c1024getRuntimeDispatchKeySetENS_11DispatchKeyE");
	name_of = (const char *(*)(uint16_t))plumb_real_dlsym(library,
	                                                      "_ZN3c108toStringENS_11DispatchKeyE");
	known.sizes = (struct numbers(*)(const void *))plumb_real_dlsym(
		library, "_ZNK3c1010TensorImpl12sizes_customEv");
	known.strides = (struct numbers(*)(const void *))plumb_real_dlsym(
		library, "_ZNK3c1010TensorImpl14strides_customEv");
	table = plumb_real_dlsym(library, "_ZTVN3c1010TensorImplE");
	undefined = plumb_real_dlsym(library, "_ZN3c1019UndefinedTensorImpl10_singletonE");
	if (!make || !set_of || !name_of || !known.sizes || !known.strides || !table || !undefined)
		return "it lacks functions that return a tensor's shape";
	known.plain = table + 16;
	known.undefined = (const char *)undefined;
	for (int i = 0; i < 5; i++) {
		int key = key_of(name_of, key_names[i]);
		if (key < 0)
			return "its dispatch keys have other names";
		keys[i] = set_of((uint16_t)key);
	}
	known.python = keys[4];
	for (int i = 0; i < MADE; i++) {
		tensors[i] =
			make((struct numbers){ sizes[i], dimensions[i] },
		             (struct numbers){ strides[i], dimensions[i] }, (int8_t)types[i], false)
				.tensor;
		if (!tensors[i] || (const char *)word_at(tensors[i], 0) != known.plain ||
		    !same_numbers(known.sizes(tensors[i]), sizes[i], dimensions[i]) ||
		    !same_numbers(known.strides(tensors[i]), strides[i], dimensions[i]))
			return "a tensor made for a test has another shape";
	}
	known.type = find_type(tensors, types, MADE);
	known.keys = find_keys(tensors, MADE, keys[0], keys[0] | keys[1] | keys[2] | keys[3]);
	if (known.type < 0 || known.keys < 0 || !known.python)
		return "the data type of a tensor was not found";
	return NULL;
}

int
torch_shape_find(const struct torch_abi *abi, const char **note, struct plumb_error *error)
{
	const char *wrong = "its record functions have unknown fields";
	void *library = dlopen(abi->library, RTLD_NOLOAD | RTLD_LAZY);

	*note = NULL;
	if (library && abi->sequence > 0) {
		known.inputs = abi->sequence + 8;
		known.outputs = abi->outputs;
		wrong = find_tensor(library);
		find_bool(library);
	}
	if (library)
		dlclose(library); /* PyTorch is never unloaded */
	if (wrong)
		return plumb_fail(error, PLUMB_ESYSTEM, "shapes are not kept for this PyTorch: %s",
		                  wrong);
	if (known.outputs < 0)
		*note = "shapes of outputs are not kept: at::RecordFunction has no empty list of "
			"them where it should";
	else if (!known.tag_bool)
		*note = "lists and truth values are shown as \"...\": their numbers in "
			"c10::IValue are not known";
	return 0;
}
