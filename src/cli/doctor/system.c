/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel, the C library, permissions, disk, and whether the collector can be loaded at all. */
#include <errno.h>
#include <gnu/libc-version.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "cli/doctor/doctor.h"
#include "cli/run/probe.h"
#include "cli/run/rundir.h"
#include "cli/run/target.h"

#define POPULATE_WRITE 23 /* MADV_POPULATE_WRITE */
#define PLENTY (512ull << 20)
#define LITTLE (16ull << 20)

static void
check_library(struct plumb_checks *checks)
{
	static const char *const argv[] = { "true", NULL };
	struct plumb_rundir run = { 0 };
	struct plumb_error error;
	struct plumb_target target;
	char *first = getenv("LD_PRELOAD");
	if (plumb_rundir_library(&run, &error) < 0) {
		plumb_check_add(checks, "collector", PLUMB_CHECK_NO, "plumb's collector");
		plumb_check_why(checks, "%s", error.message);
		return;
	}
	plumb_target_look((char *const *)argv, getenv("PATH"), &target);
	struct plumb_probe *probe = malloc(sizeof(*probe));
	/* The loader complains on standard error and starts the program all the same. */
	if (target.error || target.refused || target.outside) {
		plumb_check_add(checks, "collector", PLUMB_CHECK_PARTLY, "plumb's collector %s",
		                run.library);
		plumb_check_why(checks, "it could not be tested: %s",
		                target.error ? "PATH has no program \"true\"" : target.reason);
	} else if (probe && plumb_probe_command(probe, argv, run.library, true, 20) &&
	           probe->output[0] == '\0') {
		plumb_check_add(checks, "collector", PLUMB_CHECK_YES,
		                "plumb's collector can be loaded (%s)", run.library);
	} else {
		plumb_check_add(checks, "collector", PLUMB_CHECK_NO, "plumb's collector %s",
		                run.library);
		if (probe)
			probe->output[strcspn(probe->output, "\n")] = '\0';
		plumb_check_why(checks, "a test program with the collector failed: %s",
		                probe && probe->output[0] ? probe->output : "it crashed or hung");
		plumb_check_remedy(checks, "build or install plumb for this system");
	}
	free(probe);
	plumb_rundir_remove_alias(&run);
	if (first && strstr(first, "asan"))
		plumb_check_add(
			checks, "asan", PLUMB_CHECK_YES,
			"AddressSanitizer is in LD_PRELOAD; it stays before plumb's collector");
	else
		plumb_check_add(
			checks, "asan", PLUMB_CHECK_YES,
			"AddressSanitizer programs: their runtime is preloaded before plumb's "
			"collector");
}

static void
check_libc(struct plumb_checks *checks)
{
	int major = 0, minor = 0;
	const char *version = gnu_get_libc_version();
	bool known = sscanf(version, "%d.%d", &major, &minor) == 2 &&
	             (major > 2 || (major == 2 && minor >= 28));
	plumb_check_add(checks, "libc", known ? PLUMB_CHECK_YES : PLUMB_CHECK_NO, "glibc %s",
	                version);
	if (!known) {
		plumb_check_why(checks, "plumb's collector needs glibc 2.28");
		plumb_check_remedy(
			checks, "use a newer system; programs linked with musl are not profiled");
	}
}

static void
check_kernel(struct plumb_checks *checks)
{
	struct utsname host;
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	if (uname(&host) == 0)
		plumb_check_add(checks, "kernel", PLUMB_CHECK_YES, "%s %s on %s", host.sysname,
		                host.release, host.machine);
	void *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bool populate = page != MAP_FAILED && madvise(page, size, POPULATE_WRITE) == 0;
	if (page != MAP_FAILED)
		munmap(page, size);
	plumb_check_add(checks, "kernel.populate", populate ? PLUMB_CHECK_YES : PLUMB_CHECK_PARTLY,
	                "one call maps all pages of a region (MADV_POPULATE_WRITE)");
	if (!populate) {
		plumb_check_why(
			checks,
			"this kernel does not have it; plumb touches each page instead, which is "
			"slower");
		plumb_check_remedy(checks, "use Linux 5.14 or newer");
	}
}

