/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded before the collector: makes a call that the collector makes to libc fail.
 *
 *   FAULT=FUNCTION:NTH:ERRNO[:ALWAYS]   the NTH call from 1 of FUNCTION, or from it on
 *   FUNCTION: mmap madvise open ftruncate write read pthread_key_create, or any
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct {
	char function[32];
	unsigned long nth;
	int error, always;
	uintptr_t start, end; /* of the collector */
} fault;
static _Atomic unsigned long calls;

static int
find(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)size;
	(void)data;
	const char *base = strrchr(info->dlpi_name, '/');
	if (!base || strcmp(base, "/libplumb.so"))
		return 0;
	fault.start = info->dlpi_addr;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];
		if (header->p_type == PT_LOAD)
			fault.end = info->dlpi_addr + header->p_vaddr + header->p_memsz;
	}
	return 1;
}

static __attribute__((constructor)) void
prepare(void)
{
	const char *text = getenv("FAULT");
	const char *colon = text ? strchr(text, ':') : NULL;
	if (!colon || (size_t)(colon - text) >= sizeof fault.function)
		return;
	memcpy(fault.function, text, (size_t)(colon - text));
	char *end;
	fault.nth = strtoul(colon + 1, &end, 10);
	fault.error = *end ? (int)strtol(end + 1, &end, 10) : ENOMEM;
	fault.always = *end == ':';
}

static int
fails(const char *function, void *caller)
{
	uintptr_t at = (uintptr_t)caller;
	if (!fault.nth || (strcmp(fault.function, function) && strcmp(fault.function, "any")))
		return 0;
	if (!fault.start)
		dl_iterate_phdr(find, NULL);
	if (at < fault.start || at >= fault.end)
		return 0;
	unsigned long call = ++calls;
	if (call != fault.nth && !(fault.always && call > fault.nth))
		return 0;
	errno = fault.error;
	return 1;
}

#define CALLER __builtin_return_address(0)
#define REAL(function)                                                                             \
	static __typeof__(&function) real;                                                         \
	if (!real)                                                                                 \
	*(void **)&real = dlsym(RTLD_NEXT, #function)

void *
mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset)
{
	REAL(mmap);
	return fails("mmap", CALLER) ? MAP_FAILED
	                             : real(address, length, protection, flags, fd, offset);
}

int
madvise(void *address, size_t length, int advice)
{
	REAL(madvise);
	return fails("madvise", CALLER) ? -1 : real(address, length, advice);
}

int
open(const char *path, int flags, ...)
{
	REAL(open);
	va_list list;
	va_start(list, flags);
	mode_t mode = va_arg(list, mode_t);
	va_end(list);
	return fails("open", CALLER) ? -1 : real(path, flags, mode);
}

int
ftruncate(int fd, off_t length)
{
	REAL(ftruncate);
	return fails("ftruncate", CALLER) ? -1 : real(fd, length);
}

ssize_t
write(int fd, const void *data, size_t bytes)
{
	REAL(write);
	return fails("write", CALLER) ? -1 : real(fd, data, bytes);
}

ssize_t
read(int fd, void *data, size_t bytes)
{
	REAL(read);
	return fails("read", CALLER) ? -1 : real(fd, data, bytes);
}

int
pthread_key_create(pthread_key_t *key, void (*destructor)(void *))
{
	REAL(pthread_key_create);
	return fails("pthread_key_create", CALLER) ? ENOMEM : real(key, destructor);
}
