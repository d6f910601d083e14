/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the stand-in libcuda share. Private to tests/mock. */
#ifndef PLUMB_TESTS_MOCK_DRIVER_H
#define PLUMB_TESTS_MOCK_DRIVER_H

#include "tool.h"

#define CALL(function, ...)                                                                        \
	function##_params params = { __VA_ARGS__ };                                                \
	struct mock_call call = {                                                                  \
		.id = CUPTI_DRIVER_TRACE_CBID_##function,                                          \
		.name = #function,                                                                 \
		.params = &params,                                                                 \
	}

/* ---- cuda.c ---- */
void mock_begin(struct mock_call *call);
CUresult mock_finish(struct mock_call *call, CUresult result);
uint32_t mock_current_device(void);
/* A copy that CALL makes, which has begun: of BYTES from the one address to the other. */
void mock_move(const struct mock_call *call, uint64_t from, uint64_t to, uint64_t bytes,
               CUstream stream);

/* ---- memory.c ---- */
struct mock_memory {
	uint64_t address, bytes;
	uint32_t device;
	uint8_t kind; /* CUpti_ActivityMemoryKind */
};
/* What is at ADDRESS: pageable memory if nobody knows. */
struct mock_memory mock_memory_at(uint64_t address);

#endif
