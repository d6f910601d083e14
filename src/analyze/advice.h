/* SPDX-License-Identifier: Apache-2.0 */
/* What can be done about a hot operator or kernel, by what kind of work it is. */
#ifndef PLUMB_ANALYZE_ADVICE_H
#define PLUMB_ANALYZE_ADVICE_H

#include "model/profile.h"

/* What PyTorch has, such as torch.compile, is no advice for other programs. */
bool plumb_advice_is_torch(const struct plumb_profile *profile);

/* What to do about an operator, a kernel or both (the other is NULL), whose time is that of the
 * GPU, or of the host. TORCH: of a PyTorch program. */
const char *plumb_advice_for(const char *op, const char *kernel, bool gpu, bool torch);

#endif
