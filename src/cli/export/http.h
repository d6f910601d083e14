/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Posts to a server with HTTP/1.1 and one connection for each request. https:// uses the system's
 * libcurl, which is loaded when it is needed (https.c). The whole request has a time limit, and
 * the answer has a size limit. Redirections are not followed, because they could send the spans
 * anywhere.
 */
#ifndef PLUMB_CLI_EXPORT_HTTP_H
#define PLUMB_CLI_EXPORT_HTTP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct plumb_http_url {
	bool tls;
	char host[256], port[6], path[1024];
	const char *ca;   /* file with the certificates to trust; NULL: the system's */
	unsigned seconds; /* for a request and its answer */
};

/* "http://host[:port][/path]", or https://. The default of the port is PORT for http and 443 for
 * https; the default of the path is PATH. PLUMB_EUSAGE: TEXT is not an address. */
int plumb_http_url(struct plumb_http_url *url, const char *text, const char *port, const char *path,
                   struct plumb_error *error) PLUMB_MUST_CHECK;

struct plumb_http_answer {
	int status;       /* 200 */
	char reason[64];  /* "OK" */
	char body[16384]; /* its beginning, terminated */
	size_t bytes;
};

/* Posts the BYTES of BODY. PLUMB_ESYSTEM, with a message that names the server: nothing answered,
 * or the answer was not HTTP. */
int
plumb_http_post(const struct plumb_http_url *url, const char *type, const char *body, size_t bytes,
                struct plumb_http_answer *answer, struct plumb_error *error) PLUMB_MUST_CHECK;

/* The same for an address with `tls`; plumb_http_post calls it. */
int
plumb_https_post(const struct plumb_http_url *url, const char *type, const char *body, size_t bytes,
                 struct plumb_http_answer *answer, struct plumb_error *error) PLUMB_MUST_CHECK;

#endif
