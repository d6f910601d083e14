/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walk: for each call site its row (where the caller's frame begins, where the return address
 * and the frame pointer are), kept in a table that all threads share.
 *
 * An entry of the table is two words, the row and the address mixed with the row, written and read
 * one after the other without a lock: when two threads write it at once, or a handler interrupts
 * one, the words do not match and the entry is as good as absent. The generation of the list of
 * objects is mixed in, too, so that unloading one empties the table.
 */
#include <errno.h>
#include <string.h>
#include <ucontext.h>

#include "collect/collector.h"
#include "collect/stack/objects.h"
#include "collect/table.h"

#define ROWS ((size_t)1 << 16) /* 1 MiB, of which only what is used is there */

struct cached {
	_Atomic uint64_t key, word;
};
static struct cached *_Atomic rows;

bool
plumb_stack_prepare(void)
{
	if (plumb_likely(atomic_load_explicit(&rows, memory_order_acquire)))
		return true;
	struct cached *memory = NULL, *none = NULL;
	int saved = errno;
	if (plumb_stack_objects_begin())
		memory = plumb_map(ROWS * sizeof *memory, true);
	/* When two threads come here at once, one table goes unused. */
	if (memory)
		atomic_compare_exchange_strong(&rows, &none, memory);
	errno = saved;
	return memory != NULL;
}

/* The trail that a walk leaves; see stack.h. */
struct trail {
	struct plumb_stack_trail *kept;
	uintptr_t begin, end;   /* of what was looked at */
	uintptr_t fp_at;        /* where the walker's fp was read; … */
	uint16_t pointer_count; /* … the pointers are put down from the last place backwards */
	bool broken;
};
#define always_inline inline __attribute__((always_inline))
#define STRAYS 16 /* frame pointers of a process that led to no stack */
#define FP_REGISTER ((uintptr_t)1)
#define FP_LOST ((uintptr_t)3)

/* ---- rows ---- */

/* The state of a walk: registers of the frame that is looked at, and what belongs to it. */
struct walker {
	uintptr_t pc, sp, fp, link;
	/* of the frame that the walk began at, or a signal's */
	struct plumb_stack_registers origin;
	int *recoveries; /* how many are still allowed */
	bool exact;      /* pc is where it stands, no return address */
	bool in_handler;
	struct plumb_stack_bounds bounds;
	struct trail *trail; /* NULL: none is wanted */
	struct cached *rows;
	uint64_t salt;
	struct plumb_eh_row row;
	enum plumb_stack_end why; /* there is no row */
	bool is_go;               /* then: the site lies in a program that Go's linker made */
	struct plumb_stack_bounds *other;
};

static inline uint64_t
key_of(uint64_t word, uintptr_t site, uint64_t salt)
{
	return word * UINT64_C(0xe7037ed1a0b428db) ^ site ^ salt;
}

/* The code that SITE lies in; NULL: w->why says why there is none to be used. */
static struct plumb_stack_code *
find_code(struct walker *w, uintptr_t site)
{
	struct plumb_stack_code *code =
		w->in_handler ? plumb_stack_code_of(site) : plumb_stack_code_now(site);
	w->why = PLUMB_STACK_NO_TABLE;
	if (!code && (!w->in_handler || !plumb_stack_is_loaded(site))) {
		w->why = PLUMB_STACK_GENERATED;
	} else if (w->in_handler && (!code || !plumb_stack_still_there(code, site))) {
		w->why = PLUMB_STACK_UNKNOWN;
		atomic_store_explicit(&plumb_stack_stale, true, memory_order_relaxed);
		return NULL;
	}
	return code;
}

