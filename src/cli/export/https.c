/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Posts by https with the system's libcurl. It is loaded when it is first needed and never linked,
 * so that plumb runs without it. Its numbers are those of curl/curl.h, which are the same in every
 * libcurl.so.4.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/export/http.h"

/* Options: of a number, of a pointer, of a function, of a large number. */
enum {
	FOLLOWLOCATION = 52,
	POST = 47,
	NOSIGNAL = 99,
	TIMEOUT_MS = 155,
	CONNECTTIMEOUT_MS = 156,
	SSLVERSION = 32,
	PROTOCOLS = 181,
	WRITEDATA = 10001,
	URL = 10002,
	ERRORBUFFER = 10010,
	POSTFIELDS = 10015,
	USERAGENT = 10018,
	HTTPHEADER = 10023,
	HEADERDATA = 10029,
	CAINFO = 10065,
	WRITEFUNCTION = 20011,
	HEADERFUNCTION = 20079,
	POSTFIELDSIZE_LARGE = 30120,
	RESPONSE_CODE = 0x200002,
};
#define TLS_1_2 6L
#define ONLY_HTTPS 2L
#define TIMED_OUT 28
#define ERROR_BYTES 256

struct curl {
	void *(*begin)(void);
	int (*set)(void *, int, ...);
	int (*perform)(void *);
	int (*info)(void *, int, ...);
	void (*end)(void *);
	const char *(*text)(int);
	void *(*append)(void *, const char *);
	void (*free)(void *);
};

static bool
load_curl(struct curl *curl)
{
	static void *library;
	static const char *const names[] = { "libcurl.so.4", "libcurl-gnutls.so.4" };
	const struct {
		void **to;
		const char *name;
	} calls[] = {
		{ (void **)&curl->begin, "curl_easy_init" },
		{ (void **)&curl->set, "curl_easy_setopt" },
		{ (void **)&curl->perform, "curl_easy_perform" },
		{ (void **)&curl->info, "curl_easy_getinfo" },
		{ (void **)&curl->end, "curl_easy_cleanup" },
		{ (void **)&curl->text, "curl_easy_strerror" },
		{ (void **)&curl->append, "curl_slist_append" },
		{ (void **)&curl->free, "curl_slist_free_all" },
	};
	for (size_t i = 0; !library && i < sizeof names / sizeof *names; i++)
		library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
	for (size_t i = 0; library && i < sizeof calls / sizeof *calls; i++)
		if (!(*calls[i].to = dlsym(library, calls[i].name)))
			return false;
	return library != NULL;
}

/* Keeps the beginning of the answer, and refuses the rest. */
static size_t
take_body(const char *data, size_t size, size_t count, void *to)
{
	struct plumb_http_answer *answer = to;
	size_t room = sizeof answer->body - 1 - answer->bytes, bytes = size * count;
	size_t part = bytes < room ? bytes : room;
	memcpy(answer->body + answer->bytes, data, part);
	answer->bytes += part;
	answer->body[answer->bytes] = '\0';
	return part;
}

/* "HTTP/1.1 404 Not Found"; HTTP/2 gives no reason. */
static size_t
take_head(const char *data, size_t size, size_t count, void *to)
{
	struct plumb_http_answer *answer = to;
	char line[128];
	int reason = 0;
	snprintf(line, sizeof line, "%.*s", (int)(size * count < 127 ? size * count : 127), data);
	if (sscanf(line, "HTTP/%*s %*d %n", &reason) >= 0 && reason)
		snprintf(answer->reason, sizeof answer->reason, "%.*s",
		         (int)strcspn(line + reason, "\r\n"), line + reason);
	return size * count;
}

static void
set_up(const struct curl *curl, void *easy, const struct plumb_http_url *url)
{
	const char *ca = url->ca ? url->ca : getenv("SSL_CERT_FILE");
	curl->set(easy, PROTOCOLS, ONLY_HTTPS);
	curl->set(easy, SSLVERSION, TLS_1_2);
	curl->set(easy, FOLLOWLOCATION, 0L);
	curl->set(easy, NOSIGNAL, 1L);
	curl->set(easy, TIMEOUT_MS, (long)url->seconds * 1000);
	curl->set(easy, CONNECTTIMEOUT_MS, (long)url->seconds * 1000);
	curl->set(easy, USERAGENT, "plumb");
	if (ca && *ca)
		curl->set(easy, CAINFO, ca);
}

static int
fail_post(const struct curl *curl, const struct plumb_http_url *url, int result, const char *why,
          struct plumb_error *error)
{
	if (result == TIMED_OUT)
		return plumb_fail(error, PLUMB_ESYSTEM,
		                  "%s port %s: no complete answer in %u seconds; allow more with "
		                  "--timeout",
		                  url->host, url->port, url->seconds);
	return plumb_fail(error, PLUMB_ESYSTEM, "%s port %s: %s", url->host, url->port,
	                  *why ? why : curl->text(result));
}

static int
post_body(const struct curl *curl, void *easy, const struct plumb_http_url *url, const char *type,
          const char *body, size_t bytes, struct plumb_http_answer *answer,
          struct plumb_error *error)
{
	char address[1400], header[128], why[ERROR_BYTES] = "";
	bool six = strchr(url->host, ':') != NULL;
	long status = 0;
	snprintf(address, sizeof address, "https://%s%s%s:%s%s", six ? "[" : "", url->host,
	         six ? "]" : "", url->port, url->path);
	snprintf(header, sizeof header, "Content-Type: %s", type);
	/* Without "Expect:" a large body would wait for a word of the server. */
	void *headers = curl->append(curl->append(NULL, header), "Expect:");
	set_up(curl, easy, url);
	curl->set(easy, URL, address);
	curl->set(easy, POST, 1L);
	curl->set(easy, POSTFIELDSIZE_LARGE, (int64_t)bytes);
	curl->set(easy, POSTFIELDS, body);
	curl->set(easy, HTTPHEADER, headers);
	curl->set(easy, ERRORBUFFER, why);
	curl->set(easy, WRITEFUNCTION, take_body);
	curl->set(easy, WRITEDATA, answer);
	curl->set(easy, HEADERFUNCTION, take_head);
	curl->set(easy, HEADERDATA, answer);
	*answer = (struct plumb_http_answer){ 0 };
	int result = curl->perform(easy);
	curl->info(easy, RESPONSE_CODE, &status);
	curl->free(headers);
	answer->status = (int)status;
	/* A body that was too long was cut by us: the answer is there. */
	if (result && !(status && answer->bytes == sizeof answer->body - 1))
		return fail_post(curl, url, result, why, error);
	return 0;
}

int
plumb_https_post(const struct plumb_http_url *url, const char *type, const char *body, size_t bytes,
                 struct plumb_http_answer *answer, struct plumb_error *error)
{
	struct curl curl;
	if (!load_curl(&curl))
		return plumb_fail(error, PLUMB_ESYSTEM,
		                  "https needs libcurl (libcurl.so.4), which is not installed; "
		                  "install libcurl4, or send with http:// to a collector on this "
		                  "machine");
	void *easy = curl.begin();
	if (!easy)
		return plumb_fail_memory(error, NULL);
	int code = post_body(&curl, easy, url, type, body, bytes, answer, error);
	curl.end(easy);
	return code;
}
