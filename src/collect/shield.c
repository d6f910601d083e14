/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the sampler's signal apart from the program's own signals, by functions in front of those
 * of the C library. Programs that call the kernel directly are not covered.
 *
 * - A program may handle, block or await our signal, and leave others alone. Then it wants the
 *   signal for itself, and we take another one.
 * - A program that names all signals (a mask of all, a wait for any) means no signal in particular.
 *   We leave ours out: plumb still samples a thread that blocks "all signals", and a thread that
 *   waits for "any" never sees our signal.
 * - While a handler runs on the alternate stack, our signal is blocked, because that stack may have
 *   no room for both.
 * - A thread without an alternate stack has plumb's (handler_stack.h). A program that asks is told
 *   that there is none.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collect/handler_stack.h"
#include "collect/real.h"
#include "collect/sampler_private.h"

typedef void (*handler_function)(int);

static struct {
	int (*sigaction)(int, const struct sigaction *, struct sigaction *);
	handler_function (*signal)(int, handler_function);
	handler_function (*sysv_signal)(int, handler_function);
	int (*sigprocmask)(int, const sigset_t *, sigset_t *);
	int (*pthread_sigmask)(int, const sigset_t *, sigset_t *);
	int (*sigwait)(const sigset_t *, int *);
	int (*sigwaitinfo)(const sigset_t *, siginfo_t *);
	int (*sigtimedwait)(const sigset_t *, siginfo_t *, const struct timespec *);
	int (*signalfd)(int, const sigset_t *, int);
	int (*sigaltstack)(const stack_t *, stack_t *);
} real;

/* A call may come before plumb is set up. Afterwards all are known: a handler may call them,
 * too. */
#define REAL(name) (real.name ? real.name : (find_real((void **)&real.name, #name), real.name))

static void
find_real(void **function, const char *name)
{
	*function = plumb_real_dlsym(RTLD_NEXT, name);
}

static struct sigaction shown;   /* what the program asked for at our signal; SIG_DFL, by default */
static _Atomic uint64_t claimed; /* real-time signals that the program has named in sets */

int
plumb_shield_sigaction(int number, const struct sigaction *action, struct sigaction *old)
{
	return REAL(sigaction)(number, action, old);
}

void
plumb_shield_begin(void)
{
	(void)REAL(sigaction);
	(void)REAL(signal);
	find_real((void **)&real.sysv_signal, "__sysv_signal");
	(void)REAL(sigprocmask);
	(void)REAL(pthread_sigmask);
	(void)REAL(sigwait);
	(void)REAL(sigwaitinfo);
	(void)REAL(sigtimedwait);
	(void)REAL(signalfd);
	(void)REAL(sigaltstack);
}

void
plumb_shield_foreign(int number)
{
	if (shown.sa_handler != SIG_DFL)
		return;
	struct sigaction action = { .sa_handler = SIG_DFL };
	plumb_shield_sigaction(number, &action, NULL);
	/* It comes when the handler is left, and ends the program, as it would without us. */
	syscall(SYS_tgkill, syscall(SYS_getpid), syscall(SYS_gettid), number);
}

/* ---- sets of signals ---- */

/* The kernel's part of a set: bit 0 is signal 1. */
static uint64_t
word_of(const sigset_t *set)
{
	uint64_t word;
	memcpy(&word, set, sizeof word);
	return word;
}

static uint64_t
bit_of(int number)
{
	return UINT64_C(1) << (number - 1);
}

static uint64_t
realtime_signals(void)
{
	return ~UINT64_C(0) << (SIGRTMIN - 1);
}

static bool
move_away(void)
{
	sigset_t away;
	uint64_t word = atomic_load(&claimed);
	sigemptyset(&away);
	memcpy(&away, &word, sizeof word);
	return plumb_sampler_move(&away);
}

/* In a handler that was entered with our signal blocked it has to stay so: the next sample would
 * come on top of it. Everywhere else ours is not blocked. */
static bool
is_blocked(int number)
{
	uint64_t mask = 0;
	syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &mask, sizeof mask);
	return mask & bit_of(number);
}

/* SET as the kernel gets it: without our signal. COPY is room for it. */
static const sigset_t *
without_ours(const sigset_t *set, sigset_t *copy)
{
	int number = plumb_sampler_signal();
	if (plumb_likely(!number || !set))
		return set;
	uint64_t named = word_of(set) & realtime_signals();
	bool all = named == realtime_signals();
	if (named && !all)
		atomic_fetch_or_explicit(&claimed, named, memory_order_relaxed);
	if (!(named & bit_of(number)) || !plumb_sampler_is_own_process() || (!all && move_away()))
		return set;
	*copy = *set;
	sigdelset(copy, number);
	return copy;
}

/* ---- actions ---- */

static bool
is_handler(const struct sigaction *action)
{
	return action && action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN;
}

/* The program is at our signal with ACTION. True: that is all, and *OLD is filled in. False: the
 * signal is the program's from now on. */
