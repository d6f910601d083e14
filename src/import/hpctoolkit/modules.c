/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Binaries of GPU code. hpcrun saves each module that a GPU gets as gpubins/MD5.gpubin. It names an
 * instruction by this file and by where it is there, in bytes from the file's beginning. So
 * contexts and binaries belong together by content and offset, whatever functions are called.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/search.h"
#include "import/hpctoolkit/hpctoolkit.h"

#define PATH_SHOWN 300

/* ---- which module ---- */

static bool
is_digit(char one)
{
	return (one >= '0' && one <= '9') || (one >= 'a' && one <= 'f');
}

/* The MD5 in "/gpubins/1165a3….gpubin" (in older versions .cubin). False: PATH is no such file. */
static bool
find_md5(struct plumb_slice path, char md5[PLUMB_MD5_DIGITS + 1])
{
	static const char *const ends[] = { ".gpubin", ".cubin" };
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
		size_t end = strlen(ends[i]), bytes = PLUMB_MD5_DIGITS + end, digits = 0;
		const char *name = path.at + path.bytes - bytes;
		if (path.bytes < bytes || memcmp(name + PLUMB_MD5_DIGITS, ends[i], end) != 0 ||
		    (path.bytes > bytes && name[-1] != '/'))
			continue;
		while (digits < PLUMB_MD5_DIGITS && is_digit(name[digits]))
			digits++;
		if (digits < PLUMB_MD5_DIGITS)
			continue;
		memcpy(md5, name, PLUMB_MD5_DIGITS);
		md5[PLUMB_MD5_DIGITS] = '\0';
		return true;
	}
	return false;
}

static struct plumb_slice
module_path(struct hpct_reader *reader, uint64_t at)
{
	const unsigned char *row = plumb_hpct_get(reader, &reader->meta, at, 1, 16);
	return row ? plumb_hpct_text(reader, &reader->meta, hpct_u64(row + 8))
	           : (struct plumb_slice){ NULL, 0 };
}

uint32_t
plumb_hpct_module(struct hpct_reader *reader, uint64_t at)
{
	struct plumb_map_cursor cursor;
	uint64_t hash = plumb_hash_mix(at, 0);
	uint32_t i = at ? plumb_map_first(&reader->module_map, hash, &cursor) : PLUMB_MAP_NONE;
	while (i != PLUMB_MAP_NONE && reader->modules.items[i].at != at)
		i = plumb_map_next(&reader->module_map, &cursor);
	if (i == PLUMB_MAP_NONE && at) {
		struct plumb_slice path = module_path(reader, at);
		struct hpct_module *added = path.at ? plumb_vec_add(&reader->modules) : NULL;
		if (!path.at)
			return PLUMB_NONE;
		i = reader->modules.count - 1;
		if (!added || plumb_map_add(&reader->module_map, hash, i) < 0) {
			reader->no_memory = true;
			return PLUMB_NONE;
		}
		added->at = at;
		added->path = path;
		find_md5(path, added->md5);
	}
	return i != PLUMB_MAP_NONE && *reader->modules.items[i].md5 ? i : PLUMB_NONE;
}

/* ---- its binary ---- */

static int
by_start(const void *x, const void *y)
{
	const struct hpct_function *a = x, *b = y;
	return a->start < b->start ? -1 : a->start > b->start;
}

/* Where the functions are in the file. */
static bool
find_functions(struct hpct_module *own)
{
	uint32_t count = plumb_module_count(own->module);
	uintptr_t first = (uintptr_t)own->binary->bytes;
	own->functions = calloc(count ? count : 1, sizeof *own->functions);
	if (!own->functions)
		return false;
	for (uint32_t i = 0; i < count; i++) {
		const struct plumb_module_function *seen = plumb_module_function(own->module, i);
		uintptr_t text = (uintptr_t)seen->text;
		if (seen->bytes && text >= first && text - first < own->binary->size)
			own->functions[own->function_count++] =
				(struct hpct_function){ text - first, seen->bytes, i };
	}
	qsort(own->functions, own->function_count, sizeof *own->functions, by_start);
	return true;
}

