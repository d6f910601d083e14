/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `plumb run --counters LIST --counters-kernels FILE[:N]`: which hardware counters, and of which
 * kernels. The collector knows the chip. Here names are checked, and kernels become hashes, as
 * names of C++ do not fit into a variable.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/counters.h"
#include "base/hash.h"
#include "cli/load.h"
#include "cli/run/options.h"
#include "cli/suggest.h"

/* Names that were probably meant by NAME, or all of them if none is near. */
static void
list_near(const char *name, size_t length, char *text, size_t size)
{
	char word[64];
	snprintf(word, sizeof word, "%.*s", (int)length, name);
	text[0] = '\0';
	for (int all = 0; all < 2 && !text[0]; all++)
		for (const struct plumb_counter *c = plumb_counters; c->name; c++) {
			size_t used = strlen(text);
			if (all || plumb_suggest_is_near(word, c->name))
				snprintf(text + used, size - used, "%s%s", used ? ", " : "",
				         c->name);
		}
}

static int
check_names(const char *list, struct plumb_error *error)
{
	const char *name;
	char near[400];
	size_t length;
	unsigned count = 0;
	for (const char *at = list; plumb_counter_listed(&at, &name, &length); count++) {
		if (!length)
			return plumb_fail(error, PLUMB_EUSAGE,
			                  "--counters has an empty name in \"%s\"", list);
		if ((length == strlen(PLUMB_COUNTERS_ROOFLINE) &&
		     !memcmp(name, PLUMB_COUNTERS_ROOFLINE, length)) ||
		    plumb_counter_find(name, length) || plumb_counter_is_foreign(name, length))
			continue;
		list_near(name, length, near, sizeof near);
		return plumb_fail(error, PLUMB_EUSAGE,
		                  "--counters does not know \"%.*s\"; near: %s. It also takes "
		                  "roofline, and metrics of Nsight Compute's such as "
		                  "dram__bytes_read.sum",
		                  (int)length, name, near);
	}
	return count > PLUMB_COUNTERS_MOST
	               ? plumb_fail(error, PLUMB_EUSAGE, "--counters takes at most %u names",
	                            PLUMB_COUNTERS_MOST)
	               : 0;
}

/* ---- the kernels ---- */

struct kernel {
	uint32_t name; /* string */
	int64_t ns;
};

static int
by_time(const void *a, const void *b)
{
	const struct kernel *x = a, *y = b;
	return x->ns != y->ns ? (x->ns < y->ns) - (x->ns > y->ns)
	                      : (x->name > y->name) - (x->name < y->name);
}

static int
by_name(const void *a, const void *b)
{
	const struct kernel *x = a, *y = b;
	return (x->name > y->name) - (x->name < y->name);
}

/* The kernels of PROFILE, the longest first. Returns how many. */
static uint32_t
rank_kernels(const struct plumb_profile *profile, struct kernel *kernels)
{
	uint32_t count = 0, kept = 0;
	for (uint32_t i = 0; i < profile->values_count; i++) {
		const struct plumb_value *value = &profile->values[i];
		const struct plumb_frame *frame = plumb_context_frame(profile, value->context);
		if (value->metric == PLUMB_METRIC_GPU_TIME && frame->kind == PLUMB_FRAME_KERNEL &&
		    frame->name != PLUMB_NONE)
			kernels[count++] = (struct kernel){ frame->name, value->sum };
	}
	qsort(kernels, count, sizeof *kernels, by_name);
	for (uint32_t i = 0; i < count; i++) {
		if (kept && kernels[kept - 1].name == kernels[i].name)
			kernels[kept - 1].ns += kernels[i].ns;
		else
			kernels[kept++] = kernels[i];
	}
	qsort(kernels, kept, sizeof *kernels, by_time);
	return kept;
}

static int
hash_kernels(const struct plumb_profile *profile, const char *path, uint32_t most, char *text,
             size_t size, struct plumb_error *error)
{
	struct kernel *kernels = calloc(profile->values_count + 1ul, sizeof *kernels);
	size_t used = 0;
	if (!kernels)
		return plumb_fail_memory(error, "for the kernels of %s", path);
	uint32_t count = rank_kernels(profile, kernels);
	for (uint32_t i = 0; i < count && i < most; i++) {
		const char *name = plumb_text(profile, kernels[i].name);
		used += (size_t)snprintf(text + used, size - used, "%s%016llx", i ? "," : "",
		                         (unsigned long long)plumb_hash_bytes(name, strlen(name)));
	}
	free(kernels);
	return count ? 0
	             : plumb_fail(error, PLUMB_EUSAGE,
	                          "--counters-kernels: %s has no GPU kernels; record the program "
	                          "without --counters first",
	                          path);
}

/* "FILE" or "FILE:N". */
static int
read_kernels(const char *given, char *text, size_t size, struct plumb_error *error)
{
	const char *colon = strrchr(given, ':');
	char path[4096];
	unsigned long most = PLUMB_COUNTERS_KERNELS_DEFAULT;
	snprintf(path, sizeof path, "%s", given);
	if (access(given, F_OK) != 0 && colon && colon[1] &&
	    strspn(colon + 1, "0123456789") == strlen(colon + 1)) {
		snprintf(path, sizeof path, "%.*s", (int)(colon - given), given);
		most = strtoul(colon + 1, NULL, 10);
		if (most < 1 || most > PLUMB_COUNTERS_KERNELS_MOST)
			return plumb_fail(error, PLUMB_EUSAGE,
			                  "--counters-kernels takes from 1 to %u kernels, not %s",
			                  PLUMB_COUNTERS_KERNELS_MOST, colon + 1);
	}
	struct plumb_profile profile = { 0 };
	int code = plumb_load(&profile, path, PLUMB_LOAD_TOTALS, NULL, error);
	if (!code)
		code = hash_kernels(&profile, path, (uint32_t)most, text, size, error);
	plumb_profile_free(&profile);
	return code;
}

int
plumb_run_counters_read(const struct plumb_options *given, struct plumb_run_options *options,
                        struct plumb_error *error)
{
	const char *kernels = plumb_options_text(given, "counters-kernels");
	options->counters = plumb_options_text(given, "counters");
	if (!options->counters)
		return kernels ? plumb_fail(error, PLUMB_EUSAGE,
		                            "--counters-kernels says what --counters looks at; add "
		                            "--counters=roofline")
		               : 0;
	int code = check_names(options->counters, error);
	if (code)
		return code;
	if (strlen(options->counters) >= PLUMB_RUN_COUNTERS_BYTES)
		return plumb_fail(error, PLUMB_EUSAGE, "--counters is too long");
	if (options->gpu != PLUMB_GPU_ACTIVITY)
		return plumb_fail(error, PLUMB_EUSAGE,
		                  "--counters needs records of GPU work; leave out --no-gpu, "
		                  "--gpu and --traffic=full");
	if (options->stalls)
		return plumb_fail(error, PLUMB_EUSAGE,
		                  "--counters contradicts --stalls: both need the GPU's counters; "
		                  "make two recordings");
	return kernels ? read_kernels(kernels, options->counters_kernels,
	                              sizeof options->counters_kernels, error)
	               : 0;
}
