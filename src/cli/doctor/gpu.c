/* SPDX-License-Identifier: Apache-2.0 */
/* The NVIDIA driver, its GPUs, CUPTI, and who else uses it. CUDA is not linked: the few functions
 * needed are looked up, in a child process. */
#include <ctype.h>
#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/words.h"
#include "cli/doctor/doctor.h"
#include "cli/run/probe.h"

#define DRIVER "libcuda.so.1"
#define SECONDS 30

typedef int (*call_int)(int *);
typedef int (*call_init)(unsigned);
typedef int (*call_device)(int *, int);
typedef int (*call_name)(char *, int, int);

/* In a child: prints what the driver says. 3: there is none. */
static int
ask_driver(void *data)
{
	(void)data;
	int version = 0, count = 0, device, result;
	char name[256];
	void *driver = dlopen(DRIVER, RTLD_NOW | RTLD_LOCAL);
	if (!driver) {
		printf("missing=%s\n", dlerror());
		return 3;
	}
	call_int get_version = (call_int)dlsym(driver, "cuDriverGetVersion");
	call_init init = (call_init)dlsym(driver, "cuInit");
	call_int get_count = (call_int)dlsym(driver, "cuDeviceGetCount");
	call_device get_device = (call_device)dlsym(driver, "cuDeviceGet");
	call_name get_name = (call_name)dlsym(driver, "cuDeviceGetName");
	if (!get_version || !init || !get_count || !get_device || !get_name) {
		printf("missing=it lacks functions that every driver has\n");
		return 3;
	}
	if (get_version(&version) == 0)
		printf("cuda=%d\n", version);
	fflush(stdout); /* should the next call hang */
	result = init(0);
	printf("init=%d\n", result);
	if (result == 0 && get_count(&count) == 0)
		printf("count=%d\n", count);
	if (result == 0 && count > 0 && get_device(&device, 0) == 0 &&
	    get_name(name, sizeof(name), device) == 0)
		printf("name=%s\n", name);
	return 0;
}

static int
number_of(const struct plumb_probe *probe, const char *key, int otherwise)
{
	char text[32];
	return plumb_probe_value(probe->output, key, text, sizeof(text)) ? atoi(text) : otherwise;
}

static void
check_devices(struct plumb_checks *checks, const struct plumb_probe *probe)
{
	char name[256] = "unnamed";
	int init = number_of(probe, "init", -1), count = number_of(probe, "count", 0);
	if (init == 0 && count > 0) {
		plumb_probe_value(probe->output, "name", name, sizeof(name));
		plumb_check_add(checks, "gpu.devices", PLUMB_CHECK_YES, "%d GPU%s (%s%s)", count,
		                count == 1 ? "" : "s", name, count == 1 ? "" : " first");
		return;
	}
	plumb_check_add(checks, "gpu.devices", PLUMB_CHECK_NO, "GPUs");
	if (probe->timed_out || probe->status > 128)
		plumb_check_why(checks, probe->timed_out ? "the driver gave no answer"
		                                         : "the driver crashed");
	else
		plumb_check_why(checks, "the driver reports no GPU (error %d)", init);
	plumb_check_remedy(checks,
	                   "run nvidia-smi to see what the driver finds; start a container with "
	                   "access to the GPUs (docker run --gpus all)");
}

static void
check_driver(struct plumb_checks *checks)
{
	char text[256], line[256];
	struct plumb_probe *probe = malloc(sizeof(*probe));
	if (!probe)
		return;
	plumb_probe_call(probe, ask_driver, NULL, SECONDS);
	checks->driver_cuda = number_of(probe, "cuda", 0);
	if (checks->driver_cuda > 0) {
		const char *version = "";
		/* "NVRM version: NVIDIA UNIX … Kernel Module  580.95.05  …" */
		if (plumb_doctor_line("/proc/driver/nvidia/version", line, sizeof(line))) {
			char *p = strstr(line, "  ");
			while (p && *p == ' ')
				p++;
			if (p && isdigit((unsigned char)*p)) {
				p[strcspn(p, " ")] = '\0';
				version = p;
			}
		}
		plumb_check_add(checks, "gpu.driver", PLUMB_CHECK_YES,
		                "NVIDIA driver %s%sfor CUDA %d.%d", version, *version ? " " : "",
		                checks->driver_cuda / 1000, checks->driver_cuda % 1000 / 10);
		check_devices(checks, probe);
	} else {
		plumb_check_add(checks, "gpu.driver", PLUMB_CHECK_NO, "NVIDIA driver");
		plumb_check_why(checks, "%s",
		                plumb_probe_value(probe->output, "missing", text, sizeof(text))
		                        ? text
		                        : "the driver gave no answer");
		plumb_check_remedy(checks,
		                   "install NVIDIA's driver if this machine has a GPU; without a "
		                   "GPU, plumb still profiles the CPU side");
	}
	free(probe);
}

