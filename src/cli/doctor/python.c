/* SPDX-License-Identifier: Apache-2.0 */
/* The Pythons that PATH leads to, and their frameworks, read from package metadata. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/doctor/doctor.h"
#include "cli/run/probe.h"

#define OLDEST_MINOR 9
#define NEWEST_MINOR 14
#define SECONDS 20

/* The working folder is taken off the path first: a file of the user's there may have the name of a
 * module that is imported here. */
static const char script[] =
	"import sys\n"
	"sys.path = [p for p in sys.path if p]\n"
	"import glob, os, sysconfig\n"
	"from importlib import metadata\n"
	"print('executable=' + sys.executable)\n"
	"print('identity=' + os.path.realpath(sys.executable) + ' in ' + sys.prefix)\n"
	"print('version=%d.%d.%d' % sys.version_info[:3])\n"
	"print('minor=%d' % sys.version_info[1])\n"
	"print('major=%d' % sys.version_info[0])\n"
	"print('kind=' + sys.implementation.name)\n"
	"print('free=%d' % bool(sysconfig.get_config_var('Py_GIL_DISABLED')))\n"
	"for name in ('torch', 'jax', 'triton'):\n"
	"    try:\n"
	"        print(name + '=' + metadata.version(name))\n"
	"    except Exception:\n"
	"        pass\n"
	"get = sysconfig.get_config_var\n"
	"own = os.path.join(get('LIBDIR') or '', get('INSTSONAME') or '')\n"
	"shared = get('Py_ENABLE_SHARED') and os.path.exists(own)\n"
	"print('code=' + os.path.realpath(own if shared else sys.executable))\n"
	"import importlib.util\n"
	"spec = importlib.util.find_spec('torch')\n"
	"if spec and spec.origin:\n"
	"    base = os.path.join(os.path.dirname(spec.origin), 'lib', 'libtorch_cpu.so')\n"
	"    for name in [base] + glob.glob('/usr/lib/*/libtorch_cpu.so*'):\n"
	"        if os.path.exists(name):\n"
	"            print('torch_code=' + os.path.realpath(name))\n"
	"            break\n"
	"places = [os.path.join(glob.escape(sys.prefix), 'lib', 'libcupti.so*')]\n"
	"for folder in sys.path:\n"
	"    for place in ('nvidia/*/lib/libcupti.so*', 'torch/lib/libcupti*.so*'):\n"
	"        places.append(os.path.join(glob.escape(folder), place))\n"
	"for place in places[1:] + places[:1]:\n"
	"    for name in sorted(glob.glob(place)):\n"
	"        print('cupti=' + name)\n"
	"for folder in sys.path:\n"
	"    for place in ('nvidia/*/lib/libnccl.so*', 'torch/lib/libnccl*.so*'):\n"
	"        for name in sorted(glob.glob(os.path.join(glob.escape(folder), place))):\n"
	"            print('nccl=' + name)\n";

static void
check_framework(struct plumb_checks *checks, const struct plumb_probe *probe, const char *python)
{
	char version[128];
	if (plumb_probe_value(probe->output, "torch", version, sizeof(version))) {
		int major = 0, minor = 0;
		sscanf(version, "%d.%d", &major, &minor);
		bool known = major == 2 || (major == 1 && minor >= 13);
		plumb_check_add(checks, "framework.torch", known ? PLUMB_CHECK_YES : PLUMB_CHECK_NO,
		                "PyTorch %s of %s", version, python);
		if (!known) {
			plumb_check_why(checks, "plumb supports PyTorch 1.13 and 2.x");
			plumb_check_remedy(checks, "install a newer PyTorch");
		}
	} else {
		plumb_check_add(checks, "framework.torch", PLUMB_CHECK_NO, "PyTorch of %s", python);
		plumb_check_why(checks,
		                "it is not installed there, so plumb can record no operators");
		plumb_check_remedy(checks,
		                   "run plumb in the environment that has PyTorch, or install it");
	}
	if (plumb_probe_value(probe->output, "jax", version, sizeof(version))) {
		plumb_check_add(checks, "framework.jax", PLUMB_CHECK_PARTLY, "JAX %s of %s",
		                version, python);
		plumb_check_why(checks,
		                "plumb records its GPU work under Python lines, but not its "
		                "operators");
	}
	if (plumb_probe_value(probe->output, "triton", version, sizeof(version)))
		plumb_check_add(checks, "framework.triton", PLUMB_CHECK_YES,
		                "Triton %s of %s: plumb records its kernels like any others",
		                version, python);
}

