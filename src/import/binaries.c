/* SPDX-License-Identifier: Apache-2.0 */
#include "import/binaries.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/regular.h"
#include "base/vec.h"

#define DEPTH_MOST 8
#define FILES_MOST 100000u /* that are looked at */

struct plumb_binaries {
	PLUMB_VEC(struct plumb_binary) items;
	uint32_t looked; /* at so many files */
	bool used;
};

/* Does NAME begin with 32 digits, and nothing before or like a digit after them? */
static bool
is_hash_name(const char *name)
{
	size_t digits = strspn(name, "0123456789abcdef");

	return digits == PLUMB_MD5_DIGITS && (!name[digits] || name[digits] == '.');
}

static const char *
base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static void *
map_file(int fd, size_t *size)
{
	struct stat status;

	if (fstat(fd, &status) < 0 || status.st_size <= 0)
		return NULL;
	*size = (size_t)status.st_size;
	void *bytes = mmap(NULL, *size, PROT_READ, MAP_PRIVATE, fd, 0);
	return bytes == MAP_FAILED ? NULL : bytes;
}

static bool
is_gpu_code(int fd)
{
	Elf64_Ehdr head;

	return pread(fd, &head, sizeof head, 0) == (ssize_t)sizeof head &&
	       !memcmp(head.e_ident, ELFMAG, SELFMAG) && head.e_machine == EM_CUDA;
}

/* The open file PATH, if it is one of those that matter. PATH is then kept. */
static int
add_file(struct plumb_binaries *binaries, int fd, char *path)
{
	struct plumb_binary *added;
	size_t size;
	void *bytes;

	if (!is_gpu_code(fd) && !is_hash_name(base_name(path)))
		return 0;
	bytes = map_file(fd, &size);
	if (!bytes)
		return 0;
	added = plumb_vec_add(&binaries->items);
	if (added) {
		added->path = path;
		plumb_md5(bytes, size, added->md5);
	}
	munmap(bytes, size);
	return added ? 1 : PLUMB_ESYSTEM;
}

static int
scan_folder(struct plumb_binaries *binaries, const char *folder, DIR *entries, unsigned depth);

/* NAME of FOLDER, which is open as AT. */
static int
scan_entry(struct plumb_binaries *binaries, const char *folder, int at, const char *name,
           unsigned depth)
{
	struct stat status;
	char *path;
	int code = 0, fd;

	if (fstatat(at, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	if (asprintf(&path, "%s/%s", folder, name) < 0)
		return PLUMB_ESYSTEM;
	if (S_ISDIR(status.st_mode)) {
		fd = depth < DEPTH_MOST ? openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
		DIR *entries = fd < 0 ? NULL : fdopendir(fd);
		if (entries)
			code = scan_folder(binaries, path, entries, depth + 1);
		else if (fd >= 0)
			close(fd);
	} else if (binaries->looked < FILES_MOST) {
		binaries->looked++;
		fd = plumb_regular_open(at, name, 0);
		if (fd >= 0) {
			code = add_file(binaries, fd, path);
			close(fd);
		}
	}
	if (code != 1)
		free(path);
	return code < 0 ? code : 0;
}

/* Closes ENTRIES. */
static int
scan_folder(struct plumb_binaries *binaries, const char *folder, DIR *entries, unsigned depth)
{
	const struct dirent *entry;
	int code = 0;

	while (!code && (entry = readdir(entries)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			code = scan_entry(binaries, folder, dirfd(entries), entry->d_name, depth);
	closedir(entries);
	return code;
}

static int
by_path(const void *x, const void *y)
{
	const struct plumb_binary *a = x, *b = y;

	return strcmp(a->path, b->path);
}

int
plumb_binaries_open(const char *folder, struct plumb_binaries **binaries, struct plumb_error *error)
{
	DIR *entries = opendir(folder);

	*binaries = NULL;
	if (!entries && errno == ENOTDIR)
		return plumb_fail(error, PLUMB_EINPUT,
		                  "%s: is not a folder; name the folder that the binaries are in",
		                  folder);
	if (!entries)
		return plumb_fail_errno(error, "%s: cannot be read", folder);
	struct plumb_binaries *made = calloc(1, sizeof *made);
	if (!made) {
		closedir(entries);
		return plumb_fail_memory(error, "to read %s", folder);
	}
	if (scan_folder(made, folder, entries, 0) < 0) {
		plumb_binaries_free(made);
		return plumb_fail_memory(error, "to read %s", folder);
	}
	/* Folders have no order. */
	if (made->items.count)
		qsort(made->items.items, made->items.count, sizeof *made->items.items, by_path);
	*binaries = made;
	return 0;
}

void
plumb_binaries_free(struct plumb_binaries *binaries)
{
	if (!binaries)
		return;
	for (uint32_t i = 0; i < binaries->items.count; i++) {
		struct plumb_binary *item = &binaries->items.items[i];
		if (item->bytes)
			munmap((void *)item->bytes, item->size);
		free((char *)item->path);
	}
	plumb_vec_free(&binaries->items);
	free(binaries);
}

/* Maps ITEM. False: it is no longer what it was. */
static bool
is_mapped(struct plumb_binary *item)
{
	char md5[PLUMB_MD5_DIGITS + 1];
	int fd = item->bytes ? -1 : plumb_regular_open(AT_FDCWD, item->path, 0);

	if (fd < 0)
		return item->bytes;
	item->bytes = map_file(fd, &item->size);
	close(fd);
	if (!item->bytes)
		return false;
	plumb_md5(item->bytes, item->size, md5);
	if (!strcmp(md5, item->md5))
		return true;
	munmap((void *)item->bytes, item->size);
	item->bytes = NULL;
	return false;
}

const struct plumb_binary *
plumb_binaries_find(struct plumb_binaries *binaries, const char *md5)
{
	binaries->used = true;
	for (uint32_t i = 0; i < binaries->items.count; i++)
		if (!strcmp(binaries->items.items[i].md5, md5) &&
		    is_mapped(&binaries->items.items[i]))
			return &binaries->items.items[i];
	return NULL;
}

const struct plumb_binary *
plumb_binaries_misnamed(const struct plumb_binaries *binaries, const char *md5)
{
	for (uint32_t i = 0; i < binaries->items.count; i++) {
		const struct plumb_binary *item = &binaries->items.items[i];
		if (!strncmp(base_name(item->path), md5, PLUMB_MD5_DIGITS) &&
		    is_hash_name(base_name(item->path)) && strcmp(item->md5, md5) != 0)
			return item;
	}
	return NULL;
}

bool
plumb_binaries_used(const struct plumb_binaries *binaries)
{
	return binaries->used;
}
