/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Environments for programs that a followed process executes. The collector would get lost if a
 * launch script exports LD_PRELOAD, by env(1), or if a child gets an environment of its own. This
 * file puts it back in front of what they set.
 *
 * It runs between fork (or vfork) and exec. So it uses no heap and no lock, and writes nothing that
 * the parent would see, except the run's control. What it needs is made when the library is loaded.
 * errno is as the real function leaves it.
 */
#include "collect/exec.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collect/exec_environment.h"
#include "collect/follow.h"
#include "collect/recording.h"

extern char **environ;

/* ---- the real functions ---- */

typedef int execve_function(const char *path, char *const *argv, char *const *envp);
typedef int fexecve_function(int file, char *const *argv, char *const *envp);
typedef int
execveat_function(int folder, const char *path, char *const *argv, char *const *envp, int flags);
typedef int spawn_function(int *pid, const char *path, const void *actions, const void *attributes,
                           char *const *argv, char *const *envp);

enum { EXECVE, EXECVPE, FEXECVE, EXECVEAT, SPAWN, SPAWNP, SYSTEM, POPEN, FUNCTIONS };
static const char *const names[FUNCTIONS] = { "execve",      "execvpe",      "fexecve", "execveat",
	                                      "posix_spawn", "posix_spawnp", "system",  "popen" };
static void *_Atomic functions[FUNCTIONS];

static void *
find_real(int which)
{
	void *found = atomic_load_explicit(&functions[which], memory_order_relaxed);
	if (plumb_unlikely(!found)) {
		found = plumb_real_dlsym(RTLD_NEXT, names[which]);
		atomic_store_explicit(&functions[which], found, memory_order_relaxed);
	}
	return found;
}

void
plumb_exec_load(const char *folder)
{
	for (int i = 0; i < FUNCTIONS; i++)
		(void)find_real(i);
	plumb_exec_environment_load(environ, folder);
}

/* ---- one call ---- */

enum { STACK_MOST = 16384 }; /* of an environment on the stack; a larger one is mapped */

struct call {
	char *const *envp; /* what the program gets */
	char *mapped;      /* or NULL */
	size_t bytes;
	_Atomic uint32_t *counted; /* or NULL: what goes back when the call fails */
};

/* Are programs followed that this process becomes or starts? */
static bool
is_wanted(void)
{
	return plumb_exec_environment_known() && (plumb_follow_others() || plumb_follow_process());
}

/* Counts a program that cannot get the collector. Returns what has to be done to its
 * environment. */
static enum plumb_exec_change
judge_program(enum plumb_exec_kind kind, struct call *call)
{
	enum plumb_exec_change change = PLUMB_EXEC_PUT;
	enum plumb_exec_reach reach = plumb_exec_environment_reach();
	if (reach == PLUMB_EXEC_GONE)
		return PLUMB_EXEC_LEAVE;
	if (kind != PLUMB_EXEC_FITS) {
		call->counted = &plumb_control->unloadable;
		change = kind == PLUMB_EXEC_STATIC ? PLUMB_EXEC_PUT
		         : kind == PLUMB_EXEC_MUSL ? PLUMB_EXEC_TAKE
		                                   : PLUMB_EXEC_LEAVE;
	}
	if (reach != PLUMB_EXEC_REACHED) {
		call->counted = &plumb_control->unreachable;
		atomic_store(&plumb_control->user, (uint32_t)geteuid());
		change = reach == PLUMB_EXEC_NO_LIBRARY ? PLUMB_EXEC_TAKE : PLUMB_EXEC_LEAVE;
	}
	if (call->counted)
		atomic_fetch_add(call->counted, 1);
	return change;
}

static size_t
begin_call(struct call *call, enum plumb_exec_kind kind, char *const *envp,
           enum plumb_exec_change *change)
{
	int saved = errno;
	*call = (struct call){ .envp = envp };
	*change = judge_program(kind, call);
	call->bytes = plumb_exec_environment_room(envp, *change);
	errno = saved;
	return call->bytes;
}

/* Fills in the environment, in STACK or in pages of its own where that is NULL. */
static void
fill_environment(struct call *call, char *stack, enum plumb_exec_change change)
{
	int saved = errno;
	char *room = stack;
	if (!room) {
		room = mmap(NULL, call->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		            -1, 0);
		call->mapped = room = room == MAP_FAILED ? NULL : room;
	}
	if (room)
		call->envp = plumb_exec_environment_fill(call->envp, change, room);
	errno = saved;
}

