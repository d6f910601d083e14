/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is the person's own code: the one rule that every report uses.
 *
 * A Python frame is the person's own unless its file
 *   - lies under a folder named site-packages or dist-packages,
 *   - lies in a standard library: under lib/pythonX.Y or lib64/pythonX.Y (also pypyX.Y), or in a
 *     pythonXY.zip,
 *   - is one that PyTorch's compiler generated (plumb_user_code_generated),
 *   - is named from a well-known package on (`torch/nn/modules/linear.py`), or is a module of the
 *     standard library without a folder (`threading.py`): so PyTorch's profiler has them in its
 *     traces,
 *   - has a name in angle brackets, which is no file but code that a library or the interpreter
 *     made (`<frozen importlib._bootstrap>`); but `<string>`, `<stdin>` and `<ipython…>` are what a
 *     person typed, all but the function `launcher` in `<string>`, by which Inductor launches
 *     kernels.
 * A frame without a file and a frame of any other kind is not.
 *
 * A RULE changes that: entries `+PREFIX` and `-PREFIX`, separated by `:`, say that files under
 * PREFIX are, or are not, the person's own. PREFIX is a file or folder as the frame has it
 * (`/opt/app` matches `/opt/app/a.py` and not `/opt/apps/a.py`), or a name in angle brackets. Of
 * several entries that match the last one counts. `+` alone and `-` alone match every file.
 */
#ifndef PLUMB_MODEL_USER_CODE_H
#define PLUMB_MODEL_USER_CODE_H

#include "model/profile.h"

struct plumb_user_code;

/* RULE may be NULL: no changes. NULL with ERROR filled: PLUMB_EUSAGE (an entry with neither + nor
 * -), PLUMB_ESYSTEM (no memory). */
struct plumb_user_code *plumb_user_code_new(const char *rule, struct plumb_error *error);
void plumb_user_code_free(struct plumb_user_code *user_code);

/* FILE as a Python frame names it; NULL is not the person's own. */
bool plumb_user_code_file(const struct plumb_user_code *user_code, const char *file);

/* Has FILE a name that PyTorch's compiler (Inductor) gives to the Python files it generates: "c",
 * its hash in base 32, ".py"? */
bool plumb_user_code_generated(const char *file);

/* For every frame of PROFILE 1 if it is the person's own, else 0; the caller frees it. NULL with
 * ERROR filled as for plumb_user_code_new. */
unsigned char *plumb_user_code_frames(const struct plumb_profile *profile, const char *rule,
                                      struct plumb_error *error);

#endif
