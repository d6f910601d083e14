/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as people read them: base/format.h, under the name by which this folder knew it. */
#ifndef PLUMB_CLI_FORMAT_H
#define PLUMB_CLI_FORMAT_H

#include "base/format.h"

#endif
