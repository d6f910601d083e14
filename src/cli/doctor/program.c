/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the collector can be loaded into a program, and into those of this system. */
#include <stdlib.h>
#include <string.h>

#include "cli/doctor/doctor.h"
#include "cli/run/target.h"

#define MUSL_REMEDY                                                                                \
	"use a system with glibc: in a container an image of Debian, Ubuntu or Fedora instead of " \
	"Alpine; or a Python and PyTorch built for glibc"

static void
check_program(struct plumb_checks *checks)
{
	struct plumb_target target;
	if (!checks->program)
		return;
	plumb_target_find(checks->program, &target);
	if (target.error) {
		plumb_check_add(checks, "program", PLUMB_CHECK_NO, "%s", checks->program);
		plumb_check_why(checks, "it cannot be run: %s", strerror(target.error));
		plumb_check_remedy(checks, "give a program on PATH, or a path to one");
	} else if (target.refused || target.outside) {
		plumb_check_add(checks, "program",
		                target.refused ? PLUMB_CHECK_NO : PLUMB_CHECK_PARTLY,
		                "plumb's collector in %s", target.path);
		plumb_check_why(checks, "%s", target.reason);
		if (target.musl)
			plumb_check_remedy(checks, MUSL_REMEDY);
		else if (target.outside)
			plumb_check_remedy(checks,
			                   "plumb still profiles the programs that it starts");
	} else {
		plumb_check_add(checks, "program", PLUMB_CHECK_YES,
		                "plumb's collector can be loaded into %s%s%s", target.path,
		                target.adapted[0] ? ": " : "", target.adapted);
	}
}

/* A system of musl shows in its shell, or in the Python that is used. */
static void
check_system(struct plumb_checks *checks)
{
	static const char *const programs[] = { "/bin/sh", "python3", "python" };
	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
		struct plumb_target target;
		plumb_target_find(programs[i], &target);
		if (target.error || !target.musl)
			continue;
		plumb_check_add(checks, "libc.programs", PLUMB_CHECK_NO,
		                "plumb's collector in the programs of this system");
		plumb_check_why(checks, "%s", target.reason);
		plumb_check_remedy(checks, MUSL_REMEDY);
		return;
	}
	plumb_check_add(checks, "libc.programs", PLUMB_CHECK_YES,
	                "the programs of this system are not linked with musl");
}

void
plumb_doctor_program(struct plumb_checks *checks)
{
	check_system(checks);
	check_program(checks);
}