/* The row of SITE from the tables of its object. */
static __attribute__((noinline)) bool
decode(struct walker *w, uintptr_t site, struct cached *entry)
{
	struct plumb_stack_code *code = find_code(w, site);
	w->row = (struct plumb_eh_row){ 0 };
	w->is_go = false;
	if (!code)
		return false;
	bool found = code->has_tables && plumb_eh_decode(&code->image, site, &w->row);
	w->row.internal = code->internal;
	w->is_go = code->is_go;
	if (!found)
		return false;
	uint64_t word = plumb_eh_pack(&w->row);
	if (word) {
		atomic_store_explicit(&entry->word, word, memory_order_relaxed);
		atomic_store_explicit(&entry->key, key_of(word, site, w->salt),
		                      memory_order_relaxed);
	}
	return true;
}

static inline bool
find_row(struct walker *w, uintptr_t site)
{
	struct cached *entry = &w->rows[(site * UINT64_C(0x9e3779b97f4a7c15)) >> 48];
	uint64_t word = atomic_load_explicit(&entry->word, memory_order_relaxed);
	uint64_t key = atomic_load_explicit(&entry->key, memory_order_relaxed);
	if (plumb_unlikely(key != key_of(word, site, w->salt)))
		return decode(w, site, entry);
	plumb_eh_unpack(word, &w->row);
	return true;
}
_Static_assert(ROWS == (size_t)1 << (64 - 48), "the hash has as many bits");

/* ---- registers ---- */

void
plumb_stack_interrupted(const void *context, struct plumb_stack_registers *registers)
{
	const ucontext_t *all = context;
#if defined(__x86_64__)
	const greg_t *r = all->uc_mcontext.gregs;
	*registers = (struct plumb_stack_registers){
		.pc = (uintptr_t)r[REG_RIP],
		.sp = (uintptr_t)r[REG_RSP],
		.fp = (uintptr_t)r[REG_RBP],
		.others = all,
	};
#elif defined(__aarch64__)
	*registers = (struct plumb_stack_registers){
		.pc = all->uc_mcontext.pc,
		.sp = all->uc_mcontext.sp,
		.fp = all->uc_mcontext.regs[29],
		.link = all->uc_mcontext.regs[30],
		.others = all,
	};
#endif
}

/* A register of the frame that the walk began at, by its DWARF number. */
static bool
register_at(const struct plumb_stack_registers *from, unsigned number, uintptr_t *value)
{
	const ucontext_t *all = from->others;
#if defined(__x86_64__)
	static const uint8_t places[] = { REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
		                          REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
		                          REG_R12, REG_R13, REG_R14, REG_R15 };
	if (all && number < sizeof places)
		*value = (uintptr_t)all->uc_mcontext.gregs[places[number]];
	else if (!all && number == 3)
		*value = from->kept[0];
	else if (!all && number >= 12 && number < 16)
		*value = from->kept[number - 11];
	else
		return false;
	return true;
#elif defined(__aarch64__)
	if (!all || number >= 31)
		return false;
	*value = all->uc_mcontext.regs[number];
	return true;
#endif
}

/* The word at ADDRESS, which has to lie on the stack. */
static inline bool
load_word(const struct walker *w, uintptr_t address, uintptr_t *value)
{
	if (plumb_unlikely(address < w->bounds.low || address > w->bounds.high - sizeof *value ||
	                   address % sizeof *value))
		return false;
	*value = *(const uintptr_t *)address;
	return true;
}

/* ---- the trail ---- */

/* What lies up to END was looked at. */
static void
trail_reach(struct trail *trail, uintptr_t end)
{
	if (end > trail->end)
		trail->end = end;
}

/* The place of ADDRESS, in words from the beginning. */
static uint16_t
trail_place(struct trail *trail, uintptr_t address)
{
	uintptr_t words = (address - trail->begin) / sizeof(uintptr_t);
	trail_reach(trail, address + sizeof(uintptr_t));
	if (address < trail->begin || words >= PLUMB_STACK_REGISTER ||
	    trail->kept->calls + trail->pointer_count >= PLUMB_STACK_TRAIL)
		trail->broken = true;
	return (uint16_t)words;
}