/* The call has come back: with FAILED, nothing was started. */
static void
end_call(struct call *call, bool failed)
{
	int saved = errno;
	if (failed && call->counted)
		atomic_fetch_sub(call->counted, 1);
	if (call->mapped)
		munmap(call->mapped, call->bytes);
	errno = saved;
}

/* Makes CALL's environment from ENVP for a file whose kind LOOK tells, then does ACTION, which uses
 * call.envp. A macro: the memory lies on the stack of the function that makes the call. */
#define WITH_ENVIRONMENT(call, look, envp, action)                                                 \
	do {                                                                                       \
		enum plumb_exec_change change_;                                                    \
		int saved_ = errno;                                                                \
		enum plumb_exec_kind kind_ = (look);                                               \
		errno = saved_;                                                                    \
		size_t bytes_ = begin_call(&(call), kind_, (envp), &change_);                      \
		if (bytes_)                                                                        \
			fill_environment(&(call),                                                  \
			                 bytes_ <= STACK_MOST ? __builtin_alloca(bytes_) : NULL,   \
			                 change_);                                                 \
		action;                                                                            \
	} while (0)

static int
run_path(const char *path, char *const *argv, char *const *envp)
{
	execve_function *execute = (execve_function *)find_real(EXECVE);
	struct call call = { .envp = envp };
	if (!is_wanted() || !path)
		return execute(path, argv, envp);
	WITH_ENVIRONMENT(call, plumb_exec_look(AT_FDCWD, path), envp,
	                 execute(path, argv, call.envp));
	end_call(&call, true);
	return -1;
}

static int
run_named(const char *name, char *const *argv, char *const *envp)
{
	execve_function *execute = (execve_function *)find_real(EXECVPE);
	struct call call = { .envp = envp };
	if (!is_wanted() || !name)
		return execute(name, argv, envp);
	WITH_ENVIRONMENT(call, plumb_exec_look_named(name), envp, execute(name, argv, call.envp));
	end_call(&call, true);
	return -1;
}

/* ---- what programs call ---- */

/* Under names of our own to the compiler, which knows too much about theirs. */
#define STANDS_FOR(symbol) __asm__(#symbol)
PLUMB_EXPORT int exec_ve(const char *, char *const *, char *const *) STANDS_FOR(execve);
PLUMB_EXPORT int exec_v(const char *, char *const *) STANDS_FOR(execv);
PLUMB_EXPORT int exec_vp(const char *, char *const *) STANDS_FOR(execvp);
PLUMB_EXPORT int exec_vpe(const char *, char *const *, char *const *) STANDS_FOR(execvpe);
PLUMB_EXPORT int exec_l(const char *, const char *, ...) STANDS_FOR(execl);
PLUMB_EXPORT int exec_lp(const char *, const char *, ...) STANDS_FOR(execlp);
PLUMB_EXPORT int exec_le(const char *, const char *, ...) STANDS_FOR(execle);
PLUMB_EXPORT int exec_file(int, char *const *, char *const *) STANDS_FOR(fexecve);
PLUMB_EXPORT int exec_at(int, const char *, char *const *, char *const *, int) STANDS_FOR(execveat);
PLUMB_EXPORT int spawn_path(int *, const char *, const void *, const void *, char *const *,
                            char *const *) STANDS_FOR(posix_spawn);
PLUMB_EXPORT int spawn_named(int *, const char *, const void *, const void *, char *const *,
                             char *const *) STANDS_FOR(posix_spawnp);
PLUMB_EXPORT int shell_run(const char *) STANDS_FOR(system);
PLUMB_EXPORT void *shell_open(const char *, const char *) STANDS_FOR(popen);

int
exec_ve(const char *path, char *const *argv, char *const *envp)
{
	return run_path(path, argv, envp);
}

int
exec_v(const char *path, char *const *argv)
{
	return run_path(path, argv, environ);
}

int
exec_vp(const char *name, char *const *argv)
{
	return run_named(name, argv, environ);
}

int
exec_vpe(const char *name, char *const *argv, char *const *envp)
{
	return run_named(name, argv, envp);
}

/* How many arguments follow FIRST up to NULL, it counted. */
#define COUNT_ARGUMENTS(count, first, list)                                                        \
	do {                                                                                       \
		va_start(list, first);                                                             \
		for (count = (first) != NULL; count && va_arg(list, char *); count++)              \
			;                                                                          \
		va_end(list);                                                                      \
	} while (0)
#define COPY_ARGUMENTS(argv, count, first, list)                                                   \
	do {                                                                                       \
		(argv)[0] = (char *)(uintptr_t)(first);                                            \
		va_start(list, first);                                                             \
		for (size_t i_ = 1; i_ <= (count) && (first); i_++)                                \
			(argv)[i_] = va_arg(list, char *);                                         \
	} while (0)

