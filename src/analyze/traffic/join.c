/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/traffic/join.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/map.h"

/* Parts of an access: instruction, then who reached what. */
enum { ACCESS_CODE, ACCESS_OFFSET, ACCESS_INITIATOR, ACCESS_OWNER, ACCESS_OBJECT, ACCESS_KIND };
#define ACCESS_PARTS 6

struct joining {
	const struct plumb_traffic *traffic;
	const struct plumb_profile *stalls;
	struct plumb_traffic_join *join;
	struct plumb_map codes;       /* by hash and name: a code function of the traffic */
	plumb_traffic_cells accesses; /* of one instruction: most bytes first */
	uint32_t *first;              /* by code function of the traffic: of its accesses */
};

/* ---- which code is the same ---- */

static const char *
hash_text(const struct plumb_profile *p, uint32_t row)
{
	return plumb_text(p, p->code_objects[p->code_functions[row].object].hash);
}

static uint64_t
code_hash(const struct plumb_profile *p, uint32_t row)
{
	const char *hash = hash_text(p, row), *name = plumb_text(p, p->code_functions[row].name);

	return plumb_hash_mix(plumb_hash_bytes(hash, strlen(hash)),
	                      name ? plumb_hash_bytes(name, strlen(name)) : 0);
}

/* The first code function of the traffic that has the same code as function ROW of P; PLUMB_NONE:
 * there is none, or nobody knows. */
static uint32_t
find_code(const struct joining *j, const struct plumb_profile *p, uint32_t row)
{
	const struct plumb_profile *own = j->traffic->profile;
	const char *hash = hash_text(p, row), *name = plumb_text(p, p->code_functions[row].name);
	struct plumb_map_cursor at;

	if (!hash || !name)
		return PLUMB_NONE;
	for (uint32_t i = plumb_map_first(&j->codes, code_hash(p, row), &at); i != PLUMB_MAP_NONE;
	     i = plumb_map_next(&j->codes, &at)) {
		const char *its = plumb_text(own, own->code_functions[i].name);

		if (its && !strcmp(its, name) && !strcmp(hash_text(own, i), hash))
			return i;
	}
	return PLUMB_NONE;
}

static bool
add_access(struct joining *j, uint32_t i)
{
	const struct plumb_profile *p = j->traffic->profile;
	const struct plumb_transfer_row *t = &p->transfers[i];
	const struct plumb_traffic_fact *f = &j->traffic->facts[i];
	uint32_t object = f->owner == f->from ? t->from_object : t->to_object, code;
	struct plumb_traffic_sum sum = { t->bytes, t->accesses, PLUMB_UNKNOWN,
		                         t->error_bytes * t->error_bytes };

	if (!plumb_access_is_code(t->kind) || f->from == f->to || t->function == PLUMB_NONE ||
	    t->offset < 0 || t->offset >= UINT32_MAX || !hash_text(p, t->function))
		return true;
	code = find_code(j, p, t->function);
	if (code == PLUMB_NONE) {
		code = t->function;
		if (plumb_map_add(&j->codes, code_hash(p, code), code))
			return false;
	}
	uint32_t part[] = { code, (uint32_t)t->offset, f->initiator, f->owner, object, t->kind };
	return plumb_traffic_cell_add(&j->accesses, part, ACCESS_PARTS, &sum);
}

static bool
find_accesses(struct joining *j)
{
	const struct plumb_profile *p = j->traffic->profile;

	for (uint32_t i = 0; i < p->transfers_count; i++)
		if (!add_access(j, i))
			return false;
	plumb_traffic_cells_join(&j->accesses);
	plumb_traffic_cells_rank(&j->accesses, 2);
	j->first = malloc(((size_t)p->code_functions_count + 1) * sizeof *j->first);
	if (!j->first)
		return false;
	for (uint32_t r = 0; r < p->code_functions_count; r++)
		j->first[r] = PLUMB_NONE;
	for (uint32_t i = j->accesses.count; i-- > 0;)
		j->first[j->accesses.items[i].part[ACCESS_CODE]] = i;
	return true;
}

