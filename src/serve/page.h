/* SPDX-License-Identifier: Apache-2.0 */
/* The page: the bundle's style and script in one HTML document, and a policy that allows these and
 * nothing else. It is the same page for a server and for one file. Private to serve/. */
#ifndef PLUMB_SERVE_PAGE_H
#define PLUMB_SERVE_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/error.h"

/* What web/ was built into. The build makes it. */
struct plumb_bundle {
	const char *script, *style; /* NULL: plumb was built without it */
	size_t script_bytes, style_bytes;
};
extern const struct plumb_bundle plumb_bundle;

#define PLUMB_POLICY_SIZE 400
/* The content security policy. SERVED: the page may ask its own server. FRAME: it may say who may
 * frame it, which only a header can. Returns TEXT. */
char *plumb_page_policy(bool served, char text[PLUMB_POLICY_SIZE]);

/* Writes the head of the page up to its body, and the end with the script. What lies between the
 * two is data. TITLE is any text. */
void plumb_page_begin(const char *title, bool served, FILE *out);
void plumb_page_end(FILE *out);

/* By this in its first bytes a page is known. */
#define PLUMB_PAGE_MARK "<meta name=\"generator\" content=\"plumb view\">"

/* TEXT as HTML shows it. */
void plumb_page_text(const char *text, FILE *out);

#endif