static void
trail_call(struct trail *trail, uintptr_t address, uintptr_t site)
{
	uint16_t place = trail_place(trail, address);
	if (trail->broken)
		return;
	trail->kept->at[trail->kept->calls] = place;
	trail->kept->word[trail->kept->calls++] = plumb_stack_plain(site);
}

static void
trail_pointer(struct trail *trail, uintptr_t address, uintptr_t pointer)
{
	uint16_t place = PLUMB_STACK_REGISTER;
	if (address != FP_REGISTER)
		place = trail_place(trail, address);
	else if (trail->kept->calls + trail->pointer_count >= PLUMB_STACK_TRAIL)
		trail->broken = true;
	if (trail->broken)
		return;
	trail->pointer_count++;
	trail->kept->at[PLUMB_STACK_TRAIL - trail->pointer_count] = place;
	trail->kept->word[PLUMB_STACK_TRAIL - trail->pointer_count] = pointer - trail->begin;
}

/* The walk goes by the frame pointer. */
static void
trail_fp(const struct walker *w)
{
	if (w->trail->fp_at == FP_LOST)
		w->trail->broken = true;
	else
		trail_pointer(w->trail, w->trail->fp_at, w->fp);
}

static void
trail_end(struct trail *trail, enum plumb_stack_end end)
{
	struct plumb_stack_trail *kept = trail->kept;
	uintptr_t reach = trail->end - trail->begin;
	if (trail->broken || (end != PLUMB_STACK_STOP && end != PLUMB_STACK_OUTERMOST) ||
	    reach > UINT32_MAX || trail->begin % sizeof(uintptr_t)) {
		kept->calls = 0;
		return;
	}
	kept->reach = (uint32_t)reach;
	kept->pointers = trail->pointer_count;
	size_t from = PLUMB_STACK_TRAIL - kept->pointers;
	memmove(kept->at + kept->calls, kept->at + from, kept->pointers * sizeof *kept->at);
	memmove(kept->word + kept->calls, kept->word + from, kept->pointers * sizeof *kept->word);
}

/* ---- steps ---- */

static void
start_walk(struct walker *w, const struct plumb_stack_registers *from)
{
	w->pc = from->pc;
	w->sp = from->sp;
	w->fp = from->fp;
	w->link = from->link;
	w->exact = true;
	if (from != &w->origin)
		w->origin = *from;
}

/* The frame that ends at CFA is left, to PC. */
static void
trail_leave(const struct walker *w, uintptr_t cfa, uintptr_t pc)
{
	struct trail *trail = w->trail;
	if (w->row.link || w->row.in_register)
		trail->broken = true;
	else
		trail_call(trail, cfa + (uintptr_t)(intptr_t)w->row.ra, pc);
	if (w->row.save == PLUMB_EH_FP_AT_FP)
		trail_fp(w);
	if (w->row.save == PLUMB_EH_FP_LOST)
		trail->fp_at = FP_LOST;
	else if (w->row.save != PLUMB_EH_FP_SAME)
		trail->fp_at = (w->row.save == PLUMB_EH_FP_AT_FP ? w->fp : cfa) +
		               (uintptr_t)(intptr_t)w->row.fp;
	if (trail->fp_at > FP_LOST)
		trail_reach(trail, trail->fp_at + sizeof(uintptr_t));
	if (trail->fp_at > FP_LOST && trail->fp_at < trail->begin)
		trail->broken = true;
}

/* To the caller, whose frame begins at CFA. */
static always_inline bool
leave_frame(struct walker *w, uintptr_t cfa, bool trailing)
{
	uintptr_t pc = w->link, fp = w->fp;
	if (plumb_unlikely(w->row.in_register)) {
		if (!w->exact || !register_at(&w->origin, (unsigned)w->row.ra, &pc))
			return false;
	} else if (!w->row.link && !load_word(w, cfa + (uintptr_t)(intptr_t)w->row.ra, &pc)) {
		return false;
	}
	if (trailing)
		trail_leave(w, cfa, pc);
	if (w->row.save == PLUMB_EH_FP_AT_CFA) {
		if (!load_word(w, cfa + (uintptr_t)(intptr_t)w->row.fp, &fp))
			return false;
	} else if (plumb_unlikely(w->row.save == PLUMB_EH_FP_AT_FP)) {
		if (!load_word(w, w->fp + (uintptr_t)(intptr_t)w->row.fp, &fp))
			return false;
	} else if (plumb_unlikely(w->row.save == PLUMB_EH_FP_LOST)) {
		fp = 0;
	}
	w->pc = plumb_stack_plain(pc);
	w->sp = cfa;
	w->fp = fp;
	w->exact = false;
	return true;
}