/* The first access at OFFSET of the traffic's function CODE; PLUMB_NONE: it reaches nobody. */
static uint32_t
access_at(const struct joining *j, uint32_t code, int64_t offset)
{
	uint32_t low = code == PLUMB_NONE ? PLUMB_NONE : j->first[code], high = j->accesses.count;

	if (low == PLUMB_NONE || offset < 0)
		return PLUMB_NONE;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		const uint32_t *part = j->accesses.items[middle].part;

		if (part[ACCESS_CODE] < code ||
		    (part[ACCESS_CODE] == code && part[ACCESS_OFFSET] < offset))
			low = middle + 1;
		else
			high = middle;
	}
	if (low == j->accesses.count || j->accesses.items[low].part[ACCESS_CODE] != code ||
	    j->accesses.items[low].part[ACCESS_OFFSET] != offset)
		return PLUMB_NONE;
	return low;
}

/* ---- are they of one build? ---- */

static bool
has_module(const struct plumb_profile *p, const char *hash)
{
	for (uint32_t i = 0; i < p->code_objects_count; i++) {
		const char *its = plumb_text(p, p->code_objects[i].hash);

		if (its && !strcmp(its, hash))
			return true;
	}
	return false;
}

/* Was the module of function ROW counted before, with another of the functions that have
 * accesses? */
static bool
was_counted(const struct joining *j, uint32_t row)
{
	const struct plumb_profile *p = j->traffic->profile;

	for (uint32_t r = 0; r < row; r++)
		if (j->first[r] != PLUMB_NONE && !strcmp(hash_text(p, r), hash_text(p, row)))
			return true;
	return false;
}

#define MODULES_MOST 4096 /* looked at: each is compared with all before it */

static bool
compare_builds(struct joining *j)
{
	const struct plumb_profile *p = j->traffic->profile;
	unsigned char *found = calloc((size_t)p->code_functions_count + 1, 1);
	uint32_t modules = 0;

	for (uint32_t r = 0; found && r < j->stalls->code_functions_count; r++) {
		uint32_t code = find_code(j, j->stalls, r);

		if (code != PLUMB_NONE)
			found[code] = 1;
	}
	for (uint32_t r = 0; found && r < p->code_functions_count; r++) {
		if (j->first[r] == PLUMB_NONE)
			continue;
		j->join->functions++;
		j->join->functions_missing += !found[r];
		if (modules++ >= MODULES_MOST || was_counted(j, r))
			continue;
		j->join->builds++;
		j->join->builds_missing += !has_module(j->stalls, hash_text(p, r));
	}
	free(found);
	return found != NULL;
}

static int
check(const struct joining *j, struct plumb_error *error)
{
	const struct plumb_traffic_join *join = j->join;

	if (!j->accesses.count)
		return plumb_fail(error, PLUMB_EEMPTY,
		                  "no kernel's access to another device's memory has its "
		                  "instruction in the traffic; record it with plumb run "
		                  "--traffic=full");
	if (!j->stalls->code_samples_count)
		return plumb_fail(error, PLUMB_EEMPTY,
		                  "the profile of --stalls has no samples of GPU code; record it "
		                  "with plumb run --stalls");
	if (join->functions_missing < join->functions)
		return 0;
	if (join->builds_missing < join->builds)
		return plumb_fail(error, PLUMB_EEMPTY,
		                  "none of the %" PRIu32
		                  " functions with traffic has samples in the profile of --stalls",
		                  join->functions);
	return plumb_fail(error, PLUMB_EINPUT,
	                  "the two recordings have no GPU code in common (%" PRIu32
	                  " modules with traffic, none of them in the profile of --stalls); record "
	                  "both with the same build of the program",
	                  join->builds);
}

/* ---- what waits ---- */

static void
print_insn(const struct plumb_kernel_code *code, struct plumb_slice_place place, char *text,
           size_t size)
{
	const struct plumb_insn *insn = &code->insns[place.function].items[place.insn];
	const struct plumb_code_function *function =
		&code->profile->code_functions[code->rows[place.function]];

	*text = '\0';
	code->input.isa->print(code->input.architecture,
	                       (const char *)function->text.data + insn->offset, insn, text, size);
}

