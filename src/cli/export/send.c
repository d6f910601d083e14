/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/export/send.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_fields.h"
#include "export/otlp.h"

#define BATCH 4000u /* spans: about 4 MB, a fifth of what the Collector takes by default */

int
plumb_send_url(struct plumb_http_url *url, const char *text, struct plumb_error *error)
{
	return plumb_http_url(url, text, "4318", "/v1/traces", error);
}

/* {"partialSuccess":{"rejectedSpans":"3","errorMessage":"…"}}, or {"message":"…"} of an error */
struct reply {
	int64_t rejected;
	char message[300];
};

static void
read_message(struct plumb_pull *pull, void *into, void *own)
{
	struct reply *reply = into;
	struct plumb_slice text;
	(void)own;
	if (!plumb_pull_text(pull, &text))
		return;
	size_t bytes = text.bytes < sizeof reply->message ? text.bytes : sizeof reply->message - 1;
	memcpy(reply->message, text.at, bytes);
	reply->message[bytes] = '\0';
	for (char *at = reply->message; *at; at++)
		if ((unsigned char)*at < ' ')
			*at = ' ';
}

static const struct plumb_pull_field partial_fields[] = {
	PLUMB_PULL_FIELD("rejectedSpans", INTEGER, PLUMB_PULL_AT(struct reply, rejected)),
	PLUMB_PULL_FIELD("errorMessage", CALL, .read = read_message),
	{ 0 },
};
static const struct plumb_pull_field reply_fields[] = {
	PLUMB_PULL_FIELD("partialSuccess", OBJECT, .inner = partial_fields),
	PLUMB_PULL_FIELD("message", CALL, .read = read_message),
	{ 0 },
};

static void
read_reply(const struct plumb_http_answer *answer, struct reply *reply)
{
	struct plumb_pull pull;
	if (plumb_pull_open_text(&pull, answer->body, answer->bytes, NULL) < 0)
		return;
	PLUMB_PULL_WHOLE(&pull)
	plumb_pull_object(&pull, reply_fields, reply, NULL);
	plumb_pull_close(&pull);
}

static int
send_part(const struct plumb_otlp *otlp, const struct plumb_http_url *url, uint32_t from,
          uint32_t count, struct plumb_error *error)
{
	struct plumb_http_answer *answer = malloc(sizeof *answer);
	char *body = NULL;
	size_t bytes = 0;
	FILE *out = answer ? open_memstream(&body, &bytes) : NULL;
	int written = out ? plumb_otlp_write(otlp, from, count, out) : PLUMB_ESYSTEM;
	if (out)
		written |= fclose(out);
	struct reply reply = { 0 };
	int code;
	if (written)
		code = plumb_fail_memory(error, "to export the profile");
	else
		code = plumb_http_post(url, "application/json", body, bytes, answer, error);
	if (!code)
		read_reply(answer, &reply);
	if (!code && (answer->status < 200 || answer->status > 299))
		code = plumb_fail(error, PLUMB_ESYSTEM, "http%s://%s:%s%s answers %d %s%s%s",
		                  url->tls ? "s" : "", url->host, url->port, url->path,
		                  answer->status, answer->reason, *reply.message ? ": " : "",
		                  reply.message);
	else if (!code && reply.rejected > 0)
		code = plumb_fail(error, PLUMB_ESYSTEM,
		                  "http%s://%s:%s%s rejected %" PRId64 " of %u spans%s%s",
		                  url->tls ? "s" : "", url->host, url->port, url->path,
		                  reply.rejected, count, *reply.message ? ": " : "", reply.message);
	free(body);
	free(answer);
	return code;
}

int
plumb_send_spans(const struct plumb_profile *profile, const struct plumb_http_url *url,
                 struct plumb_error *error)
{
	struct plumb_error own = { 0 };
	struct plumb_otlp *otlp = plumb_otlp_new(profile, error);
	int code = 0;
	if (!otlp)
		return error ? error->code : PLUMB_ESYSTEM;
	for (uint32_t at = 0; at < profile->spans_count && !code; at += BATCH) {
		uint32_t left = profile->spans_count - at;
		code = send_part(otlp, url, at, left < BATCH ? left : BATCH, &own);
		if (code && at)
			plumb_fail(error, own.code, "%s (the collector took the %u spans before)",
			           own.message, at);
		else if (code)
			plumb_fail(error, own.code, "%s", own.message);
	}
	plumb_otlp_free(otlp);
	return code;
}