/* The frame was found to end at CFA, by the pointer BASE, which was kept at KEPT if the row says
 * so. */
static void
trail_frame(const struct walker *w, uintptr_t kept, uintptr_t base, uintptr_t cfa)
{
	if (w->row.base == PLUMB_EH_FP)
		trail_fp(w);
	else if (w->row.base != PLUMB_EH_SP)
		w->trail->broken = true;
	if (w->row.deref)
		trail_pointer(w->trail, kept, base);
	trail_reach(w->trail, cfa);
}

static bool recover(struct walker *w, unsigned number, uintptr_t *value);

/* Where the frame ends and the caller's begins. False: that cannot be. */
static always_inline bool
frame_end(struct walker *w, uintptr_t *cfa, bool trailing)
{
	uintptr_t base;
	if (plumb_likely(w->row.base == PLUMB_EH_SP))
		base = w->sp;
	else if (plumb_likely(w->row.base == PLUMB_EH_FP))
		base = w->fp;
	else if (!recover(w, w->row.base, &base))
		return false;
	uintptr_t kept = base + (uintptr_t)(intptr_t)w->row.at;
	if (plumb_unlikely(w->row.deref) && !load_word(w, kept, &base))
		return false;
	*cfa = base + (uintptr_t)(intptr_t)w->row.cfa;
	if (trailing)
		trail_frame(w, kept, base, *cfa);
	if (plumb_unlikely(*cfa > w->bounds.high))
		return false;
	/* It grows, but for a leaf that keeps nothing on the stack. */
	return plumb_likely(*cfa > w->sp) ||
	       (*cfa == w->sp && w->exact && (w->row.link || w->row.in_register));
}

/*
 * A few frames are found by a register that walks do not follow (the loader's, which binds
 * functions when they are first called; hand-written ones). Its value is got by walking once more
 * from the beginning, and looking in each frame where that register is kept.
 */
static __attribute__((noinline)) bool
recover(struct walker *w, unsigned number, uintptr_t *value)
{
	struct walker again = *w;
	again.trail = NULL;
	if (!register_at(&w->origin, number, value) || --*w->recoveries < 0)
		return false;
	start_walk(&again, &w->origin);
	while (again.sp != w->sp || again.pc != w->pc) {
		uintptr_t site = again.pc - !again.exact, cfa;
		const struct plumb_stack_code *code = plumb_stack_code_of(site);
		int32_t offset;
		bool saved;
		if (!code || !code->has_tables || !find_row(&again, site) ||
		    again.row.kind != PLUMB_EH_FRAME || !frame_end(&again, &cfa, false) ||
		    cfa > w->sp || !plumb_eh_saved(&code->image, site, number, &saved, &offset) ||
		    (saved && !load_word(w, cfa + (uintptr_t)(intptr_t)offset, value)) ||
		    !leave_frame(&again, cfa, false))
			return false;
	}
	return true;
}

/* To what a signal interrupted, perhaps on another stack. */
static bool
leave_signal(struct walker *w, const struct plumb_stack_registers *to)
{
	if (w->trail)
		w->trail->broken = true;
	start_walk(w, to);
	return plumb_stack_within(&w->bounds, w->sp) || plumb_stack_bounds_of(w->sp, &w->bounds);
}

/* By the row of a handler's trampoline. The registers that no row tells of are where the kernel
 * puts them, when those that it does tell of are there. */
