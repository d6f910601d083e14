/* SPDX-License-Identifier: Apache-2.0 */
/* `plumb run --tool FILE.so`: libraries built on plumb/monitor.h that go into the profiled
 * programs. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/run/executable.h"
#include "cli/run/options.h"
#include "cli/run/rundir.h"

/* Can the open file FILE, called NAME, be preloaded? */
static int
check_library(int file, const char *name, struct plumb_error *error)
{
	struct plumb_executable found = { 0 };
	struct stat status;
	Elf64_Half type = ET_NONE;
	if (fstat(file, &status) == 0 && S_ISREG(status.st_mode))
		plumb_executable_look(file, &found);
	if (found.kind != PLUMB_EXECUTABLE_ELF ||
	    pread(file, &type, sizeof(type), offsetof(Elf64_Ehdr, e_type)) != sizeof(type) ||
	    (found.machine && type != ET_DYN))
		return plumb_fail(error, PLUMB_EUSAGE, "--tool %s is not a shared library", name);
	if (found.bits != 64 || found.machine != plumb_machine_own()) {
		const char *machine = found.machine ? plumb_machine_name(found.machine) : NULL;
		return plumb_fail(error, PLUMB_EUSAGE,
		                  "--tool %s is a %u-bit library for %s; build it for %s (64 bits)",
		                  name, found.bits, machine ? machine : "another machine",
		                  plumb_machine_name(plumb_machine_own()));
	}
	return 0;
}

static int
add_tool(const char *name, struct plumb_run_options *options, struct plumb_error *error)
{
	char path[PATH_MAX];
	size_t used = strlen(options->tools);
	int file = realpath(name, path) ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
	if (file < 0)
		return plumb_fail(error, PLUMB_EUSAGE, "cannot read --tool %s: %s", name,
		                  strerror(errno));
	int code = check_library(file, name, error);
	close(file);
	if (code < 0)
		return code;
	if (!plumb_preloadable(path))
		return plumb_fail(error, PLUMB_EUSAGE,
		                  "--tool %s cannot be preloaded: LD_PRELOAD does not allow a "
		                  "space, colon or dollar sign in a path. Move the tool to another "
		                  "folder",
		                  path);
	if (used + 1 + strlen(path) >= sizeof(options->tools))
		return plumb_fail(error, PLUMB_EUSAGE, "too many --tool options");
	if (used)
		options->tools[used++] = ':';
	strcpy(options->tools + used, path);
	return 0;
}

int
plumb_run_tools_read(const struct plumb_options *given, struct plumb_run_options *options,
                     struct plumb_error *error)
{
	const char *name;
	int code = 0;
	options->tools[0] = '\0';
	for (size_t i = 0; !code && (name = plumb_options_each(given, "tool", i)); i++)
		code = add_tool(name, options, error);
	return code;
}
