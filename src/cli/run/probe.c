/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

struct task {
	const char *const *argv; /* NULL: function */
	const char *library;
	bool errors;
	int (*function)(void *data);
	void *data;
};

/* Takes out what means the current folder, or one below it. */
static void
clean_search_path(const char *name)
{
	const char *from = getenv(name);
	char *kept = from ? malloc(strlen(from) + 1) : NULL;
	size_t used = 0;
	if (!kept)
		return;
	for (size_t length; *from; from += length + (from[length] == ':')) {
		length = strcspn(from, ":");
		if (*from != '/')
			continue;
		if (used)
			kept[used++] = ':';
		memcpy(kept + used, from, length);
		used += length;
	}
	kept[used] = '\0';
	setenv(name, kept, 1);
	free(kept);
}

void
plumb_probe_become(const char *const *argv)
{
	const char *from = getenv("PATH");
	char path[PATH_MAX];
	int why = ENOENT;
	if (strchr(argv[0], '/')) {
		execv(argv[0], (char *const *)argv);
		return;
	}
	if (!from)
		from = "/usr/local/bin:/usr/bin:/bin";
	for (size_t length; *from; from += length + (from[length] == ':')) {
		length = strcspn(from, ":");
		/* What begins otherwise depends on the current folder. */
		if (*from != '/' || length + strlen(argv[0]) + 2 > sizeof(path))
			continue;
		snprintf(path, sizeof(path), "%.*s/%s", (int)length, from, argv[0]);
		execv(path, (char *const *)argv);
		if (errno != ENOENT && errno != ENOTDIR)
			why = errno;
	}
	errno = why;
}

static void __attribute__((noreturn))
run_child(const struct task *task, int output)
{
	int nothing = open("/dev/null", O_RDWR);
	signal(SIGPIPE, SIG_DFL);
	dup2(nothing, STDIN_FILENO);
	dup2(output, STDOUT_FILENO);
	dup2(task->errors ? output : nothing, STDERR_FILENO);
	unsetenv("CUDA_INJECTION64_PATH");
	unsetenv("NVTX_INJECTION64_PATH");
	unsetenv("LD_PRELOAD");
	unsetenv("PLUMB_FOLDER");
	if (!task->argv) {
		int status = task->function(task->data);
		fflush(stdout);
		_exit(status);
	}
	if (task->library)
		setenv("LD_PRELOAD", task->library, 1);
	clean_search_path("PYTHONPATH");
	plumb_probe_become(task->argv);
	_exit(127);
}

/* Reads until the end, or until END; false: the time is over. What does not fit is read and
 * left. */
static bool
read_output(struct plumb_probe *probe, int input, int64_t end)
{
	size_t have = 0;
	for (;;) {
		char block[4096];
		struct pollfd poller = { .fd = input, .events = POLLIN };
		int64_t left = end - plumb_clock_ms();
		int ready = left > 0 ? poll(&poller, 1, (int)left) : 0;
		if (ready < 0 && errno == EINTR)
			continue;
		if (ready == 0)
			return false;
		ssize_t got = read(input, block, sizeof(block));
		if (got <= 0)
			return true;
		size_t room = sizeof(probe->output) - 1 - have;
		size_t taken = (size_t)got < room ? (size_t)got : room;
		memcpy(probe->output + have, block, taken);
		have += taken;
		probe->output[have] = '\0';
	}
}

static bool
run_task(struct plumb_probe *probe, const struct task *task, unsigned seconds)
{
	int channel[2], status = 0;
	memset(probe, 0, sizeof(*probe));
	probe->status = 127;
	fflush(NULL); /* or the child would write our buffers too */
	if (pipe2(channel, O_CLOEXEC) != 0)
		return false;
	pid_t pid = fork();
	if (pid == 0)
		run_child(task, channel[1]);
	close(channel[1]);
	if (pid > 0) {
		probe->timed_out =
			!read_output(probe, channel[0], plumb_clock_ms() + seconds * 1000ll);
		if (probe->timed_out)
			kill(pid, SIGKILL);
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
		probe->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	}
	close(channel[0]);
	return pid > 0 && !probe->timed_out && probe->status == 0;
}

bool
plumb_probe_command(struct plumb_probe *probe, const char *const *argv, const char *library,
                    bool errors, unsigned seconds)
{
	struct task task = { .argv = argv, .library = library, .errors = errors };
	return run_task(probe, &task, seconds);
}

bool
plumb_probe_call(struct plumb_probe *probe, int (*function)(void *data), void *data,
                 unsigned seconds)
{
	struct task task = { .function = function, .data = data };
	return run_task(probe, &task, seconds);
}

const char *
plumb_probe_value(const char *output, const char *key, char *text, size_t size)
{
	size_t length = strlen(key);
	for (const char *line = output; line && *line;) {
		const char *end = strchrnul(line, '\n');
		if (strncmp(line, key, length) == 0 && line[length] == '=') {
			const char *value = line + length + 1;
			size_t bytes =
				(size_t)(end - value) < size ? (size_t)(end - value) : size - 1;
			memcpy(text, value, bytes);
			text[bytes] = '\0';
			return text;
		}
		line = *end ? end + 1 : NULL;
	}
	return NULL;
}