static bool
leave_handler(struct walker *w)
{
	struct plumb_stack_registers to = { 0 };
	uintptr_t at = w->sp;
	if (!load_word(w, at + (uintptr_t)(intptr_t)w->row.cfa, &to.sp) ||
	    !load_word(w, at + (uintptr_t)(intptr_t)w->row.fp, &to.fp) ||
	    !load_word(w, at + (uintptr_t)(intptr_t)w->row.ra, &to.pc))
		return false;
#if defined(__x86_64__)
	const ucontext_t *all = (const ucontext_t *)at;
	if ((const char *)&all->uc_mcontext.gregs[REG_RSP] == (const char *)at + w->row.cfa &&
	    at + sizeof *all <= w->bounds.high)
		to.others = all;
#endif
	return leave_signal(w, &to);
}

/*
 * AArch64: the vDSO's trampoline has no rules that all kernels agree on, but always the same two
 * instructions. The kernel's frame (128 bytes of siginfo_t, then the context) lies at the stack
 * pointer.
 */
static bool
leave_trampoline(struct walker *w)
{
#if defined(__aarch64__)
	const struct plumb_stack_code *code = plumb_stack_code_of(w->pc);
	const uint32_t *instruction = (const uint32_t *)w->pc;
	struct plumb_stack_registers to;
	uintptr_t at = w->sp + 128;
	if (!code || w->pc % 4 || w->pc + 8 > code->object.end || instruction[0] != 0xd2801168 ||
	    instruction[1] != 0xd4000001 || at + sizeof(ucontext_t) > w->bounds.high)
		return false;
	plumb_stack_interrupted((const void *)at, &to);
	return leave_signal(w, &to);
#else
	(void)w;
	return false;
#endif
}

/* Whether FP lies on a stack that the walk may read; from now on that is the one it reads. C code
 * that Go calls runs on its thread's stack, and Go on stacks of its own. */
static bool
change_stack(struct walker *w, uintptr_t fp)
{
	static _Atomic uint32_t strays;
	if (plumb_stack_within(&w->bounds, fp))
		return fp >= w->sp;
	if (!w->other)
		return false;
	if (!plumb_stack_within(w->other, fp)) {
		if (atomic_load_explicit(&strays, memory_order_relaxed) >= STRAYS)
			return false;
		if (!plumb_stack_bounds_of(fp, w->other)) {
			*w->other = (struct plumb_stack_bounds){ 0 };
			atomic_fetch_add_explicit(&strays, 1, memory_order_relaxed);
			return false;
		}
	}
	w->bounds = *w->other;
	return true;
}

/*
 * Go writes no unwind tables into its programs. But each of its functions that has a frame keeps a
 * chain of frame pointers, up to the function where a goroutine begins. The caller of one without a
 * frame is left out.
 */
static bool
leave_go(struct walker *w)
{
	uintptr_t fp = w->fp, pc, next;
	if (w->trail)
		w->trail->broken = true;
	if (!w->is_go)
		return false;
	if (!fp) {
		w->why = PLUMB_STACK_OUTERMOST;
		return false;
	}
	if (!change_stack(w, fp) || !load_word(w, fp, &next) ||
	    !load_word(w, fp + sizeof fp, &pc) || !pc) {
		w->why = PLUMB_STACK_INCONSISTENT;
		return false;
	}
	w->pc = plumb_stack_plain(pc);
	w->sp = fp + 2 * sizeof fp;
	w->fp = next;
	w->exact = false;
	return true;
}

/* What STOP means on the stack that is walked now; the walk may change stacks. */
static inline uintptr_t
find_limit(const struct walker *w, uintptr_t stop)
{
	return stop >= w->sp && stop < w->bounds.high ? stop : UINTPTR_MAX;
}

