/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profiles in a browser: answers over HTTP on this machine, or one page with the answers inside.
 *
 *	struct plumb_serve_file files[] = { { "train.plumb", &profile } };
 *	struct plumb_answers *answers = plumb_answers_new(files, 1, 0, &error);
 *	if (!answers) …
 *	struct plumb_server *server = plumb_server_new(answers, 0, &error);
 *	if (!server) …
 *	puts(plumb_server_address(server));
 *	code = plumb_server_run(server, &error);          // until a signal, or until told
 *	plumb_server_free(server);
 *	plumb_answers_free(answers);
 *
 * What an address may ask for is in docs/folders/serve.md. All of this is for one thread,
 * and what takes long has another one inside.
 */
#ifndef PLUMB_SERVE_SERVE_H
#define PLUMB_SERVE_SERVE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "model/profile.h"

/* An open profile, in memory. Names and profiles stay the caller's. */
struct plumb_serve_file {
	const char *name;
	const struct plumb_profile *profile;
};

struct plumb_answers;

/* The first BEFORE of the COUNT files are the first side of a comparison; 0: the first file. NULL:
 * no memory. plumb_answers_free takes NULL. */
struct plumb_answers *plumb_answers_new(const struct plumb_serve_file *files, uint32_t count,
                                        uint32_t before, struct plumb_error *error);
void plumb_answers_free(struct plumb_answers *answers);
/* How names of GPU code are shown: malloced, or NULL. Without it they stay mangled. */
void plumb_answers_demangle(struct plumb_answers *answers, char *(*demangle)(const char *name));
/* What is open, for the title of a page: "train.plumb", "a.plumb, b.plumb". */
const char *plumb_answers_title(const struct plumb_answers *answers);

/* The answer is being made, in another thread. */
#define PLUMB_REPLY_LATER 202

/* What is sent for a question. It may be kept beyond the next question, also beyond the answers. */
struct plumb_reply {
	int status; /* of HTTP: 200; 400 a wrong query, 404 there is no such thing, 500 */
	const char *type;
	char *data;
	size_t bytes;
	uint32_t references;
};
/* The reply for the answer NAME, such as "report", with QUERY as an address has it, or NULL. NULL:
 * no memory even for an error. Call plumb_reply_drop. */
struct plumb_reply *
plumb_answers_reply(struct plumb_answers *answers, const char *name, const char *query);
/* From now on, what takes long is done in another thread, and the reply meanwhile is
 * PLUMB_REPLY_LATER. Returns a descriptor (eventfd) that can be read when it is time to ask again;
 * -1: it could not be made, and all is done at once. */
int plumb_answers_wake(struct plumb_answers *answers);
/* Begins to make what is asked for first, if what takes long is done in another thread. */
void plumb_answers_prepare(struct plumb_answers *answers);
struct plumb_reply *plumb_reply_keep(struct plumb_reply *reply);
void plumb_reply_drop(struct plumb_reply *reply);

/* ---- the page ---- */

/* Was the page built into this plumb? NULL: yes; else why not, and what to do. */
const char *plumb_page_missing(void);
/* Writes one page with its answers inside, which needs no server. PLUMB_ESYSTEM: no memory, or a
 * write that failed. */
int plumb_page_write(struct plumb_answers *answers, FILE *out,
                     struct plumb_error *error) PLUMB_MUST_CHECK;
/* Is the file PATH such a page? */
bool plumb_page_is(const char *path);

/* ---- over HTTP ---- */

struct plumb_server;

/* Can this plumb serve? NULL: yes; else why not, and what to do. */
const char *plumb_server_missing(void);

/* Listens on 127.0.0.1 at PORT; 0: at a free one. NULL: PLUMB_ESYSTEM. */
struct plumb_server *
plumb_server_new(struct plumb_answers *answers, uint16_t port, struct plumb_error *error);
void plumb_server_free(struct plumb_server *server);
uint16_t plumb_server_port(const struct plumb_server *server);
/* "http://127.0.0.1:PORT/SECRET/". Who has it can read the profile. */
const char *plumb_server_address(const struct plumb_server *server);
/* An address that leads to the other one, once. It is for command lines, which other users see. */
const char *plumb_server_ticket(const struct plumb_server *server);
/* Serves until SIGINT, SIGTERM, SIGHUP, or until a client says so. */
int plumb_server_run(struct plumb_server *server, struct plumb_error *error) PLUMB_MUST_CHECK;

#endif
