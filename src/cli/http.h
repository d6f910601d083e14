/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Posts to a server near by: HTTP/1.1 without encryption, a connection for each request, half a minute's
 * patience. What must be encrypted goes through a collector or proxy on the same machine.
 */
#ifndef PLUMB_CLI_HTTP_H
#define PLUMB_CLI_HTTP_H

#include <stddef.h>

#include "base/error.h"

struct plumb_http_url {
	char host[256], port[6], path[1024];
};

/* "http://host[:port][/path]"; without a port it has PORT, without a path PATH. PLUMB_EUSAGE: it is none. */
int plumb_http_url(struct plumb_http_url *url, const char *text, const char *port, const char *path,
                   struct plumb_error *error) PLUMB_MUST_CHECK;

struct plumb_http_answer {
	int status;       /* 200 */
	char reason[64];  /* "OK" */
	char body[16384]; /* its beginning, terminated */
	size_t bytes;
};

/* Posts BYTES at BODY. PLUMB_ESYSTEM, with a message that names the server: nobody answered, or not in HTTP. */
int
plumb_http_post(const struct plumb_http_url *url, const char *type, const char *body, size_t bytes,
                struct plumb_http_answer *answer, struct plumb_error *error) PLUMB_MUST_CHECK;

#endif
