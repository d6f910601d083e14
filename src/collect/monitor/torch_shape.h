/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inputs and outputs of an at::RecordFunction as text: "(float32[64,128], int, None)". For torch.c.
 *
 * Sizes and strides come from c10::TensorImpl's own functions. Where a tensor keeps its data type
 * and its dispatch keys is found by making four tensors. Only tensors of the class TensorImpl
 * itself and without a Python dispatch key are asked: others (sparse, nested, fake, wrapped) would
 * throw C++ exceptions or call Python, and stand as "tensor". Numbers stand by their type, lists of
 * them in full.
 */
#ifndef PLUMB_COLLECT_MONITOR_TORCH_SHAPE_H
#define PLUMB_COLLECT_MONITOR_TORCH_SHAPE_H

#include <stddef.h>

#include "collect/monitor/torch_abi.h"

/* Finds what is needed. 0: ready. Negative: refused, ERROR says why. *NOTE gets what is off
 * although the rest is on, or NULL. */
int torch_shape_find(const struct torch_abi *abi, const char **note, struct plumb_error *error);

/* NAME is the operator's. Both write into TEXT of SIZE (at least 64) bytes and return how many; 0:
 * nothing is known. In the start callback … */
size_t torch_shape_inputs(const void *record, const char *name, char *text, size_t size);
/* … and in the end callback. */
size_t torch_shape_outputs(const void *record, char *text, size_t size);

#endif