static void
describe(const struct joining *j, struct plumb_traffic_wait *wait, uint32_t access)
{
	const struct plumb_traffic_cell *first = &j->accesses.items[access];

	wait->object = first->part[ACCESS_OBJECT];
	wait->initiator = first->part[ACCESS_INITIATOR];
	wait->owner = first->part[ACCESS_OWNER];
	wait->kind = first->part[ACCESS_KIND];
	for (uint32_t i = access; i < j->accesses.count; i++) {
		const struct plumb_traffic_cell *cell = &j->accesses.items[i];
		bool other = true;

		if (cell->part[ACCESS_CODE] != first->part[ACCESS_CODE] ||
		    cell->part[ACCESS_OFFSET] != first->part[ACCESS_OFFSET])
			break;
		for (uint32_t k = access; k < i; k++)
			other &= memcmp(&j->accesses.items[k].part[ACCESS_INITIATOR],
			                &cell->part[ACCESS_INITIATOR], 2 * sizeof(uint32_t)) != 0;
		wait->pairs += other;
		plumb_traffic_sum_add(&wait->sum, &cell->sum);
	}
}

/* The wait for the instruction at OFFSET of FUNCTION, of the kernel that is added last. */
static struct plumb_traffic_wait *
wait_for(struct joining *j, const struct plumb_kernel_code *code, struct plumb_slice_place place,
         uint32_t access, uint32_t first)
{
	uint32_t function = code->rows[place.function];
	int64_t offset = code->insns[place.function].items[place.insn].offset;
	struct plumb_traffic_wait *wait;

	for (uint32_t i = first; i < j->join->waits.count; i++)
		if (j->join->waits.items[i].function == function &&
		    j->join->waits.items[i].offset == offset)
			return &j->join->waits.items[i];
	wait = plumb_vec_add(&j->join->waits);
	if (!wait)
		return NULL;
	wait->kernel = j->join->kernels.count - 1;
	wait->function = function;
	wait->traffic_function = j->accesses.items[access].part[ACCESS_CODE];
	wait->offset = offset;
	wait->part_ns = PLUMB_UNKNOWN;
	print_insn(code, place, wait->instruction, sizeof wait->instruction);
	describe(j, wait, access);
	return wait;
}

/* Adds what STALL waits for of the traffic. */
static bool
add_stall(struct joining *j, const struct plumb_kernel_code *code, const struct plumb_stall *stall,
          uint32_t first)
{
	for (uint32_t c = 0; c < stall->cause_count; c++) {
		const struct plumb_stall_cause *cause = &stall->causes[c];
		struct plumb_traffic_wait *wait;
		uint32_t row, access;
		const struct plumb_insn *insn;

		if (!cause->has_place || !cause->samples)
			continue;
		row = code->rows[cause->place.function];
		insn = &code->insns[cause->place.function].items[cause->place.insn];
		access = access_at(j, find_code(j, j->stalls, row), insn->offset);
		if (access == PLUMB_NONE)
			continue;
		wait = wait_for(j, code, cause->place, access, first);
		if (!wait)
			return false;
		if (cause->samples > wait->most) {
			wait->most = cause->samples;
			wait->stall_function = code->rows[stall->place.function];
			wait->stall_traffic_function =
				find_code(j, j->stalls, wait->stall_function);
			wait->stall_offset =
				code->insns[stall->place.function].items[stall->place.insn].offset;
			wait->reason = plumb_kernel_reason_word(code, stall->reason);
			print_insn(code, stall->place, wait->stalled, sizeof wait->stalled);
		}
		wait->stalls++;
		wait->samples += cause->samples;
		wait->confidence += cause->confidence * (double)cause->samples;
		j->join->kernels.items[wait->kernel].remote += cause->samples;
	}
	return true;
}

static void
finish_kernel(struct joining *j, const struct plumb_kernel *kernel, uint32_t first)
{
	const struct plumb_traffic_joined_kernel *k =
		&j->join->kernels.items[j->join->kernels.count - 1];

	for (uint32_t i = first; i < j->join->waits.count; i++) {
		struct plumb_traffic_wait *wait = &j->join->waits.items[i];

		/* The code goes, and its words with it: those of the profile stay. */
		wait->reason = plumb_stall_reason_find(wait->reason)->word;
		wait->confidence /= (double)wait->samples;
		wait->share = k->waiting ? (double)wait->samples / (double)k->waiting : NAN;
		if (kernel->gpu_ns != PLUMB_UNKNOWN && kernel->samples)
			wait->part_ns = (int64_t)((double)kernel->gpu_ns * (double)wait->samples /
			                          (double)kernel->samples);
	}
}

