/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the shim knows of PyTorch's binary interface: symbols, and where fields of
 * at::RecordFunction lie. Symbols are looked up, fields are found at run time by probing one
 * object; nothing is assumed from a version number. Seen on PyTorch 1.13 to 2.15.
 */
#ifndef PLUMB_COLLECT_MONITOR_TORCH_ABI_H
#define PLUMB_COLLECT_MONITOR_TORCH_ABI_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* at::RecordScope */
enum {
	TORCH_SCOPE_FUNCTION = 0,
	TORCH_SCOPE_BACKWARD = 1,
	TORCH_SCOPE_TORCHSCRIPT = 2,
	TORCH_SCOPE_CUSTOM_CLASS = 4,
	TORCH_SCOPE_LITE = 6,
	TORCH_SCOPE_USER = 7,
	TORCH_SCOPE_STATIC_OP = 8,
	TORCH_SCOPE_STATIC_MODEL = 9,
	TORCH_SCOPES = 10,
};

/* at::RecordFunctionCallback: passed by value, trivially copyable. */
struct torch_callback {
	void *start; /* unique_ptr<ObserverContext> (*)(const RecordFunction &) */
	void *end;   /* void (*)(const RecordFunction &, ObserverContext *) */
	double sampling_probability;
	uint8_t scopes[TORCH_SCOPES];
	uint8_t needs_inputs, needs_outputs, needs_ids;
	uint8_t pad[3];
};
_Static_assert(sizeof(struct torch_callback) == 40, "as at::RecordFunctionCallback");

struct torch_abi {
	uint64_t (*add_global_callback)(struct torch_callback);
	void (*remove_callback)(uint64_t);
	const char *(*name)(const void *record);
	uint64_t (*current_thread)(void);
	/* Byte offsets in at::RecordFunction, or -1 where the field was not found. */
	int sequence, forward_thread, scope;
	int outputs;          /* a vector of values, before the forward thread */
	double empty_pair_ns; /* cost of an empty start and end callback */
	char library[4096];   /* path of libtorch_cpu.so */
};

/*
 * Finds PyTorch and probes it. 0: ABI is filled. 1: PyTorch is not loaded. Negative: refused, ERROR
 * says why. START is the address of a start callback as PyTorch calls it; while probing, it must
 * call torch_abi_probed().
 */
int torch_abi_find(struct torch_abi *abi, struct plumb_error *error);

#endif
