/* SPDX-License-Identifier: Apache-2.0 */
/* What the stand-in libcupti's two parts tell each other. Private to tests/mock. */
#ifndef PLUMB_TESTS_MOCK_PCSAMPLING_H
#define PLUMB_TESTS_MOCK_PCSAMPLING_H

#include "tool.h"

#include <cupti_pcsampling.h>

void mock_pc_module(const char *image, size_t bytes);
void mock_count_work(const struct mock_work *work); /* from CUDA 12.8 on */
void mock_pc_work(const struct mock_work *work);

#endif
