/* SPDX-License-Identifier: Apache-2.0 */
/* A program of C that embeds an interpreter: FILE is its library, TEXT the Python that it runs. It
 * launches a kernel before that and one after it. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

int cudaLaunchKernel(const char *name, uint64_t ns);

static void *
find(void *library, const char *name)
{
	void *found = dlsym(library, name);

	if (!found)
		fprintf(stderr, "no %s\n", name);
	return found;
}

__attribute__((noinline)) static int
launch(const char *name)
{
	int result = cudaLaunchKernel(name, 1000);
	__asm__ volatile("");
	return result;
}

int
main(int count, char **arguments)
{
	void *library = count > 2 ? dlopen(arguments[1], RTLD_NOW | RTLD_GLOBAL) : NULL;
	void (*initialize)(void);
	int (*run)(const char *);

	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		return 2;
	}
	launch("before");
	*(void **)&initialize = find(library, "Py_Initialize");
	*(void **)&run = find(library, "PyRun_SimpleString");
	initialize();
	if (run(arguments[2]))
		return 3;
	launch("after");
	return 0;
}
