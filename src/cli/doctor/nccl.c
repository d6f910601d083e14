/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL, and whether it tells a profiler of its operations: `plumb run --traffic` needs that. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/doctor/doctor.h"
#include "cli/run/launch.h"
#include "cli/run/probe.h"

#define SECONDS 30

extern char **environ;

/* In a child: prints the version of the NCCL at the path DATA. */
static int
ask_nccl(void *data)
{
	int version = 0;
	void *library = dlopen(data, RTLD_NOW | RTLD_LOCAL);
	int (*get_version)(int *) =
		library ? (int (*)(int *))dlsym(library, "ncclGetVersion") : NULL;
	if (!library)
		printf("missing=%s\n", dlerror());
	if (!get_version || get_version(&version))
		return 3;
	printf("version=%d\n", version);
	return 0;
}

static bool
find_nccl(char path[PATH_MAX])
{
	static const char *const places[] = {
		"/usr/lib/*-linux-gnu/libnccl.so.2",
		"/usr/lib64/libnccl.so.2",
		"/usr/local/lib/libnccl.so.2",
		"/usr/local/cuda/lib64/libnccl.so.2",
	};
	return plumb_doctor_find(places, sizeof(places) / sizeof(places[0]), path);
}

/* The newest version of the interface that plumb and NCCL have in common; 0: none. */
static int
interface_of(int version)
{
	return version >= 22800 ? 5 : version >= 22700 ? 4 : version >= 22600 ? 3 : 0;
}

static void
say_version(struct plumb_checks *checks, const char *path, int version)
{
	const char *plugin = plumb_environment_nccl_kept(environ);
	int interface = interface_of(version);
	plumb_check_add(checks, "nccl",
	                !interface ? PLUMB_CHECK_NO
	                : plugin   ? PLUMB_CHECK_PARTLY
	                           : PLUMB_CHECK_YES,
	                "NCCL %d.%d.%d in %s: plumb run --traffic", version / 10000,
	                version / 100 % 100, version % 100, path);
	if (!interface) {
		plumb_check_why(checks,
		                "this version does not report its operations to a profiler");
		plumb_check_remedy(checks, "use NCCL 2.26 or later");
	} else if (plugin) {
		plumb_check_why(checks,
		                "NCCL_PROFILER_PLUGIN names %s, which plumb cannot hand events on "
		                "to",
		                plugin);
		plumb_check_remedy(checks, "unset NCCL_PROFILER_PLUGIN");
	}
}

void
plumb_doctor_nccl(struct plumb_checks *checks)
{
	char path[PATH_MAX], text[32];
	struct plumb_probe *probe;
	if (checks->nccl[0])
		memcpy(path, checks->nccl, sizeof(path));
	else if (!find_nccl(path))
		return;
	probe = malloc(sizeof(*probe));
	if (probe && plumb_probe_call(probe, ask_nccl, path, SECONDS) &&
	    plumb_probe_value(probe->output, "version", text, sizeof(text)))
		say_version(checks, path, atoi(text));
	free(probe);
}
