/* SPDX-License-Identifier: Apache-2.0 */
#include "settle/settle_private.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/regular.h"
#include "region/control.h"

#define RUN_REGION "run" PLUMB_REGION_SUFFIX /* what `plumb run` itself writes */

/* One region's file. */
struct file {
	char *path;
	uint32_t folder;
	bool is_run;
};
struct files {
	PLUMB_VEC(struct file) list;
	uint64_t read;            /* how many could be read */
	struct plumb_error first; /* why the first one could not */
};

/* A process that could not make a region left its reason. */
static void
pass_on_refusal(struct plumb_settler *settler, int folder, const char *name)
{
	char text[600] = "";
	/* A link could lead to a file that the maker of the folder must not read. */
	int fd = plumb_regular_open(folder, name, O_NOFOLLOW);
	ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text - 1);

	if (fd >= 0)
		close(fd);
	if (got <= 0) {
		plumb_settle_warn(settler, "%s was not left by a profiled process; it is not read",
		                  name);
		return;
	}
	text[strcspn(text, "\n")] = '\0';
	plumb_settle_warn(settler, "process %.*s recorded nothing: %s", (int)strcspn(name, "."),
	                  name, text);
	plumb_builder_environment(settler->builder, PLUMB_NONE, "plumb.off", text);
}

static void
take_control(struct plumb_settler *settler, const char *folder, uint32_t number)
{
	char path[4096];

	if (snprintf(path, sizeof path, "%s/" PLUMB_CONTROL_NAME, folder) < (int)sizeof path)
		plumb_settle_control(settler, number, path);
}

static int
list_folder(struct plumb_settler *settler, struct files *files, const char *path, uint32_t folder,
            struct plumb_error *error)
{
	DIR *dir = opendir(path);
	struct dirent *entry;

	if (!dir)
		return plumb_fail_errno(error, "cannot read the folder %s", path);
	while ((entry = readdir(dir))) {
		struct file *file;
		if (plumb_region_name_ends(entry->d_name, PLUMB_REFUSAL_SUFFIX))
			pass_on_refusal(settler, dirfd(dir), entry->d_name);
		if (!strcmp(entry->d_name, PLUMB_CONTROL_NAME))
			take_control(settler, path, folder);
		if (!plumb_region_name_ends(entry->d_name, PLUMB_REGION_SUFFIX))
			continue;
		file = plumb_vec_add(&files->list);
		if (!file || asprintf(&file->path, "%s/%s", path, entry->d_name) < 0) {
			if (file)
				file->path = NULL;
			closedir(dir);
			return plumb_fail_memory(error, "to read the folder %s", path);
		}
		file->folder = folder;
		file->is_run = !strcmp(entry->d_name, RUN_REGION);
	}
	closedir(dir);
	return 0;
}

/* By folder, then by name: the same input gives the same profile. */
static int
by_path(const void *x, const void *y)
{
	const struct file *a = x, *b = y;

	if (a->folder != b->folder)
		return a->folder < b->folder ? -1 : 1;
	return strcmp(a->path, b->path);
}

/* A region that cannot be read is a process of which nothing is known. */
static void
leave_out(struct plumb_settler *settler, struct files *files, const struct file *file,
          const struct plumb_error *why)
{
	struct plumb_builder *builder = settler->builder;
	uint32_t detail = plumb_builder_text(builder, file->path);

	if (!files->first.code)
		files->first = *why;
	plumb_settle_warn(settler, "%s; it is left out", why->message);
	plumb_builder_ledger(builder, PLUMB_NONE, PLUMB_SOURCE_PROCESS, PLUMB_FATE_RECEIVED, detail,
	                     1);
	plumb_builder_ledger(builder, PLUMB_NONE, PLUMB_SOURCE_PROCESS, PLUMB_FATE_DAMAGED, detail,
	                     1);
}

static bool
settle_file(struct plumb_settler *settler, struct files *files, const struct file *file)
{
	struct plumb_region_reader reader;
	struct plumb_error why = { 0 };
	bool fine;

	if (plumb_region_open(&reader, file->path, &why)) {
		leave_out(settler, files, file, &why);
		return true;
	}
	files->read++;
	if (reader.damaged)
		plumb_settle_warn(settler, "%s is damaged in %llu places; the rest of it is used",
		                  file->path, (unsigned long long)reader.damaged);
	fine = plumb_settle_one(settler, &reader, file->folder, file->is_run);
	plumb_region_reader_close(&reader);
	return fine;
}

static int
settle_files(struct plumb_settler *settler, struct files *files,
             const struct plumb_settle_options *options, struct plumb_error *error)
{
	uint32_t count = files->list.count;

	qsort(files->list.items, count, sizeof *files->list.items, by_path);
	for (uint32_t i = 0; i < count; i++) {
		if (!settle_file(settler, files, &files->list.items[i]))
			return plumb_fail_memory(error, "to settle %s", files->list.items[i].path);
		if (options && options->progress)
			options->progress(options->data, (double)(i + 1) / count);
	}
	if (files->read)
		return 0;
	if (error)
		*error = files->first;
	return plumb_fail_in(error, "none of the regions can be read");
}

/* Once it is known which processes the run had. */
static void
take_compile_logs(struct plumb_settler *settler, const char *folder, uint32_t number)
{
	char path[4096];

	if (snprintf(path, sizeof path, "%s/" PLUMB_COMPILE_LOGS, folder) < (int)sizeof path)
		plumb_settle_compile_logs(settler, path, number);
}

int
plumb_settle_folders(struct plumb_settler *settler, const char *const *folders, uint32_t count,
                     const struct plumb_settle_options *options, struct plumb_error *error)
{
	struct files files = { 0 };
	int code = 0;

	for (uint32_t i = 0; i < count && !code; i++)
		code = list_folder(settler, &files, folders[i], i, error);
	for (uint32_t i = 0; i < count; i++)
		settler->runs.items[i].path = folders[i];
	for (uint32_t i = 0; i < count && !code; i++)
		plumb_settle_copies_read(settler, folders[i], i);
	if (!code && !files.list.count)
		code = plumb_fail(
			error, PLUMB_EINPUT,
			"%s%s holds no *" PLUMB_REGION_SUFFIX " file; name the folder of a run",
			count ? folders[0] : "no folder", count > 1 ? " (and the others)" : "");
	if (!code)
		code = settle_files(settler, &files, options, error);
	for (uint32_t i = 0; i < count && !code; i++) {
		plumb_settle_copies_miss(settler, folders[i], i);
		take_compile_logs(settler, folders[i], i);
	}
	if (!code)
		plumb_settle_users_logs(settler);
	for (uint32_t i = 0; i < files.list.count; i++)
		free(files.list.items[i].path);
	plumb_vec_free(&files.list);
	return code;
}
