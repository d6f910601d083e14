/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profile ⇄ one SQLite file. No other folder knows the SQL of profiles. The file is public:
 * docs/profile-format.md describes every table, column and view.
 */
#ifndef PLUMB_STORE_STORE_H
#define PLUMB_STORE_STORE_H

#include "base/output.h"
#include "model/profile.h"

#define PLUMB_STORE_SCHEMA 6

/*
 * Writes PROFILE to PATH by way of a temporary file in the same folder that is renamed at the end:
 * PATH is whole or untouched. A file there that is not a profile is not replaced. Errors:
 * PLUMB_EUSAGE (PATH must not be written), PLUMB_ESYSTEM (no space, permission, …). PROGRESS, when
 * not NULL, is called with 0…1.
 */
int plumb_store_write(const struct plumb_profile *profile, const char *path,
                      void (*progress)(void *data, double part), void *data,
                      struct plumb_error *error) PLUMB_MUST_CHECK;
/* How profiles are written. FORCE: any file is replaced, not only a profile. SHARED: the umask says
 * who may read the file. Without it, only the owner may. */
struct plumb_output_rule plumb_store_rule(bool force, bool shared);
/* As plumb_store_write, with a rule of plumb_store_rule. */
int plumb_store_write_by(const struct plumb_profile *profile, const char *path,
                         const struct plumb_output_rule *rule,
                         void (*progress)(void *data, double part), void *data,
                         struct plumb_error *error) PLUMB_MUST_CHECK;

/* Is PATH for us to read, or to complain about? A folder, or a file of another kind, is not. */
bool plumb_store_is_ours(const char *path);
/* Does PATH look like a profile? */
bool plumb_store_is_profile(const char *path);

/*
 * Reads PATH. Everything in the file is checked (it is untrusted input): ids in range, preorder
 * consistent, enumerations known. Errors: PLUMB_ESYSTEM (cannot read), PLUMB_EINPUT (not a profile,
 * of a newer schema, damaged), each naming PATH, the reason and what to do.
 */
int plumb_store_read(struct plumb_profile *profile, const char *path,
                     struct plumb_error *error) PLUMB_MUST_CHECK;

/* As plumb_store_read, but without the spans of a trace, which may be most of a file. For callers
 * that only need totals. */
int plumb_store_read_totals(struct plumb_profile *profile, const char *path,
                            struct plumb_error *error) PLUMB_MUST_CHECK;

/* As plumb_store_read, but reads only those spans that are on streams. For callers that need GPU
 * work alone. */
int plumb_store_read_streams(struct plumb_profile *profile, const char *path,
                             struct plumb_error *error) PLUMB_MUST_CHECK;

#endif
