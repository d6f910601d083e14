/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/export/http.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

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
	*url = (struct plumb_http_url){ .tls = !strncasecmp(text, "https://", 8), .seconds = 30 };
	const char *host = text + (url->tls ? 8 : 7), *slash;
	if ((!url->tls && strncasecmp(text, "http://", 7) != 0) || !is_plain(text, strlen(text)) ||
	    !split_host(url, host, strcspn(host, "/"), url->tls ? "443" : port) ||
	    strlen(host + strcspn(host, "/")) >= sizeof url->path)
		return plumb_fail(error, PLUMB_EUSAGE,
		                  "%.200s: not an address; give one like http://localhost:%s", text,
		                  port);
	slash = host + strcspn(host, "/");
	snprintf(url->path, sizeof url->path, "%s", slash[0] && slash[1] ? slash : path);
	return 0;
}

/* ---- the connection ---- */

/* False with ETIMEDOUT: END went by. However slowly bytes come, they do not move it. */
static bool
wait_for(int fd, short events, int64_t end)
{
	for (;;) {
		struct pollfd poller = { .fd = fd, .events = events };
		int64_t left = end - plumb_clock_ms();
		int ready = left > 0 ? poll(&poller, 1, (int)left) : 0;
		if (ready > 0)
			return true;
		if (ready == 0)
			errno = ETIMEDOUT;
		if (ready == 0 || errno != EINTR)
			return false;
	}
}

/* A connected socket; -1 with errno. */
static int
connect_one(const struct addrinfo *to, int64_t end)
{
	int reason = 0, fd = socket(to->ai_family, to->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
	                            to->ai_protocol);
	socklen_t size = sizeof reason;
	if (fd < 0)
		return -1;
	if (connect(fd, to->ai_addr, to->ai_addrlen) < 0)
		reason = errno;
	if (reason == EINPROGRESS) {
		if (!wait_for(fd, POLLOUT, end))
			reason = errno;
		else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &reason, &size) < 0)
			reason = errno;
	}
	if (!reason)
		return fd;
	close(fd);
	errno = reason;
	return -1;
}

static int
connect_to(const struct plumb_http_url *url, int64_t end, struct plumb_error *error)
{
	struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM },
			*found = NULL;
	int fd = -1, code = getaddrinfo(url->host, url->port, &hints, &found);
	if (code) {
		plumb_fail(error, PLUMB_ESYSTEM, "%s: no such host: %s", url->host,
		           gai_strerror(code));
		return -1;
	}
	for (const struct addrinfo *a = found; a && fd < 0; a = a->ai_next)
		fd = connect_one(a, end);
	int reason = errno;
	freeaddrinfo(found);
	errno = reason;
	if (fd < 0)
		plumb_fail_errno(error, "cannot connect to %s port %s", url->host, url->port);
	return fd;
}

static bool
send_all(int fd, const char *data, size_t bytes, int64_t end)
{
	while (bytes) {
		ssize_t sent = send(fd, data, bytes, MSG_NOSIGNAL);
		if (sent < 0 && errno == EAGAIN && !wait_for(fd, POLLOUT, end))
			return false;
		if (sent < 0 && errno != EINTR && errno != EAGAIN)
			return false;
		if (sent > 0) {
			data += sent;
			bytes -= (size_t)sent;
		}
	}
	return true;
}

/* What comes until the server closes, ROOM is full or END goes by. Negative: nothing came, with
 * errno. */
static ssize_t
receive_answer(int fd, char *to, size_t room, int64_t end, bool *timed_out)
{
	size_t bytes = 0;
	*timed_out = false;
	while (bytes < room) {
		if (!wait_for(fd, POLLIN, end)) {
			*timed_out = errno == ETIMEDOUT;
			return bytes ? (ssize_t)bytes : -1;
		}
		ssize_t got = recv(fd, to + bytes, room - bytes, 0);
		if (got < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (got <= 0)
			return got < 0 && !bytes ? -1 : (ssize_t)bytes;
		bytes += (size_t)got;
	}
	return (ssize_t)bytes;
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

static int
fail_answer(const struct plumb_http_url *url, bool timed_out, int reason, struct plumb_error *error)
{
	if (timed_out)
		return plumb_fail(error, PLUMB_ESYSTEM,
		                  "%s port %s: no complete answer in %u seconds; allow more with "
		                  "--timeout",
		                  url->host, url->port, url->seconds);
	return plumb_fail(error, PLUMB_ESYSTEM, "%s port %s: no answer: %s", url->host, url->port,
	                  reason ? strerror(reason) : "the connection was closed");
}

/* Sends HEAD and BODY, and reads the answer into RAW, of ROOM bytes and one more. */
static int
exchange_messages(int fd, const struct plumb_http_url *url, const char *head, const char *body,
                  size_t bytes, char *raw, size_t room, int64_t end,
                  struct plumb_http_answer *answer, struct plumb_error *error)
{
	bool timed_out;
	/* A server that refuses may answer, and close, before it has read everything. */
	errno = 0;
	bool sent = send_all(fd, head, strlen(head), end) && send_all(fd, body, bytes, end);
	int reason = errno;
	ssize_t got = receive_answer(fd, raw, room, end, &timed_out);
	reason = sent ? errno : reason;
	raw[got < 0 ? 0 : got] = '\0';
	if (got <= 0)
		return fail_answer(url, timed_out || reason == ETIMEDOUT, got < 0 ? reason : 0,
		                   error);
	if (read_answer(raw, (size_t)got, answer))
		return 0;
	if (timed_out)
		return fail_answer(url, true, 0, error);
	return plumb_fail(error, PLUMB_ESYSTEM,
	                  "%s port %s: the answer is not HTTP; use the collector's port for OTLP "
	                  "over HTTP (usually 4318), not the one for gRPC (4317)",
	                  url->host, url->port);
}

int
plumb_http_post(const struct plumb_http_url *url, const char *type, const char *body, size_t bytes,
                struct plumb_http_answer *answer, struct plumb_error *error)
{
	enum { ROOM = 65536 };
	char head[2048];
	bool six = strchr(url->host, ':') != NULL;
	if (url->tls)
		return plumb_https_post(url, type, body, bytes, answer, error);
	snprintf(head, sizeof head,
	         "POST %s HTTP/1.1\r\nHost: %s%s%s:%s\r\nUser-Agent: plumb\r\n"
	         "Content-Type: %s\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n",
	         url->path, six ? "[" : "", url->host, six ? "]" : "", url->port, type, bytes);
	char *raw = malloc(ROOM + 1);
	if (!raw)
		return plumb_fail_memory(error, NULL);
	int64_t end = plumb_clock_ms() + (int64_t)url->seconds * 1000;
	int fd = connect_to(url, end, error);
	int code = fd < 0 ? PLUMB_ESYSTEM
	                  : exchange_messages(fd, url, head, body, bytes, raw, ROOM, end, answer,
	                                      error);
	if (fd >= 0)
		close(fd);
	free(raw);
	return code;
}
