/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors: a negative code, and a message that the caller owns.
 *
 * A function that can fail returns 0 (or a count) or a negative PLUMB_E code and fills the
 * caller's struct plumb_error, which may be NULL. The message names the cause and the remedy and
 * fits on a line; it is for people, the code is for programs.
 */
#ifndef PLUMB_BASE_ERROR_H
#define PLUMB_BASE_ERROR_H

enum plumb_error_code {
	PLUMB_OK = 0,
	PLUMB_EUSAGE = -1,  /* wrong use: exit code 1 */
	PLUMB_EINPUT = -2,  /* bad input: exit code 2 */
	PLUMB_EEMPTY = -3,  /* nothing to show: exit code 3 */
	PLUMB_EGATE = -4,   /* a gate does not hold: exit code 4 */
	PLUMB_ESYSTEM = -5, /* the system refused (space, permission, memory): exit code 5 */
};

struct plumb_error {
	int code;
	char message[1000];
};

#define PLUMB_MUST_CHECK __attribute__((warn_unused_result))
#define PLUMB_PRINTF(text, first) __attribute__((format(printf, text, first)))

/* Fills ERROR (when not NULL) and returns CODE, so that `return plumb_fail(error, …)` reads
 * well. */
int plumb_fail(struct plumb_error *error, int code, const char *format, ...) PLUMB_PRINTF(3, 4);

/* As plumb_fail with PLUMB_ESYSTEM, when the system gives no memory: "not enough memory FORMAT;
 * close other programs". FORMAT says what for: "to read %s", "for the findings". NULL: says
 * nothing of that. */
int plumb_fail_memory(struct plumb_error *error, const char *format, ...) PLUMB_PRINTF(2, 3);

/* As plumb_fail with PLUMB_ESYSTEM and ": strerror(errno)" after the message. */
int plumb_fail_errno(struct plumb_error *error, const char *format, ...) PLUMB_PRINTF(2, 3);

/* Puts "CONTEXT: " before the message that ERROR holds; returns its code. */
int plumb_fail_in(struct plumb_error *error, const char *format, ...) PLUMB_PRINTF(2, 3);

#endif