/* ---- CUPTI ---- */

static int
ask_cupti(void *data)
{
	unsigned version = 0;
	void *library = dlopen(data, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		printf("missing=%s\n", dlerror());
		return 3;
	}
	int (*get_version)(unsigned *) = (int (*)(unsigned *))dlsym(library, "cuptiGetVersion");
	if (!get_version || get_version(&version) != 0) {
		printf("missing=it does not report its version\n");
		return 3;
	}
	printf("version=%u\n", version);
	return 0;
}

/* Looks for CUPTI outside of Python packages. */
static bool
find_cupti(char path[PATH_MAX])
{
	static const char *const places[] = {
		"/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.[0-9]*",
		"/usr/local/cuda/lib64/libcupti.so.[0-9]*",
		"/usr/local/cuda-*/extras/CUPTI/lib64/libcupti.so.[0-9]*",
		"/opt/cuda/extras/CUPTI/lib64/libcupti.so.[0-9]*",
		"/usr/lib/*-linux-gnu/libcupti.so.[0-9]*",
		"/usr/lib64/libcupti.so.[0-9]*",
	};
	return plumb_doctor_find(places, sizeof(places) / sizeof(places[0]), path);
}

/* The CUDA that a CUPTI belongs to, by its file's name: libcupti.so.12 → 12; 0: it does not say. */
static int
cupti_major(const char *path)
{
	const char *file = strrchr(path, '/');
	const char *number = strstr(file ? file : path, ".so.");
	return number ? atoi(number + 4) : 0;
}

static void
check_cupti(struct plumb_checks *checks)
{
	char path[PATH_MAX], text[256];
	if (checks->cupti[0]) {
		memcpy(path, checks->cupti, sizeof(path));
	} else if (!find_cupti(path)) {
		plumb_check_add(checks, "gpu.cupti", PLUMB_CHECK_NO,
		                "CUPTI, NVIDIA's profiling interface");
		plumb_check_why(checks,
		                "libcupti was not found with this Python or in the CUDA toolkit's "
		                "folders");
		plumb_check_remedy(checks,
		                   "install PyTorch's wheel for CUDA, which includes it, or pip "
		                   "install nvidia-cuda-cupti for your CUDA version");
		return;
	}
	memcpy(checks->cupti, path, sizeof(path));
	struct plumb_probe *probe = malloc(sizeof(*probe));
	if (!probe)
		return;
	bool answered = plumb_probe_call(probe, ask_cupti, path, SECONDS);
	int major = cupti_major(path);
	if (!answered) {
		plumb_check_add(checks, "gpu.cupti", PLUMB_CHECK_NO, "CUPTI in %s", path);
		plumb_check_why(checks, "it cannot be loaded: %s",
		                plumb_probe_value(probe->output, "missing", text, sizeof(text))
		                        ? text
		                        : "it hung or crashed");
		plumb_check_remedy(checks, "install CUPTI again");
	} else {
		bool newer = checks->driver_cuda > 0 && major > checks->driver_cuda / 1000;
		plumb_check_add(checks, "gpu.cupti",
		                newer || checks->driver_cuda == 0 ? PLUMB_CHECK_PARTLY
		                                                  : PLUMB_CHECK_YES,
		                "CUPTI in %s (API %d)", path, number_of(probe, "version", 0));
		if (checks->driver_cuda == 0) {
			plumb_check_why(checks, "it needs NVIDIA's driver, which was not found");
		} else if (newer) {
			plumb_check_why(checks, "it is for CUDA %d, but the driver is for CUDA %d",
			                major, checks->driver_cuda / 1000);
			plumb_check_remedy(checks,
			                   "use a framework built for CUDA %d, or a newer driver",
			                   checks->driver_cuda / 1000);
		}
	}
	free(probe);
}

/* ---- who else ---- */

/* Programs that occupy CUPTI, or the counters that it uses. */
static bool
is_profiler(const char *name)
{
	static const char *const names[] = { "nsys",          "nsys-launcher", "nsys-agent",
		                             "ncu",           "ncu-ui",        "nv-hostengine",
		                             "dcgm-exporter", "dcgmproftester" };
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strncmp(name, names[i], 15) == 0) /* the kernel keeps so many characters */
			return true;
	return false;
}

static bool
find_profiler(char *name, int size, long *pid)
{
	DIR *processes = opendir("/proc");
	struct dirent *entry;
	bool found = false;
	while (processes && !found && (entry = readdir(processes))) {
		char path[300];
		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		snprintf(path, sizeof(path), "/proc/%s/comm", entry->d_name);
		found = plumb_doctor_line(path, name, size) && is_profiler(name);
		*pid = atol(entry->d_name);
	}
	if (processes)
		closedir(processes);
	return found;
}

