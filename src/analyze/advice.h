/* SPDX-License-Identifier: Apache-2.0 */
/* What can be done about a hot operator or kernel, by what kind of work it is. */
#ifndef PLUMB_ANALYZE_ADVICE_H
#define PLUMB_ANALYZE_ADVICE_H

#include "model/framework/framework.h"

/* What to do about an operator, a kernel or both (the other is NULL), whose time is that of the
 * GPU, or of the host. FRAMEWORK: whose program it is, or NULL. Only its programs can use what it
 * alone has, such as torch.compile. */
const char *plumb_advice_for(const char *op, const char *kernel, bool gpu,
                             const struct plumb_framework_names *framework);

/* What kind of work they are to that advice. */
enum plumb_work_kind plumb_advice_kind(const char *op, const char *kernel);

#endif