static void
open_binary(struct hpct_reader *reader, struct hpct_module *own)
{
	struct plumb_binaries *binaries = plumb_trace_binaries(reader->trace);
	struct plumb_error error = { 0 };
	own->asked = true;
	own->binary = binaries ? plumb_binaries_find(binaries, own->md5) : NULL;
	if (!own->binary)
		return;
	int code = plumb_module_open(own->binary->bytes, own->binary->size, &own->module, &error);
	if (code == PLUMB_ESYSTEM || (!code && !find_functions(own)))
		reader->no_memory = true;
	else if (code)
		own->why_not = "it is no code for GPUs of NVIDIA, and plumb reads no other";
	else if (!own->function_count)
		own->why_not = "it has no functions";
}

struct hpct_place
plumb_hpct_place(struct hpct_reader *reader, uint32_t module, uint64_t offset)
{
	struct hpct_place place = { .number = PLUMB_NONE };
	struct hpct_module *own = module == PLUMB_NONE ? NULL : &reader->modules.items[module];
	if (own && !own->asked)
		open_binary(reader, own);
	if (!own || !own->function_count)
		return place;
	uint32_t after = plumb_search(i, own->function_count, own->functions[i].start <= offset);
	if (!after || offset - own->functions[after - 1].start >= own->functions[after - 1].bytes)
		return place;
	place.number = own->functions[after - 1].number;
	place.function = plumb_module_function(own->module, place.number);
	place.offset = offset - own->functions[after - 1].start;
	return place;
}

/* ---- what is wrong ---- */

static void
tell_missing(struct hpct_reader *reader, uint32_t missing, uint32_t asked, const char *md5)
{
	plumb_trace_note(reader->trace,
	                 "--binaries has no file with the content of %u of %u GPU binaries that %s "
	                 "names, such as %s.gpubin; give the folder gpubins of hpcrun's "
	                 "measurements",
	                 missing, asked, reader->folder, md5);
}

void
plumb_hpct_tell_modules(struct hpct_reader *reader)
{
	struct plumb_binaries *binaries = plumb_trace_binaries(reader->trace);
	const char *md5 = NULL;
	uint32_t missing = 0, asked = 0;
	for (uint32_t i = 0; binaries && i < reader->modules.count; i++) {
		const struct hpct_module *own = &reader->modules.items[i];
		const struct plumb_binary *other =
			own->asked && !own->binary ? plumb_binaries_misnamed(binaries, own->md5)
						   : NULL;
		asked += own->asked;
		if (other) {
			plumb_trace_note(reader->trace,
			                 "%.*s: its content is not the one that its name says (its "
			                 "MD5 is %s), so it is not used; copy it from hpcrun's "
			                 "measurements again",
			                 PATH_SHOWN, other->path, other->md5);
		} else if (own->asked && !own->binary) {
			missing++;
			md5 = md5 ? md5 : own->md5;
		} else if (own->why_not) {
			plumb_trace_note(reader->trace, "%.*s: %s; its samples have no code",
			                 PATH_SHOWN, own->binary->path, own->why_not);
		} else if (own->module && plumb_module_damaged(own->module)) {
			plumb_trace_note(reader->trace,
			                 "%.*s: is damaged; plumb took what it could read",
			                 PATH_SHOWN, own->binary->path);
		}
	}
	if (missing)
		tell_missing(reader, missing, asked, md5);
}

void
plumb_hpct_free_modules(struct hpct_reader *reader)
{
	for (uint32_t i = 0; i < reader->modules.count; i++) {
		struct hpct_module *own = &reader->modules.items[i];
		plumb_code_rows_free(own->rows);
		plumb_module_free(own->module);
		free(own->functions);
	}
	plumb_vec_free(&reader->modules);
	plumb_map_free(&reader->module_map);
}
