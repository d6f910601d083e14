/* SPDX-License-Identifier: Apache-2.0 */
/* Native code: whether stacks can be unwound here, and what gives functions their names and
 * lines. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/doctor/doctor.h"
#include "cli/run/probe.h"
#include "cli/run/target.h"
#include "settle/code.h"

#define SECONDS 30
#define DEBUG_REMEDY                                                                               \
	"install its debug symbols (a package -dbg, -dbgsym or -debuginfo), or set "               \
	"DEBUGINFOD_URLS to a server that has them"

static void
check_unwind(struct plumb_checks *checks)
{
#if defined(__x86_64__) || defined(__aarch64__)
	plumb_check_add(checks, "native.unwind", PLUMB_CHECK_YES,
	                "native stacks can be unwound on this kind of processor; programs without "
	                "Python have native frames by default");
#else
	plumb_check_add(checks, "native.unwind", PLUMB_CHECK_NO, "native stacks");
	plumb_check_why(checks, "plumb unwinds them on x86-64 and AArch64 only");
	plumb_check_remedy(checks, "run without --layers native");
#endif
}

static int
ask_debuginfod(void *data)
{
	(void)data;
	printf("state=%d\n", plumb_debuginfod_state());
	return 0;
}

static void
check_debuginfod(struct plumb_checks *checks, struct plumb_probe *probe)
{
	char text[16] = "";
	plumb_probe_call(probe, ask_debuginfod, NULL, SECONDS);
	int state = plumb_probe_value(probe->output, "state", text, sizeof(text)) ? atoi(text) : -1;
	if (state > 0) {
		plumb_check_add(checks, "native.debuginfod", PLUMB_CHECK_YES,
		                "missing debug information is fetched from %s",
		                getenv("DEBUGINFOD_URLS"));
		return;
	}
	plumb_check_add(checks, "native.debuginfod", state ? PLUMB_CHECK_PARTLY : PLUMB_CHECK_NO,
	                "fetching debug information from debuginfod");
	if (state) {
		plumb_check_why(checks,
		                "DEBUGINFOD_URLS is set, but libdebuginfod.so.1 cannot be loaded");
		plumb_check_remedy(checks, "install libdebuginfod (libdebuginfod1, "
		                           "elfutils-debuginfod-client)");
	} else {
		plumb_check_why(
			checks,
			"DEBUGINFOD_URLS is not set, so plumb reads only files on this machine");
		plumb_check_remedy(checks, "set it to your distribution's servers; plumb then "
		                           "sends them the build ids of your programs");
	}
}

/* In a child: what there is to name the functions of the file DATA from. */
static int
ask_code(void *data)
{
	struct plumb_code_wanted wanted = { .path = data };
	enum plumb_code_state state;
	struct plumb_code_facts facts;
	struct plumb_code *code = plumb_code_open(&wanted, &state);
	if (!code)
		return 3;
	plumb_code_facts(code, &facts);
	printf("functions=%u\nlines=%d\n", facts.functions, facts.lines);
	if (facts.debug)
		printf("debug=%s\n", facts.debug);
	return 0;
}

static void
check_code(struct plumb_checks *checks, struct plumb_probe *probe, const char *id, char *path)
{
	char text[PATH_MAX] = "";
	if (!path[0])
		return;
	if (!plumb_probe_call(probe, ask_code, path, SECONDS)) {
		plumb_check_add(checks, id, PLUMB_CHECK_NO, "functions of %s", path);
		plumb_check_why(checks, probe->status == 3 ? "it is not a readable ELF file"
		                                           : "reading its symbols failed");
		return;
	}
	int functions =
		plumb_probe_value(probe->output, "functions", text, sizeof(text)) ? atoi(text) : 0;
	bool lines =
		plumb_probe_value(probe->output, "lines", text, sizeof(text)) && atoi(text) == 1;
	if (!plumb_probe_value(probe->output, "debug", text, sizeof(text)))
		text[0] = '\0';
	plumb_check_add(checks, id, lines ? PLUMB_CHECK_YES : PLUMB_CHECK_PARTLY,
	                "%d functions of %s have names%s%s%s%s", functions, path,
	                lines ? " and lines" : "", text[0] ? " (from " : "", text,
	                text[0] ? ")" : "");
	if (!lines) {
		plumb_check_why(checks, "no debug information was found for it, so its functions "
		                        "have no source lines");
		plumb_check_remedy(checks, DEBUG_REMEDY);
	}
}

void
plumb_doctor_native(struct plumb_checks *checks)
{
	struct plumb_probe *probe = malloc(sizeof(*probe));
	check_unwind(checks);
	plumb_check_add(checks, "native.symbols", PLUMB_CHECK_YES,
	                "libdw %s reads names, inlined calls and lines of native code",
	                plumb_code_library());
	if (!probe)
		return;
	check_debuginfod(checks, probe);
	check_code(checks, probe, "native.python", checks->python_code);
	check_code(checks, probe, "native.torch", checks->torch_code);
	if (checks->program) {
		struct plumb_target target;
		plumb_target_find(checks->program, &target);
		if (!target.error)
			check_code(checks, probe, "native.program", target.path);
	}
	free(probe);
}
