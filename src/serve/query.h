/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The query of an address, "by=kernel&top=20". An answer lists its keys; a query is checked against
 * them once, so that reading it later cannot fail. Private to serve/.
 *
 *	struct plumb_query query;
 *	if (plumb_query_read(&query, text, keys, &error) < 0) …       // PLUMB_EUSAGE
 *	… plumb_query_text(&query, "by"), plumb_query_number(&query, "top") …
 *	plumb_query_free(&query);
 */
#ifndef PLUMB_SERVE_QUERY_H
#define PLUMB_SERVE_QUERY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

enum plumb_query_kind {
	PLUMB_QUERY_TEXT,   /* any text but the empty one */
	PLUMB_QUERY_NUMBER, /* an integer ≥ 0 */
	PLUMB_QUERY_REAL,   /* a finite number */
	PLUMB_QUERY_FLAG,   /* 1 or 0 */
	PLUMB_QUERY_CHOICE, /* one of `choices` */
};

struct plumb_query_key {
	const char *name; /* NULL ends the table */
	enum plumb_query_kind kind;
	const char *fallback; /* what is meant if it is not given; NULL: nothing */
	const char *choices;  /* "json|csv" */
	bool repeated;        /* it may be given several times */
};

struct plumb_query_pair {
	const char *key, *value; /* decoded: UTF-8 */
};

#define PLUMB_QUERY_BYTES 8192 /* as it is sent */
#define PLUMB_QUERY_PAIRS 64

struct plumb_query {
	const struct plumb_query_key *keys;
	struct plumb_query_pair pairs[PLUMB_QUERY_PAIRS]; /* sorted by key, in the order given */
	uint32_t count;
	char *storage;
};

/* TEXT is percent-encoded, and + is a space; NULL is an empty query. KEYS must outlive QUERY.
 * PLUMB_EUSAGE: ERROR says which key or value is wrong, and what is right. PLUMB_ESYSTEM: no
 * memory. Call plumb_query_free in any case. */
int
plumb_query_read(struct plumb_query *query, const char *text, const struct plumb_query_key *keys,
                 struct plumb_error *error) PLUMB_MUST_CHECK;
void plumb_query_free(struct plumb_query *query);

/* Is KEY in the table? */
bool plumb_query_has(const struct plumb_query *query, const char *key);
/* KEY must be in the table. What was given, else the fallback. */
bool plumb_query_given(const struct plumb_query *query, const char *key);
const char *plumb_query_text(const struct plumb_query *query, const char *key); /* or NULL */
int64_t plumb_query_number(const struct plumb_query *query, const char *key);   /* or -1 */
double plumb_query_real(const struct plumb_query *query, const char *key);      /* or NAN */
bool plumb_query_flag(const struct plumb_query *query, const char *key);
/* Which of the choices it is, from 0; UINT32_MAX: there is no value. */
uint32_t plumb_query_choice(const struct plumb_query *query, const char *key);
/* Value number WHICH of a key that may be repeated; NULL: no more. */
const char *plumb_query_each(const struct plumb_query *query, const char *key, uint32_t which);

/* Writes QUERY in its one canonical form: keys sorted, what is equal to the fallback left out, and
 * encoded as encodeURIComponent does. The keys EXCEPT, a list that ends with NULL, are left out
 * too; NULL: none is. */
void plumb_query_write(const struct plumb_query *query, const char *const *except, FILE *out);

#endif