static bool
is_settled(int number, const struct sigaction *action, struct sigaction *old)
{
	if (!is_handler(action)) {
		struct sigaction before = shown;
		if (action)
			shown = *action;
		if (old)
			*old = before;
		return true;
	}
	if (!move_away())
		plumb_sampler_give_up();
	plumb_shield_sigaction(number, &shown, NULL);
	shown = (struct sigaction){ .sa_handler = SIG_DFL };
	return false;
}

static bool
is_ours(int number)
{
	return plumb_unlikely(number && number == plumb_sampler_signal()) &&
	       plumb_sampler_is_own_process();
}

/* ---- in front of the C library ---- */

#ifdef PLUMB_OF_SANITIZER
#define FRONT(name) plumb_front_##name
#else
#define FRONT(name) name
#endif

PLUMB_EXPORT int FRONT(sigaction)(int, const struct sigaction *, struct sigaction *);
PLUMB_EXPORT handler_function FRONT(signal)(int, handler_function);
PLUMB_EXPORT handler_function FRONT(__sysv_signal)(int, handler_function);
PLUMB_EXPORT handler_function FRONT(sysv_signal)(int, handler_function);
PLUMB_EXPORT int FRONT(sigprocmask)(int, const sigset_t *, sigset_t *);
PLUMB_EXPORT int FRONT(pthread_sigmask)(int, const sigset_t *, sigset_t *);
PLUMB_EXPORT int FRONT(sigwait)(const sigset_t *, int *);
PLUMB_EXPORT int FRONT(sigwaitinfo)(const sigset_t *, siginfo_t *);
PLUMB_EXPORT int FRONT(sigtimedwait)(const sigset_t *, siginfo_t *, const struct timespec *);
PLUMB_EXPORT int FRONT(signalfd)(int, const sigset_t *, int);
PLUMB_EXPORT int FRONT(sigaltstack)(const stack_t *, stack_t *);

int
FRONT(sigaction)(int number, const struct sigaction *action, struct sigaction *old)
{
	struct sigaction with;
	if (is_ours(number) && is_settled(number, action, old))
		return 0;
	int ours = plumb_sampler_signal();
	if (ours && is_handler(action) && action->sa_flags & SA_ONSTACK) {
		with = *action;
		sigaddset(&with.sa_mask, ours);
		action = &with;
	}
	int result = REAL(sigaction)(number, action, old);
	if (!result && ours && old && old->sa_flags & SA_ONSTACK)
		sigdelset(&old->sa_mask, ours);
	return result;
}

handler_function
FRONT(signal)(int number, handler_function handler)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESTART }, old;
	if (is_ours(number) && handler != SIG_ERR && is_settled(number, &action, &old))
		return old.sa_handler;
	return REAL(signal)(number, handler);
}

handler_function
FRONT(__sysv_signal)(int number, handler_function handler)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = (int)SA_RESETHAND }, old;
	if (is_ours(number) && handler != SIG_ERR && is_settled(number, &action, &old))
		return old.sa_handler;
	if (!real.sysv_signal)
		find_real((void **)&real.sysv_signal, "__sysv_signal");
	return real.sysv_signal(number, handler);
}

handler_function
FRONT(sysv_signal)(int number, handler_function handler)
{
	return FRONT(__sysv_signal)(number, handler);
}

/* A mask that is to be set. */
static const sigset_t *
mask_without_ours(int how, const sigset_t *set, sigset_t *copy)
{
	int number = plumb_sampler_signal();
	if (plumb_likely(!number || !set || how == SIG_UNBLOCK))
		return set;
	if (word_of(set) & bit_of(number) && is_blocked(number))
		return set;
	return without_ours(set, copy);
}

int
FRONT(sigprocmask)(int how, const sigset_t *set, sigset_t *old)
{
	sigset_t copy;
	return REAL(sigprocmask)(how, mask_without_ours(how, set, &copy), old);
}

int
FRONT(pthread_sigmask)(int how, const sigset_t *set, sigset_t *old)
{
	sigset_t copy;
	return REAL(pthread_sigmask)(how, mask_without_ours(how, set, &copy), old);
}

int
FRONT(sigwait)(const sigset_t *set, int *number)
{
	sigset_t copy;
	return REAL(sigwait)(without_ours(set, &copy), number);
}

int
FRONT(sigwaitinfo)(const sigset_t *set, siginfo_t *info)
{
	sigset_t copy;
	return REAL(sigwaitinfo)(without_ours(set, &copy), info);
}

int
FRONT(sigtimedwait)(const sigset_t *set, siginfo_t *info, const struct timespec *timeout)
{
	sigset_t copy;
	return REAL(sigtimedwait)(without_ours(set, &copy), info, timeout);
}

int
FRONT(signalfd)(int fd, const sigset_t *set, int flags)
{
	sigset_t copy;
	return REAL(signalfd)(fd, without_ours(set, &copy), flags);
}

int
FRONT(sigaltstack)(const stack_t *stack, stack_t *old)
{
	int result = REAL(sigaltstack)(stack, old);
	if (!result && stack)
		plumb_sampler_stack_changed();
	if (!result && old && plumb_sampler &&
	    plumb_handler_stack_has(plumb_sampler->memory, old->ss_sp))
		*old = (stack_t){ .ss_flags = SS_DISABLE };
	return result;
}
