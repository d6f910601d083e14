/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of CUDA's driver that launch work. A program comes to them on one of three ways:
 * it is linked with the driver, it looks them up by dlsym, or it asks cuGetProcAddress, as the CUDA
 * runtime does, which it has by one of the first two. Each function is replaced on each way. A
 * graph counts as one launch. The variants _ptsz are for programs whose default stream is each
 * thread's own.
 */
#include <cuda.h>
#include <dlfcn.h>
#include <string.h>

#include "collect/collector.h"
#include "collect/dlsym.h"
#include "count/count.h"

#undef cuGetProcAddress
#undef cuGetProcAddress_v2

/* W(function, parameters, arguments, what is launched) */
#define KERNEL_PARAMETERS                                                                          \
	CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,             \
		unsigned bz, unsigned shared, CUstream stream, void **values
#define KERNEL_ARGUMENTS f, gx, gy, gz, bx, by, bz, shared, stream, values
#define LAUNCHES(W)                                                                                \
	W(cuLaunchKernel, (KERNEL_PARAMETERS, void **extra), (KERNEL_ARGUMENTS, extra), f)         \
	W(cuLaunchKernelEx,                                                                        \
	  (const CUlaunchConfig *config, CUfunction f, void **values, void **extra),               \
	  (config, f, values, extra), f)                                                           \
	W(cuLaunchCooperativeKernel, (KERNEL_PARAMETERS), (KERNEL_ARGUMENTS), f)                   \
	W(cuGraphLaunch, (CUgraphExec graph, CUstream stream), (graph, stream), graph)

/* One function of the driver. */
struct entry {
	const char *name;
	void *linked, *asked;        /* ours: for programs that link or look it up, and that ask */
	_Atomic(void *) real_linked; /* the driver's, for each of them */
	_Atomic(void *) real_asked;
};

enum {
#define W(name, ...) NUMBER_##name, NUMBER_##name##_ptsz,
	LAUNCHES(W)
#undef W
		LAUNCH_FUNCTIONS,
	NUMBER_cuGetProcAddress = LAUNCH_FUNCTIONS,
	NUMBER_cuGetProcAddress_v2,
	FUNCTIONS
};
static struct entry table[FUNCTIONS];

/* ---- the driver's own ---- */

/* The driver's function, which programs that are linked with it mean. NULL: there is no driver. */
static void *
real_linked(struct entry *entry)
{
	void *real = atomic_load_explicit(&entry->real_linked, memory_order_acquire), *driver;

	if (plumb_likely(real != NULL))
		return real;
	driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
	real = plumb_real_dlsym(driver ? driver : RTLD_NEXT, entry->name);
	if (driver)
		dlclose(driver);
	if (real == entry->linked)
		real = NULL;
	atomic_store_explicit(&entry->real_linked, real, memory_order_release);
	return real;
}

/* OURS in place of the driver's FOUND, which REAL remembers. FOUND itself, if REAL is another one:
 * a process with two drivers is counted by one. */
static void *
replaced(_Atomic(void *) *real, void *found, void *ours)
{
	void *known = NULL;

	if (atomic_compare_exchange_strong(real, &known, found) || known == found)
		return ours;
	return found;
}

static void *
answer_asked(struct entry *entry, void *found)
{
	return replaced(&entry->real_asked, found, entry->asked);
}

/* ---- launches ---- */

