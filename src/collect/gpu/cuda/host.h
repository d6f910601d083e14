/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host's side of CUPTI's profilers, which the range profiler (counters.c) and PM sampling
 * (series.c) share: which metrics a chip has, in how many passes they come, and what their values
 * are. It does not touch the GPU. CUDA 12.8 and newer.
 */
#ifndef PLUMB_COLLECT_GPU_CUDA_HOST_H
#define PLUMB_COLLECT_GPU_CUDA_HOST_H

#include "collect/gpu/cuda/counters_api.h"
#include "collect/gpu/cuda/runtime.h"

/* For each function of a list in counters_api.h: where it is, and a call that takes parameters of
 * its own type, so that wrong ones do not compile. */
#define PLUMB_CUPTI_CALL(name, params, last)                                                       \
	static CUptiResult (*call_##name)(struct params *);                                        \
	static CUptiResult cupti_##name(struct params *given)                                      \
	{                                                                                          \
		given->size = PLUMB_PARAMS_SIZE(struct params, last);                              \
		return call_##name(given);                                                         \
	}
/* Finds it, or notes in `missing` that CUPTI lacks it, if nothing is missing yet. */
#define PLUMB_CUPTI_FIND(name, params, last)                                                       \
	call_##name = (CUptiResult(*)(struct params *))plumb_cupti_function("cupti" #name);        \
	if (!call_##name && !missing)                                                              \
		missing = "cupti" #name;

/* Zero it to start. Private but for `config` and `passes`. */
struct plumb_cuda_host {
	void *handle;
	uint8_t *config; /* once it is configured */
	size_t config_bytes, passes;
};

/* Once CUPTI is known. Returns the function that it lacks, or NULL. */
const char *plumb_cuda_host_find(void);
/* The number of CONTEXT's device, and the name of its chip. On failure *CALL says which call. */
CUptiResult
plumb_cuda_host_chip(CUcontext context, uint32_t *device, const char **chip, const char **call);
/* For a profiler of TYPE. AVAILABILITY: what the chip offers here. */
CUptiResult plumb_cuda_host_begin(struct plumb_cuda_host *host, uint32_t type, const char *chip,
                                  const uint8_t *availability, const char **call);
bool plumb_cuda_host_knows(const struct plumb_cuda_host *host, const char *name);
/* What to count: once for each begin. */
CUptiResult plumb_cuda_host_configure(struct plumb_cuda_host *host, char **names, unsigned count,
                                      const char **call);
/* The VALUES of NAMES in range or sample NUMBER of IMAGE. */
CUptiResult
plumb_cuda_host_evaluate(const struct plumb_cuda_host *host, const uint8_t *image, size_t bytes,
                         size_t number, char **names, unsigned count, double *values);
void plumb_cuda_host_end(struct plumb_cuda_host *host);

/* The sentence that says why WHAT ("kernels are not counted"): CUPTI lacks the function MISSING. */
void plumb_cuda_host_lacks(char *text, size_t size, const char *what, const char *missing);
/* The sentence that says why WHAT ("kernels are not counted"): CALL failed with RESULT. */
void plumb_cuda_host_why(char *text, size_t size, const char *what, const char *call,
                         CUptiResult result);

#endif
