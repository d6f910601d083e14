/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A code object (a program or a shared library) as a file: which function an address belongs to,
 * what was inlined there, and the source line of each.
 *
 *	enum plumb_code_state state;
 *	struct plumb_code *code = plumb_code_open(&wanted, &state);   // NULL: state says why
 *	struct plumb_code_place place;
 *	plumb_code_look(code, address, &place);                      // place holds texts of `code`
 *	plumb_code_close(code);
 *
 * Addresses are those of the ELF file (a process's address without its load bias). Files are
 * untrusted: sizes are bounded and only regular files are opened. Reading ELF and DWARF is left to
 * libelf and libdw all the same, so do this in a child process (symbolizer.h does).
 */
#ifndef PLUMB_SETTLE_CODE_H
#define PLUMB_SETTLE_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLUMB_BUILD_ID_MAX 32    /* only the first bytes of a longer one count */
#define PLUMB_CODE_FRAMES_MAX 64 /* functions inlined into each other at one place */

struct plumb_code;

/* What became of opening a file. */
enum plumb_code_state {
	PLUMB_CODE_FINE = 0,
	PLUMB_CODE_ABSENT,    /* there is no such file, or it cannot be read */
	PLUMB_CODE_IRREGULAR, /* not a regular file, or larger than any code */
	PLUMB_CODE_DAMAGED,   /* not a 64-bit ELF program or library */
	PLUMB_CODE_REPLACED,  /* not the file that ran */
	PLUMB_CODE_FAILED,    /* reading it crashed, hung or took too much memory */
	PLUMB_CODE_STATES
};

struct plumb_code_wanted {
	const char *path;
	unsigned char build_id[PLUMB_BUILD_ID_MAX];
	uint32_t build_id_bytes; /* 0: it had none, or it is not known */
	/* Used if there is no build id: realtime, ns. A file that changed later is another file. 0:
	 * any time. */
	int64_t newest;
	bool fetch; /* debuginfod may be asked (DEBUGINFOD_URLS must be set, too) */
};

/* One function at a place; texts are NULL and numbers 0 where they are unknown. */
struct plumb_code_frame {
	const char *name;   /* mangled */
	const char *file;   /* of the source … */
	const char *folder; /* … and what it is relative to, or NULL */
	uint32_t line;
};

struct plumb_code_place {
	/* The function whose code this is, by its name in the symbol table ("f", "f.cold",
	 * "f@plt"). NULL: no symbol is known. */
	const char *symbol;
	/* where the function begins, when `bounded`, whether it has a name or not */
	uint64_t start;
	bool bounded;
	bool shared_name; /* another local function of the object has that name, too */
	/* Outermost first: frames[0] is the function itself, by its name in the debug information.
	 * The frames after it were inlined. 0: the place has no debug information. */
	uint32_t count;
	struct plumb_code_frame frames[PLUMB_CODE_FRAMES_MAX];
	char stub[512]; /* what `symbol` may point into */
	/* By plumb_code_operator: the framework's operator that this function runs, "aten::add".
	 * NULL: another function. REDISPATCH: a part of one that is running, as long as it is on
	 * the stack. */
	const char *operation;
	bool redispatch;
	char operation_text[256];
};

struct plumb_code *
plumb_code_open(const struct plumb_code_wanted *wanted, enum plumb_code_state *state);
void plumb_code_close(struct plumb_code *code);
void plumb_code_look(struct plumb_code *code, uint64_t address, struct plumb_code_place *place);
/* Adds the operator to what plumb_code_look found. */
void plumb_code_operator(struct plumb_code *code, struct plumb_code_place *place);

/* What there is to read names from. */
struct plumb_code_facts {
	uint64_t bytes;     /* of the file */
	uint32_t functions; /* with a symbol */
	bool lines;         /* there is debug information … */
	bool fetched;       /* … which came from debuginfod */
	const char *debug;  /* … in this file; NULL: in the code object itself */
};
/* Looks for debug information and reads the symbols. The texts are those of CODE. */
void plumb_code_facts(struct plumb_code *code, struct plumb_code_facts *facts);

/* Which libdw this is, "0.188". */
const char *plumb_code_library(void);
/* Would debuginfod be asked? 1: yes. 0: DEBUGINFOD_URLS is not set. -1: it is set, but
 * libdebuginfod cannot be loaded. */
int plumb_debuginfod_state(void);

/* The folder of separate debug files: "/usr/lib/debug". Tests set another one. */
extern const char *plumb_code_debug_folder;

#endif
