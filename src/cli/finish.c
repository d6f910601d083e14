/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/finish.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyze/analyze.h"
#include "analyze/iterations_count.h"
#include "analyze/windows.h"
#include "cli/demangle.h"
#include "cli/progress.h"
#include "model/metric.h"
#include "settle/join.h"
#include "settle/settle.h"
#include "store/store.h"

#define FAILED_EARLY_NS 1000000000 /* CPU time in which a program only started */

/* ---- progress: a part of one bar ---- */

struct stage {
	struct plumb_progress *bar;
	double from, to;
	char *warnings; /* lines of settle, malloced: printed when the bar is gone */
};

static void
stage_set(void *data, double part)
{
	const struct stage *stage = data;
	plumb_progress_set(stage->bar, stage->from + (stage->to - stage->from) * part);
}

/* ---- inputs ---- */

static bool
is_folder(const char *path)
{
	struct stat status;
	return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

static void
print_warnings(char *warnings, FILE *err)
{
	char *save = NULL;
	for (char *line = warnings ? strtok_r(warnings, "\n", &save) : NULL; line;
	     line = strtok_r(NULL, "\n", &save))
		fprintf(err, "plumb: %s\n", line);
	free(warnings);
}

static bool
holds_anything(const struct plumb_profile *profile)
{
	return profile->values_count > 0 || profile->work_count > 0 || profile->variants_count > 0;
}

/* Folders first, as one profile, then each file. */
struct parts {
	struct plumb_profile *profiles;
	const struct plumb_profile **pointers;
	const char **folders;
	size_t count, folder_count, file_count;
};

static bool
parts_new(struct parts *parts, size_t inputs)
{
	memset(parts, 0, sizeof(*parts));
	parts->profiles = calloc(inputs + 1, sizeof(*parts->profiles));
	parts->pointers = calloc(inputs + 1, sizeof(*parts->pointers));
	parts->folders = calloc(inputs + 1, sizeof(*parts->folders));
	return parts->profiles && parts->pointers && parts->folders;
}

static void
parts_free(struct parts *parts)
{
	for (size_t i = 0; parts->profiles && i < parts->count; i++)
		plumb_profile_free(&parts->profiles[i]);
	free(parts->profiles);
	free(parts->pointers);
	free(parts->folders);
}

static int
read_parts(struct parts *parts, const char *const *inputs, size_t count, struct stage *stage,
           struct plumb_error *error)
{
	struct plumb_settle_options options = { .demangle = plumb_demangle,
		                                .progress = stage_set,
		                                .data = stage };
	int code;
	for (size_t i = 0; i < count; i++)
		if (is_folder(inputs[i]))
			parts->folders[parts->folder_count++] = inputs[i];
	if (parts->folder_count > 0) {
		code = plumb_settle(parts->folders, parts->folder_count, &options,
		                    &parts->profiles[0], &stage->warnings, error);
		if (code < 0 && code != PLUMB_EEMPTY)
			return code;
		parts->count = 1;
	}
	for (size_t i = 0; i < count; i++) {
		if (is_folder(inputs[i]))
			continue;
		code = plumb_store_read(&parts->profiles[parts->count], inputs[i], error);
		if (code < 0)
			return code;
		parts->count++;
		parts->file_count++;
		stage_set(stage, (double)(i + 1) / (double)count);
	}
	return 0;
}

static int
make_profile(const char *const *inputs, size_t count, struct stage *stage,
             struct plumb_profile *profile, struct plumb_error *error)
{
	struct parts parts;
	int code = PLUMB_ESYSTEM;
	if (!parts_new(&parts, count)) {
		plumb_fail_memory(error, "to settle the run");
	} else if ((code = read_parts(&parts, inputs, count, stage, error)) == 0) {
		if (parts.count == 1) {
			*profile = parts.profiles[0];
			parts.count = 0;
		} else {
			for (size_t i = 0; i < parts.count; i++)
				parts.pointers[i] = &parts.profiles[i];
			code = plumb_join(parts.pointers, parts.count, profile, error);
		}
	}
	parts_free(&parts);
	return code;
}

/* Did the program fail when there was nothing yet but a few CPU samples of its start? */
static bool
failed_early(const struct plumb_profile *profile)
{
	int64_t cpu = 0;
	if (profile->run.exit_code == PLUMB_UNKNOWN || profile->run.exit_code == 0 ||
	    profile->work_count > 0 || profile->variants_count > 0)
		return false;
	for (uint32_t i = 0; i < profile->values_count; i++) {
		const struct plumb_value *value = &profile->values[i];
		const char *name = plumb_profile_metric(profile, value->metric).name;
		if (!name || (strncmp(name, "cpu.", 4) != 0 && strncmp(name, "wait.", 5) != 0))
			return false;
		if (value->metric == PLUMB_METRIC_CPU_TIME &&
		    __builtin_add_overflow(cpu, value->sum, &cpu))
			return false;
	}
	return cpu < FAILED_EARLY_NS;
}

/* Writes PROFILE; one that is empty, or of a program that failed at its start, does not take the
 * place of a profile that is there. */
static int
write_profile(const struct plumb_profile *profile, struct plumb_finish *finish,
              struct stage *writing, struct plumb_error *error)
{
	bool empty = !holds_anything(profile);
	bool there = plumb_store_is_profile(finish->output);

	finish->failed_early = !empty && there && failed_early(profile);
	finish->kept_old = there && (empty || finish->failed_early);
	if (!finish->kept_old) {
		int code = plumb_store_write_by(profile, finish->output, &finish->rule, stage_set,
		                                writing, error);
		if (code < 0)
			return code;
	}
	return empty || finish->kept_old ? plumb_fail(error, PLUMB_EEMPTY, "nothing was captured")
	                                 : 0;
}

struct plumb_output_rule
plumb_finish_rule(const struct plumb_options *given)
{
	return plumb_store_rule(plumb_options_flag(given, "force"),
	                        plumb_options_flag(given, "readable"));
}

int
plumb_finish(const char *const *inputs, size_t count, struct plumb_finish *finish,
             struct plumb_profile *profile, struct plumb_error *error)
{
	struct plumb_progress *bar =
		finish->quiet ? NULL : plumb_progress_new(finish->err, "settling");
	struct stage reading = { bar, 0, 0.6, NULL }, writing = { bar, 0.6, 1, NULL };
	memset(profile, 0, sizeof(*profile));
	int code = make_profile(inputs, count, &reading, profile, error);
	/* A profile without windows or findings is better than none. */
	struct plumb_error why = { 0 };
	if (code == 0 && plumb_windows_label(profile, &why) < 0)
		fprintf(finish->err, "plumb: %s; the profile has no windows\n", why.message);
	if (code == 0 && plumb_windows_count(profile, &why) < 0)
		fprintf(finish->err, "plumb: %s; the iterations of loops are not known\n",
		        why.message);
	if (code == 0 && plumb_analyze(profile, NULL, &why) < 0)
		fprintf(finish->err, "plumb: %s; the profile has no findings\n", why.message);
	if (code == 0) {
		code = write_profile(profile, finish, &writing, error);
		if (code < 0 && code != PLUMB_EEMPTY)
			plumb_profile_free(profile);
	}
	plumb_progress_free(bar);
	print_warnings(reading.warnings, finish->err);
	return code < 0 ? code : 0;
}

/* ---- the output ---- */

void
plumb_folder_of(const char *path, char *folder, size_t size)
{
	const char *slash = strrchr(path, '/');
	if (!slash)
		snprintf(folder, size, ".");
	else if (slash == path)
		snprintf(folder, size, "/");
	else
		snprintf(folder, size, "%.*s", (int)(slash - path), path);
}

int
plumb_finish_check(const char *output, const struct plumb_output_rule *rule,
                   struct plumb_error *error)
{
	char folder[4096];
	if (strlen(output) >= sizeof(folder))
		return plumb_fail(error, PLUMB_EUSAGE, "the name at -o is too long");
	int code = plumb_output_check(output, rule, error);
	if (code)
		return code;
	plumb_folder_of(output, folder, sizeof(folder));
	if (access(folder, W_OK | X_OK) != 0)
		return plumb_fail_errno(
			error, "cannot write a profile in %s; choose another place with -o",
			folder);
	return 0;
}

/* ---- shell quoting ---- */

static bool
is_plain(const char *word)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:@%";
	return *word && word[strspn(word, plain)] == '\0';
}

char *
plumb_shell_line(const char *const *words)
{
	size_t size = 1;
	for (size_t i = 0; words[i]; i++)
		size += 4 * strlen(words[i]) + 3;
	char *line = malloc(size), *end = line;
	for (size_t i = 0; line && words[i]; i++) {
		if (i > 0)
			*end++ = ' ';
		if (is_plain(words[i])) {
			end = stpcpy(end, words[i]);
			continue;
		}
		*end++ = '\'';
		for (const char *p = words[i]; *p; p++) {
			if (*p == '\'')
				end = stpcpy(end, "'\\''");
			else
				*end++ = *p;
		}
		*end++ = '\'';
	}
	if (line)
		*end = '\0';
	return line;
}