static void
check_perf(struct plumb_checks *checks)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
		                        .size = sizeof(attr),
		                        .config = PERF_COUNT_SW_CPU_CLOCK,
		                        .disabled = 1,
		                        .exclude_kernel = 1,
		                        .exclude_hv = 1 };
	char level[32] = "unknown";
	plumb_doctor_line("/proc/sys/kernel/perf_event_paranoid", level, sizeof(level));
	long fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0ul);
	int why = errno;
	plumb_check_add(checks, "perf_events", fd >= 0 ? PLUMB_CHECK_YES : PLUMB_CHECK_NO,
	                "perf events of your own processes (perf_event_paranoid is %s)", level);
	if (fd >= 0) {
		close((int)fd);
		return;
	}
	plumb_check_why(checks, "perf_event_open failed: %s; only plumb run --events needs it",
	                strerror(why));
	plumb_check_remedy(checks,
	                   why == ENOSYS || (why == EPERM && atoi(level) <= 2)
	                           ? "allow perf_event_open in the container's seccomp profile"
	                           : "sysctl kernel.perf_event_paranoid=2");
}

static void
check_ptrace(struct plumb_checks *checks)
{
	char level[32];
	if (!plumb_doctor_line("/proc/sys/kernel/yama/ptrace_scope", level, sizeof(level))) {
		plumb_check_add(checks, "ptrace", PLUMB_CHECK_YES,
		                "ptrace is not restricted by Yama");
		return;
	}
	int number = atoi(level);
	plumb_check_add(checks, "ptrace",
	                number == 0  ? PLUMB_CHECK_YES
	                : number < 3 ? PLUMB_CHECK_PARTLY
	                             : PLUMB_CHECK_NO,
	                "ptrace of other processes (ptrace_scope is %d)", number);
	if (number > 0) {
		plumb_check_why(checks, "the kernel allows it to %s; %s",
		                number == 1   ? "parents only"
		                : number == 2 ? "root only"
		                              : "nobody",
		                number == 1 ? "this is enough for plumb run"
		                            : "plumb run --cpu then cannot show the lines where "
		                              "threads wait");
		plumb_check_remedy(checks, number == 1   ? "sysctl kernel.yama.ptrace_scope=0, if "
		                                           "another tool needs it"
		                           : number == 2 ? "sysctl kernel.yama.ptrace_scope=1"
		                                         : "set kernel.yama.ptrace_scope=1 in "
		                                           "/etc/sysctl.d and restart the machine");
	}
}

static void
check_disk(struct plumb_checks *checks, const char *id, const char *path)
{
	if (access(path, W_OK | X_OK) != 0) {
		plumb_check_add(checks, id, PLUMB_CHECK_NO, "disk: %s", path);
		plumb_check_why(checks, "plumb cannot write to it: %s", strerror(errno));
		plumb_check_remedy(checks, "choose another place with plumb run -o or --folder");
		return;
	}
	uint64_t space = plumb_rundir_space(path);
	if (space == UINT64_MAX) {
		plumb_check_add(checks, id, PLUMB_CHECK_PARTLY, "disk: %s", path);
		plumb_check_why(checks, "the system does not report its free space");
		return;
	}
	plumb_check_add(checks, id,
	                space >= PLENTY   ? PLUMB_CHECK_YES
	                : space >= LITTLE ? PLUMB_CHECK_PARTLY
	                                  : PLUMB_CHECK_NO,
	                "disk: %llu MiB free in %s", (unsigned long long)(space >> 20), path);
	if (space < PLENTY) {
		plumb_check_why(checks, "the records of one process can take 256 MiB");
		plumb_check_remedy(checks,
		                   "free some space, or choose another place with plumb run "
		                   "--folder");
	}
}

void
plumb_doctor_system(struct plumb_checks *checks)
{
	check_library(checks);
	check_libc(checks);
	check_kernel(checks);
	check_perf(checks);
	check_ptrace(checks);
	check_disk(checks, "disk.here", ".");
	check_disk(checks, "disk.tmp", "/tmp");
	check_disk(checks, "disk.shm", "/dev/shm");
}
