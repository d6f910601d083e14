/* SPDX-License-Identifier: Apache-2.0 */
/* A folder of three files and a binary of GPU code: an input is the lengths of the first three (4
 * bytes each), and the four. 32 times the letter X in meta.db become the MD5 of the binary, which
 * may be empty. */
#define IMPORT_FUZZ_BINARIES binaries_folder
static char binaries_folder[] = "/tmp/plumb-fuzz-XXXXXX";
#include "import_fuzz.h"

extern const struct plumb_format plumb_format_hpctoolkit;
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t bytes);

#define FILES 4
static char folder[] = "/tmp/plumb-fuzz-XXXXXX";
static const char *const names[FILES] = { "meta.db", "profile.db", "trace.db", "binary" };

static void
remove_folders(void)
{
	char path[128];
	for (unsigned i = 0; i < FILES; i++) {
		snprintf(path, sizeof path, "%s/%s", i == 3 ? binaries_folder : folder, names[i]);
		unlink(path);
	}
	rmdir(folder);
	rmdir(binaries_folder);
}

static void
write_file(unsigned number, const unsigned char *data, size_t bytes)
{
	char path[128];
	snprintf(path, sizeof path, "%s/%s", number == 3 ? binaries_folder : folder, names[number]);
	FILE *file = fopen(path, "wb");
	if (!file || fwrite(data, 1, bytes, file) != bytes || fclose(file))
		abort();
}

/* meta.db, which names the binary. */
static void
write_meta(const unsigned char *data, size_t bytes, const unsigned char *binary, size_t size)
{
	char md5[PLUMB_MD5_DIGITS + 1], mark[PLUMB_MD5_DIGITS];
	unsigned char *copy = malloc(bytes + 1), *at = copy;
	if (!copy)
		abort();
	memcpy(copy, data, bytes);
	memset(mark, 'X', sizeof mark);
	plumb_md5(binary, size, md5);
	while ((at = memmem(at, (size_t)(copy + bytes - at), mark, sizeof mark)))
		memcpy(at, md5, sizeof mark);
	write_file(0, copy, bytes);
	free(copy);
}

int
LLVMFuzzerTestOneInput(const unsigned char *data, size_t bytes)
{
	static bool made;
	uint32_t sizes[FILES] = { 0 };
	const unsigned char *parts[FILES];
	struct plumb_import_file file = { .path = folder };
	if (!made && (!mkdtemp(folder) || !mkdtemp(binaries_folder) || atexit(remove_folders)))
		abort();
	made = true;
	if (bytes < (FILES - 1) * sizeof *sizes)
		return 0;
	memcpy(sizes, data, (FILES - 1) * sizeof *sizes);
	data += (FILES - 1) * sizeof *sizes;
	bytes -= (FILES - 1) * sizeof *sizes;
	for (unsigned i = 0; i < FILES; i++) {
		if (i < FILES - 1 && sizes[i] > bytes)
			return 0;
		sizes[i] = i < FILES - 1 ? sizes[i] : (uint32_t)bytes;
		parts[i] = data;
		data += sizes[i];
		bytes -= sizes[i];
	}
	write_meta(parts[0], sizes[0], parts[3], sizes[3]);
	for (unsigned i = 1; i < FILES; i++)
		write_file(i, parts[i], sizes[i]);
	import_fuzz_file(&plumb_format_hpctoolkit, &file);
	return 0;
}
