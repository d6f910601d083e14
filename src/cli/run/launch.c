/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/output.h"

/* Signals that we wait for in the program's place. */
static const int ending[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
static const int handed_on[] = { SIGUSR1, SIGUSR2 };
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* SIGCHLD and those that do not come ignored to us: nohup's SIGHUP stays nobody's. */
static void
signals_of_interest(sigset_t *set)
{
	struct sigaction action;
	sigemptyset(set);
	for (size_t i = 0; i < COUNT(ending); i++)
		if (sigaction(ending[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
			sigaddset(set, ending[i]);
	for (size_t i = 0; i < COUNT(handed_on); i++)
		if (sigaction(handed_on[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
			sigaddset(set, handed_on[i]);
	sigaddset(set, SIGCHLD);
}

void
plumb_program_prepare(struct plumb_program *program)
{
	memset(program, 0, sizeof(*program));
	/* A file of ours must not become descriptor 0, 1 or 2. The program finds them closed
	 * again. */
	int fd;
	do
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
	struct sigaction ignore = { .sa_handler = SIG_IGN }, standard = { .sa_handler = SIG_DFL };
	sigaction(SIGPIPE, &ignore, &program->pipe);    /* a closed stderr is no reason to die */
	sigaction(SIGXFSZ, &ignore, &program->size);    /* a file size limit becomes EFBIG */
	sigaction(SIGCHLD, &standard, &program->child); /* ignored, exit codes would be lost */
	sigset_t set;
	signals_of_interest(&set);
	sigprocmask(SIG_BLOCK, &set, &program->mask);
}

void
plumb_program_again(struct plumb_program *program, const struct plumb_program *first)
{
	const struct timespec now = { 0 };
	sigset_t set;
	*program = (struct plumb_program){
		.mask = first->mask, .pipe = first->pipe, .child = first->child, .size = first->size
	};
	/* plumb_program_patience may have let one through. */
	signals_of_interest(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
	/* A new program would not get it. */
	sigdelset(&set, SIGCHLD);
	for (size_t i = 0; i < COUNT(handed_on); i++)
		sigdelset(&set, handed_on[i]);
	program->interrupted = sigtimedwait(&set, NULL, &now) > 0;
}

void
plumb_program_toggle(struct plumb_program *program, int number)
{
	sigset_t set;
	program->toggle = number;
	sigemptyset(&set);
	sigaddset(&set, number);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

/* In the child: nobody hears the program. */
static void
silence(const struct plumb_program *program)
{
	int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
	dup2(program->input < 0 ? nothing : program->input, STDIN_FILENO);
	dup2(nothing, STDOUT_FILENO);
	dup2(nothing, STDERR_FILENO);
}

/* In the child: everything as it came to us, then the program. */
static void __attribute__((noreturn))
become_program(const struct plumb_program *program, char *const *argv, char *const *environment,
               int report)
{
	sigaction(SIGPIPE, &program->pipe, NULL);
	sigaction(SIGXFSZ, &program->size, NULL);
	sigaction(SIGCHLD, &program->child, NULL);
	sigprocmask(SIG_SETMASK, &program->mask, NULL);
	if (program->is_silent)
		silence(program);
	if (program->announce)
		atomic_store(program->announce, (int32_t)getpid());
	execvpe(argv[0], argv, environment);
	int why = errno;
	while (write(report, &why, sizeof(why)) < 0 && errno == EINTR)
		;
	_exit(PLUMB_RUN_FAILED);
}

int
plumb_program_start(struct plumb_program *program, char *const *argv, char *const *environment,
                    struct plumb_error *error)
{
	int report[2], why = 0;
	program->exit_code = PLUMB_RUN_FAILED;
	if (pipe2(report, O_CLOEXEC) != 0)
		return plumb_fail_errno(error, "cannot start %s", argv[0]);
	program->pid = fork();
	if (program->pid == 0)
		become_program(program, argv, environment, report[1]);
	int saved = errno;
	close(report[1]);
	if (program->pid < 0) {
		close(report[0]);
		errno = saved;
		return plumb_fail_errno(error, "cannot start a process for %s", argv[0]);
	}
	ssize_t got;
	do
		got = read(report[0], &why, sizeof(why));
	while (got < 0 && errno == EINTR);
	close(report[0]);
	if (got != sizeof(why))
		return 0; /* the pipe was closed by a successful execve */
	while (waitpid(program->pid, NULL, 0) < 0 && errno == EINTR)
		;
	program->exit_code = why == ENOENT ? PLUMB_RUN_NOT_FOUND : PLUMB_RUN_CANNOT_EXECUTE;
	errno = why;
	return plumb_fail_errno(error, "cannot execute %s", argv[0]);
}

/* True when the program has ended. */
static bool
reap_program(struct plumb_program *program)
{
	int status;
	pid_t pid;
	do
		pid = waitpid(program->pid, &status, WNOHANG);
	while (pid < 0 && errno == EINTR);
	if (pid == 0)
		return false;
	if (pid < 0) {
		program->exit_code = PLUMB_RUN_FAILED; /* somebody else reaped it: cannot happen */
	} else if (WIFSIGNALED(status)) {
		program->signal = WTERMSIG(status);
		program->dumped = WCOREDUMP(status);
		program->exit_code = 128 + program->signal;
	} else {
		program->exit_code = WEXITSTATUS(status);
	}
	return true;
}

static bool
is_ending(int number)
{
	for (size_t i = 0; i < COUNT(ending); i++)
		if (ending[i] == number)
			return true;
	return false;
}

/* The next signal of SET, or -1 after MILLISECONDS (-1: it waits as long as it takes). */
static int
await_signal(const sigset_t *set, siginfo_t *info, int milliseconds)
{
	struct timespec time = { .tv_sec = milliseconds / 1000,
		                 .tv_nsec = (long)(milliseconds % 1000) * 1000000 };
	return milliseconds < 0 ? sigwaitinfo(set, info) : sigtimedwait(set, info, &time);
}

void
plumb_program_wait(struct plumb_program *program, const struct plumb_program_care *care)
{
	sigset_t set;
	signals_of_interest(&set);
	if (program->toggle)
		sigaddset(&set, program->toggle);
	while (!reap_program(program)) {
		siginfo_t info;
		int number = await_signal(&set, &info, care->turn ? care->turn(care->data) : -1);
		if (number < 0 || number == SIGCHLD)
			continue;
		if (number == program->toggle) {
			care->toggled(care->data);
			continue;
		}
		if (is_ending(number)) {
			program->interrupted = true;
			care->flush(care->data);
			if (reap_program(program))
				return;
		}
		/* The kernel sends to the terminal's whole foreground group, where the program is.
		 * One that signals its own group has its signal already, too. */
		if (info.si_code == SI_KERNEL || info.si_pid == program->pid)
			continue;
		kill(program->pid, number);
	}
}

bool
plumb_program_pause(unsigned milliseconds)
{
	struct timespec time = { .tv_sec = milliseconds / 1000,
		                 .tv_nsec = (long)(milliseconds % 1000) * 1000000 };
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	return sigtimedwait(&set, NULL, &time) != SIGCHLD;
}

void
plumb_program_die(int number)
{
	const struct rlimit none = { 0, 0 };
	sigset_t set;
	/* The second is for core patterns that are pipes, which the first does not stop. */
	setrlimit(RLIMIT_CORE, &none);
	prctl(PR_SET_DUMPABLE, 0);
	signal(number, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, number);
	kill(getpid(), number);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

/* ---- while settling ---- */

static const char *patience_texts[2];
static int patience_code, patience_signal;

static void
patience_handler(int number)
{
	static volatile sig_atomic_t times;
	int saved = errno;
	(void)number;
	int second = times > 0;
	times = 1;
	ssize_t written =
		write(STDERR_FILENO, patience_texts[second], strlen(patience_texts[second]));
	(void)written;
	if (second) {
		plumb_output_abandon();
		if (patience_signal)
			plumb_program_die(patience_signal);
		_exit(patience_code);
	}
	errno = saved;
}

void
plumb_program_patience(struct plumb_program *program, const char *first, const char *second)
{
	struct sigaction action = { .sa_handler = patience_handler, .sa_flags = SA_RESTART };
	struct timespec now = { 0 };
	sigset_t set;
	patience_texts[0] = first;
	patience_texts[1] = second;
	patience_code = program->exit_code;
	patience_signal = program->signal;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	struct sigaction before;
	if (sigaction(SIGINT, NULL, &before) != 0 || before.sa_handler == SIG_IGN ||
	    sigismember(&program->mask, SIGINT) == 1)
		return;
	/* What still waits there was meant for the program. */
	while (sigtimedwait(&set, NULL, &now) > 0)
		;
	sigaction(SIGINT, &action, NULL);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}
