/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/http.h"

#include <errno.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define PATIENCE_S 30

/* ---- the address ---- */

/* Could it be in a request's first line or its Host? */
static bool
is_plain(const char *text, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		if (text[i] <= ' ' || text[i] == 0x7f)
			return false;
	return true;
}

static bool
is_port(const char *text, size_t bytes)
{
	return bytes > 0 && bytes < 6 && strspn(text, "0123456789") >= bytes && atoi(text) > 0 &&
	       atoi(text) < 65536;
}

/* "host", "host:port", "[::1]:port" */
static bool
split_host(struct plumb_http_url *url, const char *text, size_t bytes, const char *port)
{
	const char *end = text + bytes, *close = *text == '[' ? memchr(text, ']', bytes) : NULL;
	const char *host = close ? text + 1 : text;
	const char *colon = close ? (close + 1 < end ? close + 1 : NULL) : memchr(text, ':', bytes);
	size_t length = (size_t)((close ? close : colon ? colon : end) - host);
	if (!length || length >= sizeof url->host || (colon && *colon != ':') ||
	    (colon && !is_port(colon + 1, (size_t)(end - colon - 1))))
		return false;
	snprintf(url->host, sizeof url->host, "%.*s", (int)length, host);
	if (colon)
		snprintf(url->port, sizeof url->port, "%.*s", (int)(end - colon - 1), colon + 1);
	else
		snprintf(url->port, sizeof url->port, "%s", port);
	return true;
}

int
plumb_http_url(struct plumb_http_url *url, const char *text, const char *port, const char *path,
               struct plumb_error *error)
{
	static const char scheme[] = "http://";
	if (!strncasecmp(text, "https://", 8))
		return plumb_fail(
			error, PLUMB_EUSAGE,
			"%.200s: plumb does not encrypt; send to a collector on this machine "
			"by http://, and let it pass on what must be encrypted",
			text);
	const char *host = text + sizeof scheme - 1, *slash;
	if (strncasecmp(text, scheme, sizeof scheme - 1) != 0 || !is_plain(text, strlen(text)) ||
	    !split_host(url, host, strcspn(host, "/"), port) ||
	    strlen(host + strcspn(host, "/")) >= sizeof url->path)
		return plumb_fail(error, PLUMB_EUSAGE,
		                  "%.200s: is no address; give one like http://localhost:%s", text,
		                  port);
	slash = host + strcspn(host, "/");
	snprintf(url->path, sizeof url->path, "%s", slash[0] && slash[1] ? slash : path);
	return 0;
}

/* ---- the connection ---- */

static int
connect_to(const struct plumb_http_url *url, struct plumb_error *error)
{
	struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM },
			*found = NULL;
	const struct timeval patience = { .tv_sec = PATIENCE_S };
	int fd = -1, code = getaddrinfo(url->host, url->port, &hints, &found);
	if (code) {
		plumb_fail(error, PLUMB_ESYSTEM, "%s: no such host: %s", url->host,
		           gai_strerror(code));
		return -1;
	}
	for (const struct addrinfo *a = found; a && fd < 0; a = a->ai_next) {
		fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);
		if (fd < 0)
			continue;
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
		setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
		if (connect(fd, a->ai_addr, a->ai_addrlen) < 0) {
			int reason = errno;
			close(fd);
			errno = reason;
			fd = -1;
		}
	}
	freeaddrinfo(found);
	if (fd < 0)
		plumb_fail_errno(error, "%s port %s: nobody answers", url->host, url->port);
	return fd;
}

static bool
send_all(int fd, const char *data, size_t bytes)
{
	while (bytes) {
		ssize_t sent = send(fd, data, bytes, MSG_NOSIGNAL);
		if (sent < 0 && errno == EINTR)
			continue;
		if (sent <= 0)
			return false;
		data += sent;
		bytes -= (size_t)sent;
	}
	return true;
}

/* Whatever comes until the server closes; what ROOM does not hold is read and left. */
static bool
receive(int fd, char *to, size_t room, size_t *bytes)
{
	char spare[4096];
	*bytes = 0;
	for (;;) {
		bool full = *bytes == room;
		ssize_t got = recv(fd, full ? spare : to + *bytes,
		                   full ? sizeof spare : room - *bytes, 0);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got == 0 || *bytes > 0;
		if (!full)
			*bytes += (size_t)got;
	}
}

