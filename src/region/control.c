/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Used inside other people's programs, too: no heap, no print, errno kept by the callers. Each turn
 * is one exchange of the word, so that a process that is killed in the middle leaves it sound.
 */
#include "region/control.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"

void
plumb_control_init(struct plumb_control *control, bool paused, uint64_t now)
{
	memset(control, 0, sizeof *control);
	control->version = PLUMB_CONTROL_VERSION;
	control->size = PLUMB_CONTROL_SIZE;
	atomic_store(&control->began_paused, paused);
	atomic_store(&control->word, paused ? 0 : now | PLUMB_CONTROL_ON);
	memcpy(control->magic, PLUMB_CONTROL_MAGIC, sizeof control->magic);
}

int
plumb_control_create(struct plumb_control **control, const char *path, bool paused,
                     struct plumb_error *error)
{
	union {
		struct plumb_control control;
		char bytes[PLUMB_CONTROL_SIZE];
	} page = { .bytes = { 0 } };
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		return plumb_fail_errno(error, "cannot create %s", path);
	plumb_control_init(&page.control, paused, plumb_clock_ns());
	/* Written, not mapped into a hole: a full file system is an error here and not a signal
	 * later. */
	ssize_t written = write(fd, &page, sizeof page);
	if (written == (ssize_t)sizeof page)
		*control =
			mmap(NULL, PLUMB_CONTROL_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (written >= 0 && written < (ssize_t)sizeof page)
		errno = ENOSPC;
	if (written != (ssize_t)sizeof page || *control == MAP_FAILED) {
		int code = plumb_fail_errno(error, "cannot write %s", path);
		close(fd);
		unlink(path);
		*control = NULL;
		return code;
	}
	close(fd);
	return 0;
}

uint64_t
plumb_control_begin(struct plumb_control *control)
{
	uint64_t now = plumb_clock_ns();

	if (plumb_control_is_on(control))
		atomic_store(&control->word, now | PLUMB_CONTROL_ON);
	return now;
}

struct plumb_control *
plumb_control_map(const char *path, bool shared)
{
	int fd = open(path, (shared ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat status;
	struct plumb_control head;
	void *page = MAP_FAILED;

	if (fd < 0)
		return NULL;
	if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
	    status.st_size == PLUMB_CONTROL_SIZE &&
	    pread(fd, &head, sizeof head, 0) == (ssize_t)sizeof head &&
	    !memcmp(head.magic, PLUMB_CONTROL_MAGIC, sizeof head.magic) &&
	    head.version == PLUMB_CONTROL_VERSION)
		page = mmap(NULL, PLUMB_CONTROL_SIZE, PROT_READ | PROT_WRITE,
		            shared ? MAP_SHARED : MAP_PRIVATE, fd, 0);
	close(fd);
	return page == MAP_FAILED ? NULL : page;
}

void
plumb_control_unmap(struct plumb_control *control)
{
	if (control)
		munmap(control, PLUMB_CONTROL_SIZE);
}

bool
plumb_control_start(struct plumb_control *control, uint64_t now)
{
	uint64_t word = atomic_load(&control->word);

	do
		if (word & PLUMB_CONTROL_ON)
			return false;
	while (!atomic_compare_exchange_weak(&control->word, &word, now | PLUMB_CONTROL_ON));
	atomic_fetch_add(&control->flips, 1);
	return true;
}

bool
plumb_control_stop(struct plumb_control *control, uint64_t now)
{
	uint64_t word = atomic_load(&control->word), since;

	do
		if (!(word & PLUMB_CONTROL_ON))
			return false;
	while (!atomic_compare_exchange_weak(&control->word, &word, now & ~PLUMB_CONTROL_ON));
	since = word & ~PLUMB_CONTROL_ON;
	atomic_fetch_add(&control->recorded_ns, now > since ? now - since : 0);
	atomic_fetch_add(&control->flips, 1);
	return true;
}

uint64_t
plumb_control_recorded(const struct plumb_control *control, uint64_t now)
{
	uint64_t since = plumb_control_since(control);
	uint64_t recorded = atomic_load_explicit(&control->recorded_ns, memory_order_relaxed);

	return recorded + (since && now > since ? now - since : 0);
}