static bool
has_traffic(const struct joining *j, const struct plumb_kernel *kernel)
{
	for (uint32_t i = 0; i < kernel->part_count; i++) {
		uint32_t code = find_code(j, j->stalls, kernel->parts[i].function);

		if (code != PLUMB_NONE && j->first[code] != PLUMB_NONE)
			return true;
	}
	return false;
}

static int
add_kernel(struct joining *j, const struct plumb_kernels *kernels, uint32_t number,
           struct plumb_error *error)
{
	const struct plumb_kernel *kernel = &kernels->items[number];
	struct plumb_kernel_code code;
	struct plumb_sliced slice = { 0 };
	struct plumb_traffic_joined_kernel *k = plumb_vec_add(&j->join->kernels);
	uint32_t first = j->join->waits.count;
	bool ok = k != NULL;
	int failed;

	if (!ok)
		return plumb_fail_memory(error, "for the stalls");
	k->function = kernel->function;
	k->gpu_ns = kernel->gpu_ns;
	k->waiting = kernel->waiting;
	failed = plumb_kernel_code_load(kernels, number, &code, error);
	if (failed)
		return failed;
	if (!code.problem) {
		failed = plumb_slice_make(&code.input, &slice, error);
		if (failed && failed != PLUMB_ESYSTEM) {
			k->problem = strdup(error->message);
			failed = k->problem ? 0 : PLUMB_ESYSTEM;
		}
	} else {
		k->problem = strdup(code.problem);
		ok = k->problem != NULL;
	}
	for (uint32_t s = 0; ok && !failed && s < slice.stall_count; s++)
		if (slice.stalls[s].class != PLUMB_STALL_NONE)
			ok = add_stall(j, &code, &slice.stalls[s], first);
	finish_kernel(j, kernel, first);
	plumb_slice_free(&slice);
	plumb_kernel_code_free(&code);
	if (!failed && !ok)
		failed = plumb_fail_memory(error, "for the stalls");
	return failed;
}

static int
compare_waits(const void *a, const void *b)
{
	const struct plumb_traffic_wait *one = a, *two = b;

	if (one->samples != two->samples)
		return one->samples > two->samples ? -1 : 1;
	if (one->kernel != two->kernel)
		return one->kernel < two->kernel ? -1 : 1;
	return one->offset < two->offset ? -1 : one->offset > two->offset;
}

static int
add_kernels(struct joining *j, struct plumb_error *error)
{
	struct plumb_kernels kernels;
	int code = plumb_kernels_find(j->stalls, &kernels, error);

	if (code)
		return code;
	for (uint32_t i = 0; !code && i < kernels.count; i++)
		if (kernels.items[i].samples && has_traffic(j, &kernels.items[i]))
			code = add_kernel(j, &kernels, i, error);
	plumb_kernels_free(&kernels);
	if (j->join->waits.count)
		qsort(j->join->waits.items, j->join->waits.count, sizeof *j->join->waits.items,
		      compare_waits);
	return code;
}

int
plumb_traffic_join_make(const struct plumb_traffic *traffic, const struct plumb_profile *stalls,
                        struct plumb_traffic_join *join, struct plumb_error *error)
{
	struct joining j = { .traffic = traffic, .stalls = stalls, .join = join };
	int code = 0;

	*join = (struct plumb_traffic_join){ .stalls = stalls };
	if (!find_accesses(&j) || !compare_builds(&j))
		code = plumb_fail_memory(error, "for the stalls");
	if (!code)
		code = check(&j, error);
	if (!code)
		code = add_kernels(&j, error);
	plumb_map_free(&j.codes);
	plumb_vec_free(&j.accesses);
	free(j.first);
	return code;
}

void
plumb_traffic_join_free(struct plumb_traffic_join *join)
{
	for (uint32_t i = 0; i < join->kernels.count; i++)
		free(join->kernels.items[i].problem);
	plumb_vec_free(&join->kernels);
	plumb_vec_free(&join->waits);
	*join = (struct plumb_traffic_join){ 0 };
}