/* ---- the answer ---- */

/* Does a line of the head say NAME: VALUE? */
static bool
head_says(const char *head, const char *name, const char *value)
{
	for (const char *line = head; (line = strstr(line, "\r\n"));) {
		line += 2;
		if (strncasecmp(line, name, strlen(name)) != 0 || line[strlen(name)] != ':')
			continue;
		line += strlen(name) + 1;
		line += strspn(line, " \t");
		if (!strncasecmp(line, value, strlen(value)))
			return true;
	}
	return false;
}

/* Takes the lengths out from between the pieces. */
static size_t
join_chunks(char *body, size_t bytes)
{
	const char *at = body, *end = body + bytes;
	size_t to = 0;
	while (at < end) {
		char *digits;
		unsigned long long length = strtoull(at, &digits, 16);
		const char *line = memchr(at, '\n', (size_t)(end - at));
		if (digits == at || !length || !line)
			break;
		at = line + 1;
		if (length > (size_t)(end - at))
			length = (size_t)(end - at);
		memmove(body + to, at, (size_t)length);
		to += (size_t)length;
		at += length;
		while (at < end && (*at == '\r' || *at == '\n'))
			at++;
	}
	return to;
}

/* RAW is terminated. */
static bool
read_answer(char *raw, size_t bytes, struct plumb_http_answer *answer)
{
	char *body = strstr(raw, "\r\n\r\n");
	int reason = 0;
	*answer = (struct plumb_http_answer){ 0 };
	if (!body || sscanf(raw, "HTTP/1.%*1d %3d %n", &answer->status, &reason) != 1)
		return false;
	if (reason)
		snprintf(answer->reason, sizeof answer->reason, "%.*s",
		         (int)strcspn(raw + reason, "\r\n"), raw + reason);
	*body = '\0';
	body += 4;
	bytes -= (size_t)(body - raw);
	if (head_says(raw, "Transfer-Encoding", "chunked"))
		bytes = join_chunks(body, bytes);
	answer->bytes = bytes < sizeof answer->body ? bytes : sizeof answer->body - 1;
	memcpy(answer->body, body, answer->bytes);
	return true;
}

int
plumb_http_post(const struct plumb_http_url *url, const char *type, const char *body, size_t bytes,
                struct plumb_http_answer *answer, struct plumb_error *error)
{
	enum { ROOM = 65536 };
	char head[2048];
	bool six = strchr(url->host, ':') != NULL;
	int length = snprintf(
		head, sizeof head,
		"POST %s HTTP/1.1\r\nHost: %s%s%s:%s\r\nUser-Agent: plumb\r\n"
		"Content-Type: %s\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n",
		url->path, six ? "[" : "", url->host, six ? "]" : "", url->port, type, bytes);
	char *raw = malloc(ROOM + 1);
	int fd = raw && length < (int)sizeof head ? connect_to(url, error) : -1;
	size_t got = 0;
	if (fd < 0) {
		if (!raw)
			plumb_fail(error, PLUMB_ESYSTEM, "memory is out");
		free(raw);
		return PLUMB_ESYSTEM;
	}
	/* A server that refuses may answer, and close, before it has read everything. */
	errno = 0;
	bool sent = send_all(fd, head, (size_t)length) && send_all(fd, body, bytes);
	int reason = errno;
	bool heard = receive(fd, raw, ROOM, &got) && got;
	reason = sent ? errno : reason;
	close(fd);
	raw[got] = '\0';
	int code = 0;
	if (!heard)
		code = plumb_fail(error, PLUMB_ESYSTEM, "%s port %s: no answer: %s", url->host,
		                  url->port,
		                  reason == EAGAIN ? "half a minute went by"
		                  : reason         ? strerror(reason)
		                                   : "the connection was closed");
	else if (!read_answer(raw, got, answer))
		code = plumb_fail(error, PLUMB_ESYSTEM,
		                  "%s port %s: does not speak HTTP; is it the port for OTLP over "
		                  "gRPC (4317), and not the one over HTTP (4318)?",
		                  url->host, url->port);
	free(raw);
	return code;
}
