/* SPDX-License-Identifier: Apache-2.0 */
#include <sqlite3.h>
#include <zstd.h>

#include "cli/cli.h"
#include "region/layout.h"
#include "store/store.h"
#include "view/render.h"

static const struct plumb_option options[] = {
	{ .name = "json", .kind = PLUMB_OPTION_FLAG, .help = "write JSON" },
	{ 0 },
};

int
plumb_cmd_version(struct plumb_invocation *invocation)
{
	struct plumb_json *json;

	if (!plumb_options_flag(invocation->options, "json")) {
		fprintf(invocation->out,
		        "plumb %s\nprofile schema %d, region version %d, SQLite %s, zstd %s\n",
		        PLUMB_VERSION, PLUMB_STORE_SCHEMA, PLUMB_REGION_VERSION,
		        sqlite3_libversion(), ZSTD_versionString());
		return PLUMB_EXIT_DONE;
	}
	json = plumb_view_json_new(invocation->out, "version");
	plumb_json_key_text(json, "version", PLUMB_VERSION);
	plumb_json_key_quantity(json, "profile_schema", PLUMB_STORE_SCHEMA);
	plumb_json_key_quantity(json, "region_version", PLUMB_REGION_VERSION);
	plumb_json_key_text(json, "sqlite", sqlite3_libversion());
	plumb_json_key_text(json, "zstd", ZSTD_versionString());
	plumb_json_end(json);
	return plumb_json_finish(json) < 0 ? PLUMB_EXIT_SYSTEM : PLUMB_EXIT_DONE;
}

static const char *const examples[] = {
	"plumb version --json",
	"the same as JSON",
	NULL,
};

const struct plumb_verb plumb_verb_version = {
	.name = "version",
	.summary = "print the version of plumb and of what it was built with",
	.synopsis = "",
	.options = options,
	.examples = examples,
	.run = plumb_cmd_version,
};
