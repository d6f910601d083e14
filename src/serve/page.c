/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/page.h"

#include "base/base64.h"
#include "base/sha256.h"
#include "base/utf8.h"
#include "serve/serve.h"

const char *
plumb_page_missing(void)
{
	return plumb_bundle.script ? NULL
	                           : "this plumb was built without its page; install Node.js and "
	                             "npm, run \"make web\", then \"make\"";
}

static char *
hash(const char *data, size_t bytes, char *text)
{
	unsigned char digest[PLUMB_SHA256_BYTES];

	plumb_sha256(data, bytes, digest);
	return plumb_base64(digest, sizeof digest, false, text);
}

char *
plumb_page_policy(bool served, char text[PLUMB_POLICY_SIZE])
{
	char script[PLUMB_BASE64_SIZE(PLUMB_SHA256_BYTES)];
	char style[PLUMB_BASE64_SIZE(PLUMB_SHA256_BYTES)];

	hash(plumb_bundle.script, plumb_bundle.script_bytes, script);
	hash(plumb_bundle.style, plumb_bundle.style_bytes, style);
	snprintf(text, PLUMB_POLICY_SIZE,
	         "default-src 'none'; script-src 'sha256-%s'; style-src 'sha256-%s'; img-src "
	         "data:; %sbase-uri 'none'; form-action 'none'",
	         script, style, served ? "connect-src 'self'; " : "");
	return text;
}

void
plumb_page_text(const char *text, FILE *out)
{
	for (; *text; text++)
		switch (*text) {
		case '<':
			fputs("&lt;", out);
			break;
		case '>':
			fputs("&gt;", out);
			break;
		case '&':
			fputs("&amp;", out);
			break;
		case '"':
			fputs("&quot;", out);
			break;
		default:
			fputc(*text, out);
		}
}

void
plumb_page_begin(const char *title, bool served, FILE *out)
{
	char policy[PLUMB_POLICY_SIZE];

	fputs("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n", out);
	fputs(PLUMB_PAGE_MARK "\n<meta http-equiv=\"Content-Security-Policy\" content=\"", out);
	plumb_page_text(plumb_page_policy(served, policy), out);
	fputs("\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
	      "<meta name=\"referrer\" content=\"no-referrer\">\n<link rel=\"icon\" "
	      "href=\"data:,\">\n<title>",
	      out);
	plumb_page_text(title, out);
	fputs("</title>\n<style>", out);
	fwrite(plumb_bundle.style, 1, plumb_bundle.style_bytes, out);
	fputs("</style>\n</head>\n<body>\n<div id=\"plumb\"></div>\n<noscript>This page needs "
	      "JavaScript.</noscript>\n",
	      out);
}

void
plumb_page_end(FILE *out)
{
	fputs("<script type=\"module\">", out);
	fwrite(plumb_bundle.script, 1, plumb_bundle.script_bytes, out);
	fputs("</script>\n</body>\n</html>\n", out);
}
