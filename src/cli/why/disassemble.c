/* SPDX-License-Identifier: Apache-2.0 */
/* Machine code as NVIDIA's nvdisasm prints it, if it is installed. It gets the bytes of a function,
 * without a module around them, so names of other functions are not in what it prints. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/why/why.h"

#define STEP 16
#define SECONDS_MOST 60 /* of processor time */

/* The path of nvdisasm: in PATH, or in a CUDA toolkit. False: it is not installed. */
static bool
find_program(char *path, size_t size)
{
	const char *folders = getenv("PATH"), *cuda = getenv("CUDA_HOME");

	for (const char *at = folders ? folders : ""; *at; at += *at == ':') {
		size_t bytes = strcspn(at, ":");

		if (bytes && (size_t)snprintf(path, size, "%.*s/nvdisasm", (int)bytes, at) < size &&
		    !access(path, X_OK))
			return true;
		at += bytes;
	}
	if (cuda && (size_t)snprintf(path, size, "%s/bin/nvdisasm", cuda) < size &&
	    !access(path, X_OK))
		return true;
	snprintf(path, size, "/usr/local/cuda/bin/nvdisasm");
	return !access(path, X_OK);
}

static bool
write_all(int file, const void *text, uint64_t bytes)
{
	const char *at = text;

	while (bytes) {
		ssize_t wrote = write(file, at, bytes);

		if (wrote < 0 && errno == EINTR)
			continue;
		if (wrote <= 0)
			return false;
		at += wrote;
		bytes -= (uint64_t)wrote;
	}
	return true;
}

/* Puts the code into a file that nobody else can read. Its name is in PATH. */
static bool
write_code(const void *text, uint64_t bytes, char *path, size_t size)
{
	const char *folder = getenv("TMPDIR");
	int file;
	bool ok;

	if ((size_t)snprintf(path, size, "%s/plumb-why.XXXXXX",
	                     folder && *folder ? folder : "/tmp") >= size)
		return false;
	file = mkostemp(path, O_CLOEXEC);
	if (file < 0)
		return false;
	ok = write_all(file, text, bytes);
	close(file);
	if (!ok)
		unlink(path);
	return ok;
}

static void
be_program(const char *program, const char *type, const char *path, int to)
{
	struct rlimit limit = { SECONDS_MOST, SECONDS_MOST };
	int nothing = open("/dev/null", O_RDWR);
	char *words[] = { (char *)program, (char *)"-b", (char *)type, (char *)path, NULL };

	setrlimit(RLIMIT_CPU, &limit);
	dup2(nothing, 0);
	dup2(to, 1);
	dup2(nothing, 2);
	execv(program, words);
	_exit(127);
}

/* Reads lines "        /'*'0010'*'/   LDC R7, c[0x0][0x224] ;" (quotes added here). */
static void
read_line(char *line, char **texts, uint32_t count)
{
	char *at = line + strspn(line, " \t"), *end;
	unsigned long offset;

	if (strncmp(at, "/*", 2))
		return;
	offset = strtoul(at + 2, &end, 16);
	if (strncmp(end, "*/", 2) || offset % STEP || offset / STEP >= count ||
	    texts[offset / STEP])
		return;
	at = end + 2;
	at += strspn(at, " \t");
	end = strchr(at, ';');
	if (!end)
		return;
	while (end > at && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	texts[offset / STEP] = strndup(at, (size_t)(end - at));
}

static bool
read_output(int from, char **texts, uint32_t count)
{
	FILE *file = fdopen(from, "r");
	char *line = NULL;
	size_t room = 0;

	if (!file) {
		close(from);
		return false;
	}
	while (getline(&line, &room, file) > 0)
		read_line(line, texts, count);
	free(line);
	fclose(file);
	return true;
}

/* Did the program run and print something for each instruction? */
static bool
run(const char *program, const char *type, const char *path, char **texts, uint32_t count)
{
	int ends[2], status = -1;
	pid_t child;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return false;
	child = fork();
	if (!child)
		be_program(program, type, path, ends[1]);
	close(ends[1]);
	if (child < 0 || !read_output(ends[0], texts, count))
		close(ends[0]);
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
	}
	for (uint32_t i = 0; i < count; i++)
		if (!texts[i])
			return false;
	return child > 0 && WIFEXITED(status) && !WEXITSTATUS(status);
}

char **
plumb_why_disassemble(const char *architecture, const void *text, uint64_t bytes, uint32_t *count,
                      struct plumb_error *why)
{
	char program[4096], path[4096], type[40];
	char **texts;

	*count = (uint32_t)(bytes / STEP);
	if (strncmp(architecture, "sm_", 3)) {
		plumb_fail(why, PLUMB_EUSAGE, "nvdisasm does not know %s", architecture);
		return NULL;
	}
	snprintf(type, sizeof type, "SM%.20s", architecture + 3);
	if (!find_program(program, sizeof program)) {
		plumb_fail(why, PLUMB_EUSAGE,
		           "nvdisasm is not installed; it comes with the CUDA toolkit and with pip "
		           "install nvidia-cuda-nvdisasm");
		return NULL;
	}
	texts = calloc(*count + 1u, sizeof *texts);
	if (!texts || !write_code(text, bytes, path, sizeof path)) {
		plumb_fail_errno(why, "the code for nvdisasm cannot be written to a file");
		free(texts);
		return NULL;
	}
	if (!run(program, type, path, texts, *count)) {
		plumb_fail(why, PLUMB_EUSAGE,
		           "%s cannot disassemble code for %s; a newer CUDA toolkit may", program,
		           architecture);
		plumb_why_free_texts(texts, *count);
		texts = NULL;
	}
	unlink(path);
	return texts;
}

void
plumb_why_free_texts(char **texts, uint32_t count)
{
	for (uint32_t i = 0; texts && i < count; i++)
		free(texts[i]);
	free(texts);
}