static void
check_version(struct plumb_checks *checks, const struct plumb_probe *probe, const char *python)
{
	char version[64] = "?", kind[64] = "?", number[16];
	plumb_probe_value(probe->output, "version", version, sizeof(version));
	plumb_probe_value(probe->output, "kind", kind, sizeof(kind));
	int major = plumb_probe_value(probe->output, "major", number, sizeof(number)) ? atoi(number)
	                                                                              : 0;
	int minor = plumb_probe_value(probe->output, "minor", number, sizeof(number)) ? atoi(number)
	                                                                              : 0;
	bool free_threaded = plumb_probe_value(probe->output, "free", number, sizeof(number)) &&
	                     atoi(number) == 1;
	const char *why = NULL;
	if (strcmp(kind, "cpython") != 0)
		why = "plumb reads the frames of CPython only";
	else if (free_threaded)
		why = "it is a free-threaded build, and plumb cannot read its frames yet";
	else if (major != 3 || minor < OLDEST_MINOR || minor > NEWEST_MINOR)
		why = "plumb supports CPython 3.9 to 3.14";
	plumb_check_add(checks, "python", why ? PLUMB_CHECK_NO : PLUMB_CHECK_YES,
	                "Python lines of %s (%s %s%s)", python, kind, version,
	                free_threaded ? ", free-threaded" : "");
	if (why) {
		plumb_check_why(checks, "%s", why);
		plumb_check_remedy(checks,
		                   "use CPython 3.9 to 3.14 with the GIL; operators and GPU work "
		                   "are recorded without it, too");
	}
}

/* True when COMMAND is a Python. One other than SEEN is checked, and its identity is put there: a
 * virtual environment's Python is the same file as its base's, and still another Python. */
static bool
check_python(struct plumb_checks *checks, const char *command, char *seen, size_t size)
{
	const char *argv[] = { command, "-B", "-c", script, NULL };
	char path[PATH_MAX], identity[2 * PATH_MAX];
	struct plumb_probe *probe = malloc(sizeof(*probe));
	bool answered = probe && plumb_probe_command(probe, argv, NULL, false, SECONDS);
	bool found = answered &&
	             plumb_probe_value(probe->output, "executable", path, sizeof(path)) &&
	             plumb_probe_value(probe->output, "identity", identity, sizeof(identity)) &&
	             strcmp(identity, seen) != 0;
	if (found) {
		check_version(checks, probe, path);
		check_framework(checks, probe, path);
		if (!checks->cupti[0])
			plumb_probe_value(probe->output, "cupti", checks->cupti,
			                  sizeof(checks->cupti));
		if (!checks->nccl[0])
			plumb_probe_value(probe->output, "nccl", checks->nccl,
			                  sizeof(checks->nccl));
		if (!checks->python_code[0])
			plumb_probe_value(probe->output, "code", checks->python_code,
			                  sizeof(checks->python_code));
		if (!checks->torch_code[0])
			plumb_probe_value(probe->output, "torch_code", checks->torch_code,
			                  sizeof(checks->torch_code));
		snprintf(seen, size, "%s", identity);
	} else if (probe && !answered && probe->status != 127) {
		plumb_check_add(checks, "python", PLUMB_CHECK_NO, "the Python that %s starts",
		                command);
		plumb_check_why(checks,
		                probe->timed_out ? "it did not answer within %d seconds"
		                                 : "it failed when asked for its version",
		                SECONDS);
		plumb_check_remedy(checks, "run \"%s --version\" to see the error", command);
	}
	free(probe);
	return answered;
}

void
plumb_doctor_python(struct plumb_checks *checks)
{
	char seen[2 * PATH_MAX] = "";
	bool any = check_python(checks, "python3", seen, sizeof(seen));
	any |= check_python(checks, "python", seen, sizeof(seen));
	if (!any && checks->list.count == 0) {
		plumb_check_add(checks, "python", PLUMB_CHECK_NO, "a Python on PATH");
		plumb_check_why(checks, "PATH has neither python3 nor python");
		plumb_check_remedy(checks, "activate your program's environment");
	}
}
