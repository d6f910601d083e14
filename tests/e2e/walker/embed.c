/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that is no Python but loads one privately: embed SHIM LIBPYTHON [SOURCE]. Prints what
 * attaching gives before the library is there, with it, with its interpreter started, and whenever
 * SOURCE calls show(); when attached, the innermost frame.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int (*attach)(char *, size_t);
static int (*record)(const void *, size_t);
static const char *(*text)(void);

static void
show(const char *when)
{
	char message[1000];
	int rc = attach(message, sizeof message);

	printf("%s|%d|%s\n", when, rc, message);
	if (rc == 0 && record(NULL, 100) > 0) {
		char *line = strdup(text());
		for (char *c = line; *c; c++)
			*c = *c == '\037' ? '|' : *c == '\036' ? '\0' : *c;
		printf("frame|%s\n", line);
		free(line);
	}
	fflush(stdout);
}

static void *python;

/* The function show() of the interpreter: its stable interface, without its headers. */
static void *
show_inside(void *self, void *arguments)
{
	void *(*build)(const char *, ...);

	(void)self, (void)arguments;
	show("inside");
	*(void **)&build = dlsym(python, "Py_BuildValue");
	return build("");
}

static struct {
	const char *name;
	void *(*function)(void *, void *);
	int flags;
	const char *doc;
} method = { "show", show_inside, 4 /* no arguments */, NULL };

static void
add_function(void)
{
	void *(*make)(void *, void *, void *), *(*module)(const char *);
	int (*set)(void *, const char *, void *);

	*(void **)&make = dlsym(python, "PyCFunction_NewEx");
	*(void **)&module = dlsym(python, "PyImport_AddModule");
	*(void **)&set = dlsym(python, "PyObject_SetAttrString");
	set(module("__main__"), "show", make(&method, NULL, NULL));
}

int
main(int argc, char **argv)
{
	void *shim = argc > 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
	int (*run)(const char *);

	if (!shim) {
		fprintf(stderr, "%s\n",
		        argc > 2 ? dlerror() : "usage: embed SHIM LIBPYTHON [SOURCE]");
		return 1;
	}
	*(void **)&attach = dlsym(shim, "shim_attach");
	*(void **)&record = dlsym(shim, "shim_record");
	*(void **)&text = dlsym(shim, "shim_text");
	show("before");
	python = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);
	if (!python) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	show("loaded");
	if (argc > 3) {
		void (*start)(void), (*end)(void);
		*(void **)&start = dlsym(python, "Py_Initialize");
		*(void **)&end = dlsym(python, "Py_Finalize");
		*(void **)&run = dlsym(python, "PyRun_SimpleString");
		start();
		show("started");
		add_function();
		if (run(argv[3]))
			return 1;
		end();
		printf("ended|%d\n", record(NULL, 100));
	}
	return 0;
}
