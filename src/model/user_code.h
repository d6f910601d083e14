/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Says what your code is: the one rule for all reports.
 *
 * A Python frame is your code unless one of these is true for its file:
 *   - It is under a folder named site-packages or dist-packages.
 *   - It is in a standard library: under lib/pythonX.Y or lib64/pythonX.Y (also pypyX.Y), or in a
 *     pythonXY.zip.
 *   - A package generated it (model/generated.h). But a program that was started is yours wherever
 *     it lies, and so are files beside it in a temporary folder of its own.
 *   - Its name begins at a well-known package (`torch/nn/modules/linear.py`), or it is a module of
 *     the standard library without a folder (`threading.py`). PyTorch's profiler writes such
 *     names.
 *   - Its name is in angle brackets. This is no file but code that a library or the interpreter
 *     made (`<frozen importlib._bootstrap>`, `<string>`). But you typed `<stdin>`, `<console>`,
 *     `<ipython…>` and `<python-input…>`, and the `<string>` of `python -c`, except the function
 *     `launcher` in it: Inductor launches kernels with such a function.
 * A Python frame without a file is not your code. In programs without Python, native functions may
 * be (user_native.h). Frames of any other kind are not.
 *
 * A RULE changes that. Its entries `+PREFIX` and `-PREFIX`, separated by `:`, say that files under
 * PREFIX are, or are not, your code. PREFIX is a file or folder as the frame has it (`/opt/app`
 * matches `/opt/app/a.py` and not `/opt/apps/a.py`), or a name in angle brackets. If several
 * entries match, the last one counts. `+` alone and `-` alone match every file.
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

/* What the rule's entries say of FILE: 1 it is, 0 it is not, -1 nothing. */
int plumb_user_code_said(const struct plumb_user_code *user_code, const char *file);

/* Where a frame of your code is. Native code without debug information has no line: then FUNCTION
 * is its name, and FILE its program or library. Texts are the profile's, and NULL if unknown. */
struct plumb_user_place {
	const char *file;
	uint32_t line; /* 0 unknown */
	const char *function;
};
struct plumb_user_place plumb_user_place(const struct plumb_profile *profile, uint32_t frame);
/* "train.py:12" or "step in solver" into TEXT, which is returned. WHOLE: with the folders. */
char *
plumb_user_place_text(const struct plumb_user_place *place, bool whole, char *text, size_t size);

/* FILE is a program that was started, or "<string>" for the text of `python -c`. It must stay until
 * USER_CODE is freed. PLUMB_ESYSTEM: no memory. */
int plumb_user_code_program(struct plumb_user_code *user_code, const char *file);

/* FILE from the package on that it belongs to (`torch/nn/functional.py`); NULL: it belongs to none.
 * STANDARD: it is of the standard library. */
const char *plumb_user_code_package(const char *file, bool *standard);

/* For every frame of PROFILE 1 if it is the person's own, else 0; the caller frees it. NULL with
 * ERROR filled as for plumb_user_code_new. */
unsigned char *plumb_user_code_frames(const struct plumb_profile *profile, const char *rule,
                                      struct plumb_error *error);

#endif