int
exec_l(const char *path, const char *first, ...)
{
	va_list list;
	size_t count;
	COUNT_ARGUMENTS(count, first, list);
	char **argv = __builtin_alloca((count + 1) * sizeof *argv);
	COPY_ARGUMENTS(argv, count, first, list);
	va_end(list);
	return run_path(path, argv, environ);
}

int
exec_lp(const char *name, const char *first, ...)
{
	va_list list;
	size_t count;
	COUNT_ARGUMENTS(count, first, list);
	char **argv = __builtin_alloca((count + 1) * sizeof *argv);
	COPY_ARGUMENTS(argv, count, first, list);
	va_end(list);
	return run_named(name, argv, environ);
}

int
exec_le(const char *path, const char *first, ...)
{
	va_list list;
	size_t count;
	COUNT_ARGUMENTS(count, first, list);
	char **argv = __builtin_alloca((count + 1) * sizeof *argv);
	COPY_ARGUMENTS(argv, count, first, list);
	char *const *envp = va_arg(list, char *const *);
	va_end(list);
	return run_path(path, argv, envp);
}

int
exec_file(int file, char *const *argv, char *const *envp)
{
	fexecve_function *execute = (fexecve_function *)find_real(FEXECVE);
	struct call call = { .envp = envp };
	if (!is_wanted())
		return execute(file, argv, envp);
	WITH_ENVIRONMENT(call, plumb_exec_look_open(file), envp, execute(file, argv, call.envp));
	end_call(&call, true);
	return -1;
}

/* Of glibc since 2.34 only; what calls it was linked against such a one. */
static int
execute_at(int folder, const char *path, char *const *argv, char *const *envp, int flags)
{
	execveat_function *execute = (execveat_function *)find_real(EXECVEAT);
	return execute ? execute(folder, path, argv, envp, flags)
	               : (int)syscall(SYS_execveat, folder, path, argv, envp, flags);
}

int
exec_at(int folder, const char *path, char *const *argv, char *const *envp, int flags)
{
	struct call call = { .envp = envp };
	if (!is_wanted() || !path)
		return execute_at(folder, path, argv, envp, flags);
	WITH_ENVIRONMENT(call, *path ? plumb_exec_look(folder, path) : plumb_exec_look_open(folder),
	                 envp, execute_at(folder, path, argv, call.envp, flags));
	end_call(&call, true);
	return -1;
}

int
spawn_path(int *pid, const char *path, const void *actions, const void *attributes,
           char *const *argv, char *const *envp)
{
	spawn_function *spawn = (spawn_function *)find_real(SPAWN);
	struct call call = { .envp = envp };
	int error;
	if (!plumb_exec_environment_known() || !plumb_follow_others() || !path)
		return spawn(pid, path, actions, attributes, argv, envp);
	WITH_ENVIRONMENT(call, plumb_exec_look(AT_FDCWD, path), envp,
	                 error = spawn(pid, path, actions, attributes, argv, call.envp));
	end_call(&call, error != 0);
	return error;
}

int
spawn_named(int *pid, const char *name, const void *actions, const void *attributes,
            char *const *argv, char *const *envp)
{
	spawn_function *spawn = (spawn_function *)find_real(SPAWNP);
	struct call call = { .envp = envp };
	int error;
	if (!plumb_exec_environment_known() || !plumb_follow_others() || !name)
		return spawn(pid, name, actions, attributes, argv, envp);
	WITH_ENVIRONMENT(call, plumb_exec_look_named(name), envp,
	                 error = spawn(pid, name, actions, attributes, argv, call.envp));
	end_call(&call, error != 0);
	return error;
}

/* ---- shells, which the C library starts past all of these ---- */

int
shell_run(const char *command)
{
	int (*run)(const char *) = (int (*)(const char *))find_real(SYSTEM);
	struct plumb_exec_own own;
	if (!command || !plumb_exec_environment_known() || !plumb_follow_others())
		return run(command);
	plumb_exec_environment_lend(&own);
	int status = run(command);
	plumb_exec_environment_return(&own);
	return status;
}

void *
shell_open(const char *command, const char *mode)
{
	void *(*open_pipe)(const char *, const char *) =
		(void *(*)(const char *, const char *))find_real(POPEN);
	struct plumb_exec_own own;
	if (!plumb_exec_environment_known() || !plumb_follow_others())
		return open_pipe(command, mode);
	plumb_exec_environment_lend(&own);
	void *stream = open_pipe(command, mode);
	plumb_exec_environment_return(&own);
	return stream;
}