/* Adds SITE, unless it is one of the innermost that are left out. False: there is no room. */
static inline bool
add_site(const struct walker *w, struct plumb_stack_walk *walk, uintptr_t site, bool *inner)
{
	*inner = *inner && w->row.internal;
	if (*inner)
		return true;
	if (plumb_unlikely(walk->count == walk->max))
		return false;
	walk->sites[walk->count++] = site;
	return true;
}

/* Compiled twice: walks without a trail do not pay for it. */
static always_inline enum plumb_stack_end
follow_frames(struct walker *w, struct plumb_stack_walk *walk, bool trailing)
{
	uintptr_t stop = find_limit(w, walk->stop);
	bool inner = walk->skip_internal;
	while (plumb_likely(w->pc)) {
		uintptr_t site = w->pc - !w->exact, cfa = 0;
		bool known = find_row(w, site);
		if (plumb_likely(known && w->row.kind == PLUMB_EH_FRAME)) {
			if (plumb_unlikely(!frame_end(w, &cfa, trailing))) {
				known = false;
				w->why = PLUMB_STACK_INCONSISTENT;
			} else if (plumb_unlikely(cfa > stop)) {
				return PLUMB_STACK_STOP;
			}
		}
		if (plumb_unlikely(!add_site(w, walk, site, &inner)))
			return PLUMB_STACK_TOO_DEEP;
		if (plumb_unlikely(!known)) {
			if (w->why != PLUMB_STACK_NO_TABLE ||
			    (!leave_trampoline(w) && !leave_go(w)))
				return w->why;
			stop = find_limit(w, walk->stop);
		} else if (plumb_unlikely(w->row.kind == PLUMB_EH_END)) {
			return PLUMB_STACK_OUTERMOST;
		} else if (plumb_unlikely(w->row.kind == PLUMB_EH_SIGNAL
		                                  ? !leave_handler(w)
		                                  : !leave_frame(w, cfa, trailing))) {
			return PLUMB_STACK_INCONSISTENT;
		}
		if (plumb_unlikely(w->exact)) /* a signal's frame: perhaps another stack */
			stop = find_limit(w, walk->stop);
	}
	return PLUMB_STACK_OUTERMOST;
}

static __attribute__((noinline)) enum plumb_stack_end
follow_plainly(struct walker *w, struct plumb_stack_walk *walk)
{
	return follow_frames(w, walk, false);
}

static __attribute__((noinline)) enum plumb_stack_end
follow_and_trail(struct walker *w, struct plumb_stack_walk *walk)
{
	struct trail trail = {
		.kept = walk->trail,
		.begin = w->sp,
		.end = w->sp,
		.fp_at = FP_REGISTER,
	};
	w->trail = &trail;
	walk->trail->pc = w->pc;
	enum plumb_stack_end end = follow_frames(w, walk, true);
	trail_end(&trail, end);
	return end;
}

void
plumb_stack_walk(const struct plumb_stack_registers *from, const struct plumb_stack_bounds *bounds,
                 struct plumb_stack_walk *walk)
{
	int recoveries = 8;
	struct walker w = {
		.recoveries = &recoveries,
		.in_handler = walk->in_handler,
		.bounds = *bounds,
		.rows = atomic_load_explicit(&rows, memory_order_acquire),
		.salt = (uint64_t)plumb_stack_generation() << 48,
		.other = walk->other,
	};
	start_walk(&w, from);
	walk->count = 0;
	walk->end = PLUMB_STACK_NO_TABLE;
	if (walk->trail)
		walk->trail->calls = 0;
	if (plumb_likely(w.rows && plumb_stack_within(bounds, w.sp)))
		walk->end = walk->trail ? follow_and_trail(&w, walk) : follow_plainly(&w, walk);
	else if (w.rows)
		walk->end = PLUMB_STACK_INCONSISTENT;
}

bool
plumb_stack_function(uintptr_t address, uintptr_t *start, uintptr_t *end)
{
	const struct plumb_stack_code *code = plumb_stack_code_of(address);
	return code && code->has_tables && plumb_eh_extent(&code->image, address, start, end);
}