static void
check_slot(struct plumb_checks *checks)
{
	const char *injected = getenv("CUDA_INJECTION64_PATH"),
		   *kineto = getenv("KINETO_USE_DAEMON");
	char name[64];
	long pid;
	if (injected && *injected && !strstr(injected, "libplumb")) {
		plumb_check_add(checks, "gpu.slot", PLUMB_CHECK_PARTLY, "the CUPTI slot");
		plumb_check_why(checks,
		                "CUDA_INJECTION64_PATH=%s loads another tool into every CUDA "
		                "program; plumb loads that tool too, but only one of the two gets "
		                "GPU records",
		                injected);
		plumb_check_remedy(checks, "unset CUDA_INJECTION64_PATH for runs under plumb");
	} else if (kineto && *kineto && strcmp(kineto, "0") != 0) {
		plumb_check_add(checks, "gpu.slot", PLUMB_CHECK_PARTLY, "the CUPTI slot");
		plumb_check_why(
			checks,
			"KINETO_USE_DAEMON is set, so a daemon can start PyTorch's own profiler, "
			"which then takes the slot");
		plumb_check_remedy(checks, "unset KINETO_USE_DAEMON for runs under plumb");
	} else if (find_profiler(name, sizeof(name), &pid)) {
		plumb_check_add(checks, "gpu.slot", PLUMB_CHECK_PARTLY, "the CUPTI slot");
		plumb_check_why(checks,
		                "%s (process %ld) is running and may hold the GPU's counters", name,
		                pid);
		plumb_check_remedy(checks,
		                   "stop %s, or pause its profiling (dcgmi profile --pause), if "
		                   "GPU records are missing",
		                   name);
	} else {
		plumb_check_add(checks, "gpu.slot", PLUMB_CHECK_YES,
		                "the CUPTI slot: no other tool is set up to take it");
	}
}

/* May this process administer the system? The driver asks for CAP_SYS_ADMIN, which the root of a
 * container may lack. */
static bool
is_administrator(void)
{
	FILE *status = fopen("/proc/self/status", "re");
	unsigned long long effective = 0;
	char line[256];
	while (status && fgets(line, sizeof(line), status))
		if (sscanf(line, "CapEff: %llx", &effective) == 1)
			break;
	if (status)
		fclose(status);
	return effective >> 21 & 1;
}

static void
check_counters(struct plumb_checks *checks)
{
	char line[256];
	FILE *params = fopen("/proc/driver/nvidia/params", "re");
	int admin_only = -1;
	while (params && fgets(line, sizeof(line), params))
		if (sscanf(line, "RmProfilingAdminOnly: %d", &admin_only) == 1)
			break;
	if (params)
		fclose(params);
	bool admin = is_administrator();
	if (admin_only == 0 || (admin_only == 1 && admin)) {
		plumb_check_add(checks, "gpu.counters", PLUMB_CHECK_YES,
		                "hardware counters can be read by %s",
		                admin_only == 0 ? "everyone" : "administrators, such as you");
	} else if (admin_only == 1) {
		plumb_check_add(checks, "gpu.counters", PLUMB_CHECK_NO, "hardware counters");
		plumb_check_why(
			checks,
			"only administrators may read them (RmProfilingAdminOnly: 1); plumb needs "
			"them for --stalls and --counters, and not for kernels, copies and times");
		plumb_check_remedy(checks,
		                   "run as root (a container with --cap-add=SYS_ADMIN), or load "
		                   "the nvidia module with NVreg_RestrictProfilingToAdminUsers=0");
	} else {
		plumb_check_add(checks, "gpu.counters", PLUMB_CHECK_NO, "hardware counters");
		plumb_check_why(checks,
		                "/proc/driver/nvidia/params does not say who may read them");
	}
}

/* ---- the Compute Sanitizer ---- */

static int
ask_sanitizer(void *data)
{
	void *library = dlopen(data, RTLD_NOW | RTLD_LOCAL);
	if (!library || !dlsym(library, "sanitizerPatchModule")) {
		printf("missing=%s\n", library ? "it is no Compute Sanitizer" : dlerror());
		return 3;
	}
	printf("loaded=1\n");
	return 0;
}

