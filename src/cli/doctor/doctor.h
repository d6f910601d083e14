/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `plumb doctor` is made of. Each group of checks is a file of this folder with one function
 * that adds its rows, and has a row in the table of doctor.c.
 */
#ifndef PLUMB_CLI_DOCTOR_DOCTOR_H
#define PLUMB_CLI_DOCTOR_DOCTOR_H

#include <limits.h>
#include <stdbool.h>

#include "base/error.h"
#include "base/vec.h"

enum plumb_check_state {
	PLUMB_CHECK_YES,
	PLUMB_CHECK_NO,
	PLUMB_CHECK_PARTLY,
};

struct plumb_check {
	const char *id; /* stable: "gpu.driver" */
	enum plumb_check_state state;
	char *what;   /* what was checked, and what was found */
	char *why;    /* why the state is not "yes", or NULL */
	char *remedy; /* the one thing to do about it, or NULL */
};

struct plumb_checks {
	PLUMB_VEC(struct plumb_check) list;
	/* What one group finds out for a later one. */
	int driver_cuda;      /* CUDA version of the driver, e.g. 13000; 0: none */
	char cupti[PATH_MAX]; /* a libcupti that a Python's package brings, or empty */
	char nccl[PATH_MAX];  /* likewise a libnccl */
	char python_code[PATH_MAX], torch_code[PATH_MAX]; /* the same: libpython, libtorch_cpu */
	const char *program;                              /* another program to check, or NULL */
};

/* Adds a row. Its texts are set with the functions below, once each. */
void plumb_check_add(struct plumb_checks *checks, const char *id, enum plumb_check_state state,
                     const char *what, ...) PLUMB_PRINTF(4, 5);
/* These two set texts of the row that was added last. */
void plumb_check_why(struct plumb_checks *checks, const char *why, ...) PLUMB_PRINTF(2, 3);
void plumb_check_remedy(struct plumb_checks *checks, const char *remedy, ...) PLUMB_PRINTF(2, 3);

void plumb_doctor_python(struct plumb_checks *checks); /* before gpu: it finds packaged CUPTIs */
void plumb_doctor_gpu(struct plumb_checks *checks);
void plumb_doctor_counters(struct plumb_checks *checks); /* --counters; after gpu */
void plumb_doctor_nccl(struct plumb_checks *checks);     /* after python */
void plumb_doctor_system(struct plumb_checks *checks);
void plumb_doctor_program(struct plumb_checks *checks); /* the program, those of the system */
void plumb_doctor_native(struct plumb_checks *checks);  /* after python */

/* The first file that one of the COUNT patterns of glob(3) names, into PATH. False: there is
 * none. */
bool plumb_doctor_find(const char *const *places, size_t count, char path[PATH_MAX]);
/* The first line of FILE without its end, into TEXT of SIZE bytes; false: cannot be read. */
bool plumb_doctor_line(const char *file, char *text, int size);

#endif
