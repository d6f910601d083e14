/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server: evhttp on the loopback address, for one thread.
 *
 * Whoever can open a socket on this machine can knock, and so can any page in the user's browser.
 * So an address begins with a secret, and a request must name this server as its host, and must not
 * come from another page. A connection has one request, and a time by which it must have arrived.
 */
#include "serve/serve.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/http_struct.h>
#include <event2/keyvalq_struct.h>
#include <event2/listener.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/queue.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "base/base64.h"
#include "base/format.h"
#include "serve/page.h"

#define SECRET_BYTES 24
#define SECRET_SIZE PLUMB_BASE64_SIZE(SECRET_BYTES)
#define API "api/1/"

#define HEADER_BYTES 16384 /* of a request: its line and its headers */
#define BODY_BYTES 1024    /* only the request to quit may have a body, and does not need one */
#define CONNECTIONS 64
#define REQUEST_SECONDS 10 /* by then a request must have arrived */
#define REPLY_SECONDS 120  /* by then a reply must have been taken */

#define SIGNALS 3

struct client {
	struct plumb_server *server;
	struct bufferevent *stream; /* NULL: this place is free */
	struct event *deadline;
	struct evhttp_request *waiting; /* for an answer that is being made; or NULL */
};

struct plumb_server {
	struct plumb_answers *answers;
	struct event_base *base;
	struct evhttp *http;
	struct evconnlistener *listener;
	struct event *signals[SIGNALS], *wake;
	struct client clients[CONNECTIONS];
	unsigned client_count;
	uint16_t port;
	char secret[SECRET_SIZE], ticket[SECRET_SIZE]; /* an empty ticket is used up */
	char hosts[2][32];                             /* what a request may call this server */
	char address[96], ticket_address[96];
	char policy[PLUMB_POLICY_SIZE + 40];
	char *page;
	size_t page_bytes;
};

const char *
plumb_server_missing(void)
{
	return NULL;
}

/* ---- connections ---- */

static void
forget_client(struct client *client)
{
	struct plumb_server *server = client->server;

	/* A request whose connection is lost is nobody's. */
	if (client->waiting && !evhttp_request_get_connection(client->waiting))
		evhttp_request_free(client->waiting);
	client->waiting = NULL;
	event_free(client->deadline);
	bufferevent_decref(client->stream);
	client->stream = NULL;
	if (server->client_count-- == CONNECTIONS)
		evconnlistener_enable(server->listener);
}

/* The time is over. evhttp finds the connection closed, if it has not closed it already. */
static void
end_client(evutil_socket_t fd, short what, void *data)
{
	const struct timeval again = { REPLY_SECONDS, 0 };
	struct client *client = data;

	(void)fd;
	(void)what;
	if (client->waiting) {
		evtimer_add(client->deadline, &again);
		return;
	}
	shutdown(bufferevent_getfd(client->stream), SHUT_RDWR);
	forget_client(client);
}

static void
end_connection(struct evhttp_connection *connection, void *data)
{
	struct client *client = data;

	if (client->stream == evhttp_connection_get_bufferevent(connection))
		forget_client(client);
}

/* Makes the stream of a new connection. This place holds a reference too, so that the number of the
 * socket is not used again before the place is free. */
static struct bufferevent *
new_stream(struct event_base *base, void *data)
{
	const struct timeval limit = { REQUEST_SECONDS, 0 };
	struct plumb_server *server = data;
	struct bufferevent *stream = bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);
	struct client *client = server->clients;

	while (client < server->clients + CONNECTIONS && client->stream)
		client++;
	if (!stream || client == server->clients + CONNECTIONS)
		return stream;
	client->server = server;
	client->deadline = evtimer_new(base, end_client, client);
	if (!client->deadline || evtimer_add(client->deadline, &limit)) {
		if (client->deadline)
			event_free(client->deadline);
		return stream;
	}
	bufferevent_incref(stream);
	client->stream = stream;
	if (++server->client_count == CONNECTIONS)
		evconnlistener_disable(server->listener);
	return stream;
}

static struct client *
find_client(struct plumb_server *server, struct evhttp_request *request)
{
	struct evhttp_connection *connection = evhttp_request_get_connection(request);
	struct bufferevent *stream = evhttp_connection_get_bufferevent(connection);

	for (struct client *c = server->clients; c < server->clients + CONNECTIONS; c++)
		if (c->stream && c->stream == stream)
			return c;
	return NULL;
}

/* The request has arrived: now the reply must be taken. */
static void
extend_deadline(struct plumb_server *server, struct evhttp_request *request)
{
	const struct timeval limit = { REPLY_SECONDS, 0 };
	struct evhttp_connection *connection = evhttp_request_get_connection(request);
	struct client *client = find_client(server, request);

	if (!client)
		return;
	evtimer_add(client->deadline, &limit);
	evhttp_connection_set_closecb(connection, end_connection, client);
	evhttp_connection_set_timeout(connection, REPLY_SECONDS);
}

