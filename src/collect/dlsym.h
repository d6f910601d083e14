/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dlsym hook: dlsym itself is replaced, asks plumb_dlsym_hook, and goes on to the real one or
 * returns what the hook says. The real one must see its real caller (RTLD_NEXT depends on it), so
 * the hook jumps on to it rather than calling it. Both of plumb's libraries have the hook, each
 * with its own plumb_dlsym_hook. If both are loaded, that of the collector comes first and asks the
 * counter.
 */
#ifndef PLUMB_COLLECT_DLSYM_H
#define PLUMB_COLLECT_DLSYM_H

/* A sanitizer's runtime looks symbols up before its own memory is there. */
#define PLUMB_BEFORE_SANITIZERS __attribute__((no_sanitize("address", "undefined")))

/* What the hook answers: where to jump, or what to return instead. */
struct plumb_dlsym_answer {
	void *jump;
	void *result;
};
__attribute__((used, visibility("hidden"))) struct plumb_dlsym_answer
plumb_dlsym_hook(void *library, const char *name);

/* Where the real dlsym is, for `jump`. */
void *plumb_dlsym_address(void);

/* What a program that asks LIBRARY for NAME gets so that its launches are counted; NULL: what it
 * would get without us. In the counter; NULL itself, where that is not loaded. */
__attribute__((weak, visibility("default"))) void *
plumb_count_answer(void *library, const char *name);

#endif
