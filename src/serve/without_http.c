/* SPDX-License-Identifier: Apache-2.0 */
/* In place of http.c where libevent is not installed. */
#include "serve/serve.h"

const char *
plumb_server_missing(void)
{
	return "this plumb was built without libevent, so it serves no pages; install "
	       "libevent-dev and build it again, or write a page with --html";
}

struct plumb_server *
plumb_server_new(struct plumb_answers *answers, uint16_t port, struct plumb_error *error)
{
	(void)answers;
	(void)port;
	plumb_fail(error, PLUMB_ESYSTEM, "%s", plumb_server_missing());
	return NULL;
}

void
plumb_server_free(struct plumb_server *server)
{
	(void)server;
}

uint16_t
plumb_server_port(const struct plumb_server *server)
{
	(void)server;
	return 0;
}

const char *
plumb_server_address(const struct plumb_server *server)
{
	(void)server;
	return "";
}

const char *
plumb_server_ticket(const struct plumb_server *server)
{
	(void)server;
	return "";
}

int
plumb_server_run(struct plumb_server *server, struct plumb_error *error)
{
	(void)server;
	return plumb_fail(error, PLUMB_ESYSTEM, "%s", plumb_server_missing());
}