/* ---- replies ---- */

static void
drop_reply(const void *data, size_t bytes, void *reply)
{
	(void)data;
	(void)bytes;
	plumb_reply_drop(reply);
}

/* Sends what BODY holds. The reply to HEAD has its headers only. */
static void
send_body(struct evhttp_request *request, int status, const char *type, struct evbuffer *body)
{
	struct evkeyvalq *headers = evhttp_request_get_output_headers(request);
	char length[24];

	evhttp_add_header(headers, "Content-Type", type);
	evhttp_add_header(headers, "Cache-Control", "no-store");
	evhttp_add_header(headers, "Referrer-Policy", "no-referrer");
	evhttp_add_header(headers, "X-Content-Type-Options", "nosniff");
	evhttp_add_header(headers, "Cross-Origin-Resource-Policy", "same-origin");
	evhttp_add_header(headers, "Connection", "close");
	snprintf(length, sizeof length, "%zu", body ? evbuffer_get_length(body) : 0);
	evhttp_add_header(headers, "Content-Length", length);
	if (body && evhttp_request_get_command(request) == EVHTTP_REQ_HEAD)
		evbuffer_drain(body, evbuffer_get_length(body));
	evhttp_send_reply(request, status, NULL, body);
}

static void
send_text(struct evhttp_request *request, int status, const char *text)
{
	struct evbuffer *body = evbuffer_new();

	if (body)
		evbuffer_add_printf(body, "%s\n", text);
	send_body(request, status, "text/plain; charset=utf-8", body);
	if (body)
		evbuffer_free(body);
}

static void
send_answer(struct plumb_server *server, struct evhttp_request *request, const char *name,
            const char *query)
{
	struct plumb_reply *reply = plumb_answers_reply(server->answers, name, query);
	struct client *client = find_client(server, request);
	struct evbuffer *body;
	struct plumb_error error;

	if (reply && reply->status == PLUMB_REPLY_LATER && client) {
		client->waiting = request;
		plumb_reply_drop(reply);
		return;
	}
	body = reply ? evbuffer_new() : NULL;
	if (!body || evbuffer_add_reference(body, reply->data, reply->bytes, drop_reply, reply)) {
		plumb_reply_drop(reply);
		plumb_fail_memory(&error, "for the answer");
		send_text(request, 500, error.message);
	} else {
		send_body(request, reply->status, reply->type, body);
	}
	if (body)
		evbuffer_free(body);
}

static void
prepare(evutil_socket_t fd, short what, void *data)
{
	struct plumb_server *server = data;

	(void)fd;
	(void)what;
	plumb_answers_prepare(server->answers);
}

static void
send_page(struct plumb_server *server, struct evhttp_request *request)
{
	const struct timeval soon = { 0, 0 }; /* the page leaves first */
	struct evbuffer *body = evbuffer_new();

	evhttp_add_header(evhttp_request_get_output_headers(request), "Content-Security-Policy",
	                  server->policy);
	if (body)
		evbuffer_add_reference(body, server->page, server->page_bytes, NULL, NULL);
	send_body(request, body ? 200 : 500, "text/html; charset=utf-8", body);
	event_base_once(server->base, -1, EV_TIMEOUT, prepare, server, &soon);
	if (body)
		evbuffer_free(body);
}

/* ---- who may ask ---- */

/* Compares in a time that does not depend on what is equal. */
static bool
is_secret(const char *secret, const char *text)
{
	size_t length = strlen(secret);
	unsigned char differ = 0;

	if (!length || strlen(text) < length)
		return false;
	for (size_t i = 0; i < length; i++)
		differ |= (unsigned char)(secret[i] ^ text[i]);
	return !differ;
}

/* The value of a header that may be there once. False: it is there several times. */
static bool
read_header(struct evhttp_request *request, const char *name, const char **value)
{
	struct evkeyval *header;
	int count = 0;

	*value = NULL;
	TAILQ_FOREACH(header, evhttp_request_get_input_headers(request), next)
	if (!evutil_ascii_strcasecmp(header->key, name)) {
		*value = header->value;
		count++;
	}
	return count <= 1;
}

/* Does the request name this server, and come from its own page or from no page? NULL: yes; else
 * what is wrong. PAGE: it is for the page itself, to which others on this machine may link. */
