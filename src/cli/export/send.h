/* SPDX-License-Identifier: Apache-2.0 */
/* A profile's spans to an OpenTelemetry collector, by OTLP/HTTP as JSON. */
#ifndef PLUMB_CLI_EXPORT_SEND_H
#define PLUMB_CLI_EXPORT_SEND_H

#include "cli/export/http.h"
#include "model/profile.h"

/* "http://host[:4318][/v1/traces]" */
int plumb_send_url(struct plumb_http_url *url, const char *text,
                   struct plumb_error *error) PLUMB_MUST_CHECK;
/* Sends all spans, in as many requests as needed. The error says how many the collector had
 * accepted before it. */
int plumb_send_spans(const struct plumb_profile *profile, const struct plumb_http_url *url,
                     struct plumb_error *error) PLUMB_MUST_CHECK;

#endif