/* Beside the CUPTI of the same CUDA, in Python's packages, or in a toolkit. */
static bool
find_sanitizer(const struct plumb_checks *checks, char path[PATH_MAX])
{
	static const char *const beside[] = { "", "/../compute-sanitizer",
		                              "/../../cuda_sanitizer_api/lib",
		                              "/../../../compute-sanitizer" };
	static const char *const places[] = {
		"/usr/local/cuda/compute-sanitizer/libsanitizer-public.so",
		"/usr/local/cuda-*/compute-sanitizer/libsanitizer-public.so",
		"/opt/cuda/extras/compute-sanitizer/libsanitizer-public.so",
	};
	const char *given = getenv("PLUMB_SANITIZER"), *end = strrchr(checks->cupti, '/');
	if (given && *given) {
		snprintf(path, PATH_MAX, "%s", given);
		return true;
	}
	for (size_t i = 0; end && i < sizeof(beside) / sizeof(beside[0]); i++) {
		int length = snprintf(path, PATH_MAX, "%.*s%s/libsanitizer-public.so",
		                      (int)(end - checks->cupti), checks->cupti, beside[i]);
		if (length < PATH_MAX && access(path, R_OK) == 0)
			return true;
	}
	return plumb_doctor_find(places, sizeof(places) / sizeof(places[0]), path);
}

static void
check_sanitizer(struct plumb_checks *checks)
{
	char path[PATH_MAX], text[256];
	if (!find_sanitizer(checks, path)) {
		plumb_check_add(checks, "gpu.sanitizer", PLUMB_CHECK_NO,
		                "the Compute Sanitizer, which --traffic=full needs");
		plumb_check_why(checks, "libsanitizer-public.so was not found with this Python or "
		                        "in the CUDA toolkit's folders");
		plumb_check_remedy(checks,
		                   "pip install nvidia-cuda-sanitizer-api (for CUDA 12: "
		                   "nvidia-cuda-sanitizer-api-cu12), or say in PLUMB_SANITIZER "
		                   "where it is");
		return;
	}
	struct plumb_probe *probe = malloc(sizeof(*probe));
	if (!probe)
		return;
	if (plumb_probe_call(probe, ask_sanitizer, path, SECONDS)) {
		plumb_check_add(checks, "gpu.sanitizer", PLUMB_CHECK_YES,
		                "the Compute Sanitizer in %s", path);
	} else {
		plumb_check_add(checks, "gpu.sanitizer", PLUMB_CHECK_NO,
		                "the Compute Sanitizer in %s", path);
		plumb_check_why(checks, "it cannot be loaded: %s",
		                plumb_probe_value(probe->output, "missing", text, sizeof(text))
		                        ? text
		                        : "it hung or crashed");
		plumb_check_remedy(checks, "install it again");
	}
	free(probe);
}

/* ---- modes ---- */

/* The state of check ID; checks that are not there have nothing against it. */
static enum plumb_check_state
state_of(const struct plumb_checks *checks, const char *id)
{
	for (uint32_t i = 0; i < checks->list.count; i++)
		if (!strcmp(checks->list.items[i].id, id))
			return checks->list.items[i].state;
	return PLUMB_CHECK_YES;
}

/* What each mode of plumb run --gpu records, and what it needs: checks that were made above. */
static void
check_modes(struct plumb_checks *checks)
{
	static const struct {
		const char *id;
		enum plumb_gpu_mode mode;
		const char *needs[5];
	} modes[] = {
		{ "gpu.mode.activity",
		  PLUMB_GPU_ACTIVITY,
		  { "gpu.driver", "gpu.devices", "gpu.cupti", "gpu.slot" } },
		{ "gpu.mode.traffic",
		  PLUMB_GPU_TRAFFIC,
		  { "gpu.driver", "gpu.devices", "gpu.sanitizer" } },
		/* No mode, but an option of the first. */
		{ "gpu.stalls",
		  PLUMB_GPU_OFF,
		  { "gpu.driver", "gpu.devices", "gpu.cupti", "gpu.slot", "gpu.counters" } },
	};
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		const struct plumb_gpu_mode_info *mode =
			modes[i].mode == PLUMB_GPU_OFF ? NULL : plumb_gpu_mode_of(modes[i].mode);
		enum plumb_check_state worst = PLUMB_CHECK_YES;
		char why[128] = "";
		for (int k = 0; k < 5 && modes[i].needs[k]; k++) {
			enum plumb_check_state state = state_of(checks, modes[i].needs[k]);
			size_t used = strlen(why);
			if (state == PLUMB_CHECK_YES)
				continue;
			snprintf(why + used, sizeof(why) - used, "%s%s", used ? ", " : "",
			         modes[i].needs[k]);
			worst = worst == PLUMB_CHECK_NO ? worst : state;
		}
		if (mode)
			plumb_check_add(checks, modes[i].id, worst, "plumb run --gpu=%s: %s",
			                mode->name, mode->what);
		else
			plumb_check_add(checks, modes[i].id, worst,
			                "plumb run --stalls: why GPU warps wait");
		if (worst != PLUMB_CHECK_YES)
			plumb_check_why(checks, "see %s", why);
	}
}

void
plumb_doctor_gpu(struct plumb_checks *checks)
{
	check_driver(checks);
	check_cupti(checks);
	check_slot(checks);
	check_counters(checks);
	check_sanitizer(checks);
	check_modes(checks);
}
