/* SPDX-License-Identifier: Apache-2.0 */
/* A folder of three files: an input is the lengths of the first two (4 bytes each), and the
 * three. */
#include "import_fuzz.h"

extern const struct plumb_format plumb_format_hpctoolkit;
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t bytes);

static char folder[] = "/tmp/plumb-fuzz-XXXXXX";

static void
remove_folder(void)
{
	static const char *const names[] = { "meta.db", "profile.db", "trace.db" };
	char path[128];
	for (unsigned i = 0; i < 3; i++) {
		snprintf(path, sizeof path, "%s/%s", folder, names[i]);
		unlink(path);
	}
	rmdir(folder);
}

static void
write_file(const char *name, const unsigned char *data, size_t bytes)
{
	char path[128];
	snprintf(path, sizeof path, "%s/%s", folder, name);
	FILE *file = fopen(path, "wb");
	if (!file || fwrite(data, 1, bytes, file) != bytes || fclose(file))
		abort();
}

int
LLVMFuzzerTestOneInput(const unsigned char *data, size_t bytes)
{
	static bool made;
	uint32_t sizes[2] = { 0 };
	struct plumb_import_file file = { .path = folder };
	if (!made && (!mkdtemp(folder) || atexit(remove_folder)))
		abort();
	made = true;
	if (bytes < sizeof sizes)
		return 0;
	memcpy(sizes, data, sizeof sizes);
	data += sizeof sizes;
	bytes -= sizeof sizes;
	if (sizes[0] > bytes || sizes[1] > bytes - sizes[0])
		return 0;
	write_file("meta.db", data, sizes[0]);
	write_file("profile.db", data + sizes[0], sizes[1]);
	write_file("trace.db", data + sizes[0] + sizes[1], bytes - sizes[0] - sizes[1]);
	import_fuzz_file(&plumb_format_hpctoolkit, &file);
	return 0;
}
