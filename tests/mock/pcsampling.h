/* SPDX-License-Identifier: Apache-2.0 */
/* What the stand-in libcupti's two parts tell each other. Private to tests/mock. */
#ifndef PLUMB_TESTS_MOCK_PCSAMPLING_H
#define PLUMB_TESTS_MOCK_PCSAMPLING_H

#include <stdbool.h>

#include "tool.h"

#include <cupti_pcsampling.h>

void mock_pc_module(const char *image, size_t bytes);
/* From CUDA 12.8 on: was it counted? Then its record has no times. */
bool mock_count_work(const struct mock_work *work);
void mock_series_work(const struct mock_work *work);
/* How many passes a config image needs; 0: it is no config image. */
uint64_t mock_passes_of(const uint8_t *config);
/* Is IMAGE one of PM sampling, and what did METRIC count in sample NUMBER of it? */
int mock_is_series(const uint8_t *image);
double mock_series_value(const uint8_t *image, size_t number, const char *metric);
void mock_pc_work(const struct mock_work *work);

#endif