#define DEFINE(name, parameters, arguments, what)                                                  \
	PLUMB_EXPORT CUresult CUDAAPI name parameters;                                             \
	CUresult CUDAAPI name parameters                                                           \
	{                                                                                          \
		CUresult(CUDAAPI *real) parameters =                                               \
			(CUresult(CUDAAPI *) parameters)real_linked(&table[NUMBER_##name]);        \
		if (plumb_unlikely(!real))                                                         \
			return CUDA_ERROR_NOT_INITIALIZED;                                         \
		plumb_count_launch(what);                                                          \
		return real arguments;                                                             \
	}                                                                                          \
	static CUresult CUDAAPI asked_##name parameters                                            \
	{                                                                                          \
		CUresult(CUDAAPI *real) parameters =                                               \
			(CUresult(CUDAAPI *) parameters)atomic_load_explicit(                      \
				&table[NUMBER_##name].real_asked, memory_order_relaxed);           \
		plumb_count_launch(what);                                                          \
		return real arguments;                                                             \
	}
#define W(name, parameters, arguments, what)                                                       \
	DEFINE(name, parameters, arguments, what)                                                  \
	DEFINE(name##_ptsz, parameters, arguments, what)
LAUNCHES(W)
#undef W

/* ---- cuGetProcAddress ---- */

static void
replace(const char *symbol, void **found, int version, cuuint64_t flags)
{
	bool own_stream = flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;

	if (!plumb_count_wanted || !symbol || !found || !*found)
		return;
	if (!strcmp(symbol, "cuGetProcAddress")) {
		*found = answer_asked(&table[version >= 12000 ? NUMBER_cuGetProcAddress_v2
		                                              : NUMBER_cuGetProcAddress],
		                      *found);
		return;
	}
	for (int i = 0; i < LAUNCH_FUNCTIONS; i++)
		if (!strcmp(symbol, table[i].name)) {
			*found = answer_asked(&table[own_stream ? i | 1 : i], *found);
			return;
		}
}

typedef CUresult(CUDAAPI *first_version)(const char *, void **, int, cuuint64_t);
typedef CUresult(CUDAAPI *second_version)(const char *, void **, int, cuuint64_t,
                                          CUdriverProcAddressQueryResult *);

static CUresult
get_first(void *real, const char *symbol, void **found, int version, cuuint64_t flags)
{
	CUresult result = real ? ((first_version)real)(symbol, found, version, flags)
	                       : CUDA_ERROR_NOT_INITIALIZED;

	if (result == CUDA_SUCCESS)
		replace(symbol, found, version, flags);
	return result;
}

static CUresult
get_second(void *real, const char *symbol, void **found, int version, cuuint64_t flags,
           CUdriverProcAddressQueryResult *status)
{
	CUresult result = real ? ((second_version)real)(symbol, found, version, flags, status)
	                       : CUDA_ERROR_NOT_INITIALIZED;

	if (result == CUDA_SUCCESS)
		replace(symbol, found, version, flags);
	return result;
}

PLUMB_EXPORT CUresult CUDAAPI cuGetProcAddress(const char *symbol, void **found, int version,
                                               cuuint64_t flags);
PLUMB_EXPORT CUresult CUDAAPI cuGetProcAddress_v2(const char *symbol, void **found, int version,
                                                  cuuint64_t flags,
                                                  CUdriverProcAddressQueryResult *status);

CUresult CUDAAPI
cuGetProcAddress(const char *symbol, void **found, int version, cuuint64_t flags)
{
	return get_first(real_linked(&table[NUMBER_cuGetProcAddress]), symbol, found, version,
	                 flags);
}

CUresult CUDAAPI
cuGetProcAddress_v2(const char *symbol, void **found, int version, cuuint64_t flags,
                    CUdriverProcAddressQueryResult *status)
{
	return get_second(real_linked(&table[NUMBER_cuGetProcAddress_v2]), symbol, found, version,
	                  flags, status);
}

static CUresult CUDAAPI
asked_cuGetProcAddress(const char *symbol, void **found, int version, cuuint64_t flags)
{
	return get_first(atomic_load(&table[NUMBER_cuGetProcAddress].real_asked), symbol, found,
	                 version, flags);
}

static CUresult CUDAAPI
asked_cuGetProcAddress_v2(const char *symbol, void **found, int version, cuuint64_t flags,
                          CUdriverProcAddressQueryResult *status)
{
	return get_second(atomic_load(&table[NUMBER_cuGetProcAddress_v2].real_asked), symbol, found,
	                  version, flags, status);
}

static struct entry table[FUNCTIONS] = {
#define ROW(function)                                                                              \
	[NUMBER_##function] = { .name = #function,                                                 \
		                .linked = (void *)function,                                        \
		                .asked = (void *)asked_##function },
#define W(name, ...) ROW(name) ROW(name##_ptsz)
	LAUNCHES(W)
#undef W
		ROW(cuGetProcAddress) ROW(cuGetProcAddress_v2)
};

/* ---- dlsym ---- */

void *
plumb_count_answer(void *library, const char *name)
{
	void *found;

	if (!plumb_count_wanted || name[0] != 'c' || name[1] != 'u')
		return NULL;
	for (int i = 0; i < FUNCTIONS; i++) {
		if (strcmp(name, table[i].name))
			continue;
		found = plumb_real_dlsym(library, name);
		return found && found != table[i].linked
		               ? replaced(&table[i].real_linked, found, table[i].linked)
		               : NULL;
	}
	return NULL;
}

PLUMB_BEFORE_SANITIZERS struct plumb_dlsym_answer
plumb_dlsym_hook(void *library, const char *name)
{
	struct plumb_dlsym_answer answer = { plumb_dlsym_address(), NULL };

	if (name && library != RTLD_NEXT)
		answer.result = plumb_count_answer(library, name);
	return answer;
}