static const char *
refuse(const struct plumb_server *server, struct evhttp_request *request, bool page)
{
	const char *host, *origin, *site;
	bool own = false;

	if (!read_header(request, "Host", &host) || !read_header(request, "Origin", &origin) ||
	    !read_header(request, "Sec-Fetch-Site", &site))
		return "a header is there twice";
	for (int i = 0; i < 2; i++)
		own |= host && !evutil_ascii_strcasecmp(host, server->hosts[i]);
	if (!own)
		return "the request names another host; use the address that plumb view printed";
	if (origin &&
	    (strncmp(origin, "http://", 7) != 0 || evutil_ascii_strcasecmp(origin + 7, host) != 0))
		return "another page must not ask";
	if (site && strcmp(site, "none") != 0 && strcmp(site, "same-origin") != 0 &&
	    !(page && !strcmp(site, "same-site")))
		return "another page must not ask";
	return NULL;
}

/* ---- requests ---- */

static void
quit(struct plumb_server *server, struct evhttp_request *request)
{
	const struct timeval soon = { 0, 100000 }; /* so that the reply still leaves */
	const char *origin;

	if (!read_header(request, "Origin", &origin) || !origin) {
		send_text(request, 403, "only the page can end the server; it sends its Origin");
		return;
	}
	send_text(request, 200, "plumb view ends");
	event_base_loopexit(server->base, &soon);
}

/* Leads to the page, once. */
static void
use_ticket(struct plumb_server *server, struct evhttp_request *request)
{
	char path[SECRET_SIZE + 4];

	snprintf(path, sizeof path, "/%s/", server->secret);
	if (evhttp_request_get_command(request) == EVHTTP_REQ_GET)
		*server->ticket = '\0';
	evhttp_add_header(evhttp_request_get_output_headers(request), "Location", path);
	send_text(request, 303, "see the page");
}

/* Answers PATH, which is below the secret. */
static void
answer_path(struct plumb_server *server, struct evhttp_request *request, const char *path,
            const char *query)
{
	bool post = evhttp_request_get_command(request) == EVHTTP_REQ_POST;

	if (!strcmp(path, API "quit")) {
		if (post)
			quit(server, request);
		else
			send_text(request, 405, "quit takes POST");
	} else if (post) {
		send_text(request, 405, "only GET and HEAD");
	} else if (!*path) {
		send_page(server, request);
	} else if (!strncmp(path, API, strlen(API))) {
		send_answer(server, request, path + strlen(API), query);
	} else {
		send_text(request, 404, "there is no such page");
	}
}

static void
answer_request(struct evhttp_request *request, void *data)
{
	struct plumb_server *server = data;
	const char *uri = evhttp_request_get_uri(request), *why;
	size_t secret = strlen(server->secret), length = strcspn(uri, "?#");
	char path[256];
	bool page;

	extend_deadline(server, request);
	/* No path that is known is as long. What is cut is not known either. */
	snprintf(path, sizeof path, "%.*s", (int)(length < 255 ? length : 255), uri);
	page = length == secret + 2;
	why = refuse(server, request, page);
	if (why)
		send_text(request, 403, why);
	else if (length < sizeof path && *path == '/' && is_secret(server->secret, path + 1) &&
	         path[secret + 1] == '/')
		answer_path(server, request, path + secret + 2,
		            uri[length] == '?' ? uri + length + 1 : NULL);
	else if (*path == '/' && is_secret(server->ticket, path + 1) && length == secret + 1)
		use_ticket(server, request);
	else
		send_text(request, 404, "there is no such page");
}

/* An answer was made: asks again for those who wait. */
static void
wake(evutil_socket_t fd, short what, void *data)
{
	struct plumb_server *server = data;
	eventfd_t count;

	(void)what;
	eventfd_read(fd, &count);
	for (struct client *c = server->clients; c < server->clients + CONNECTIONS; c++) {
		struct evhttp_request *request = c->waiting;

		c->waiting = NULL;
		if (request && evhttp_request_get_connection(request))
			answer_request(request, server);
		else if (request)
			evhttp_request_free(request);
	}
}

/* ---- start and end ---- */

static void
end_by_signal(evutil_socket_t number, short what, void *data)
{
	struct plumb_server *server = data;

	(void)number;
	(void)what;
	event_base_loopbreak(server->base);
}

static int
make_secret(char text[SECRET_SIZE], struct plumb_error *error)
{
	unsigned char bytes[SECRET_BYTES];

	if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
		return plumb_fail_errno(error, "the system gives no random numbers");
	plumb_base64(bytes, sizeof bytes, true, text);
	return 0;
}

static int
listen_on(struct plumb_server *server, uint16_t port, struct plumb_error *error)
{
	struct sockaddr_in address;
	socklen_t length = sizeof address;
	struct evhttp_bound_socket *bound;

	errno = 0;
	bound = evhttp_bind_socket_with_handle(server->http, "127.0.0.1", port);
	if (!bound && port && errno == EADDRINUSE)
		return plumb_fail(error, PLUMB_ESYSTEM,
		                  "port %u is in use; leave out --port, or choose another one",
		                  port);
	if (!bound)
		return plumb_fail_errno(error, "cannot listen on 127.0.0.1, port %u", port);
	server->listener = evhttp_bound_socket_get_listener(bound);
	if (getsockname(evhttp_bound_socket_get_fd(bound), (struct sockaddr *)&address, &length))
		return plumb_fail_errno(error, "cannot listen on 127.0.0.1");
	server->port = ntohs(address.sin_port);
	return 0;
}

static int
make_addresses(struct plumb_server *server, struct plumb_error *error)
{
	if (make_secret(server->secret, error) < 0 || make_secret(server->ticket, error) < 0)
		return PLUMB_ESYSTEM;
	snprintf(server->hosts[0], sizeof server->hosts[0], "127.0.0.1:%u", server->port);
	snprintf(server->hosts[1], sizeof server->hosts[1], "localhost:%u", server->port);
	snprintf(server->address, sizeof server->address, "http://%s/%s/", server->hosts[0],
	         server->secret);
	snprintf(server->ticket_address, sizeof server->ticket_address, "http://%s/%s",
	         server->hosts[0], server->ticket);
	return 0;
}

static int
make_page(struct plumb_server *server, struct plumb_error *error)
{
	FILE *out = open_memstream(&server->page, &server->page_bytes);
	char policy[PLUMB_POLICY_SIZE];

	/* Only a header can say who may frame the page. */
	snprintf(server->policy, sizeof server->policy, "%s; frame-ancestors 'none'",
	         plumb_page_policy(true, policy));
	if (!out)
		return plumb_fail_memory(error, "for the page");
	plumb_page_begin(plumb_answers_title(server->answers), true, out);
	plumb_page_end(out);
	return fclose(out) ? plumb_fail_memory(error, "for the page") : 0;
}

static int
make_server(struct plumb_server *server, struct plumb_error *error)
{
	static const int numbers[SIGNALS] = { SIGINT, SIGTERM, SIGHUP };

	server->base = event_base_new();
	server->http = server->base ? evhttp_new(server->base) : NULL;
	if (!server->http)
		return plumb_fail_memory(error, "for the server");
	evhttp_set_allowed_methods(server->http,
	                           EVHTTP_REQ_GET | EVHTTP_REQ_HEAD | EVHTTP_REQ_POST);
	evhttp_set_max_headers_size(server->http, HEADER_BYTES);
	evhttp_set_max_body_size(server->http, BODY_BYTES);
	evhttp_set_timeout(server->http, REQUEST_SECONDS);
	evhttp_set_default_content_type(server->http, NULL);
	evhttp_set_bevcb(server->http, new_stream, server);
	evhttp_set_gencb(server->http, answer_request, server);
	for (int i = 0; i < SIGNALS; i++) {
		server->signals[i] = evsignal_new(server->base, numbers[i], end_by_signal, server);
		if (!server->signals[i] || evsignal_add(server->signals[i], NULL))
			return plumb_fail_memory(error, "for the server");
	}
	if (plumb_answers_wake(server->answers) < 0)
		return 0;
	server->wake = event_new(server->base, plumb_answers_wake(server->answers),
	                         EV_READ | EV_PERSIST, wake, server);
	return server->wake && !event_add(server->wake, NULL)
	               ? 0
	               : plumb_fail_memory(error, "for the server");
}

struct plumb_server *
plumb_server_new(struct plumb_answers *answers, uint16_t port, struct plumb_error *error)
{
	struct plumb_server *server = calloc(1, sizeof *server);

	if (!server) {
		plumb_fail_memory(error, "for the server");
		return NULL;
	}
	server->answers = answers;
	if (make_server(server, error) < 0 || listen_on(server, port, error) < 0 ||
	    make_addresses(server, error) < 0 || make_page(server, error) < 0) {
		plumb_server_free(server);
		return NULL;
	}
	return server;
}

void
plumb_server_free(struct plumb_server *server)
{
	if (!server)
		return;
	if (server->http)
		evhttp_free(server->http);
	for (struct client *c = server->clients; c < server->clients + CONNECTIONS; c++)
		if (c->stream) {
			event_free(c->deadline);
			bufferevent_decref(c->stream);
		}
	for (int i = 0; i < SIGNALS; i++)
		if (server->signals[i])
			event_free(server->signals[i]);
	if (server->wake)
		event_free(server->wake);
	if (server->base)
		event_base_free(server->base);
	free(server->page);
	free(server);
}

uint16_t
plumb_server_port(const struct plumb_server *server)
{
	return server->port;
}

const char *
plumb_server_address(const struct plumb_server *server)
{
	return server->address;
}

const char *
plumb_server_ticket(const struct plumb_server *server)
{
	return server->ticket_address;
}

int
plumb_server_run(struct plumb_server *server, struct plumb_error *error)
{
	return event_base_dispatch(server->base) < 0
	               ? plumb_fail_errno(error, "the server cannot wait for requests")
	               : 0;
}
