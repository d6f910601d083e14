/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs. A new one is a file with a `const struct plumb_verb`, and a row here. */
#include "cli/cli.h"
#include "cli/terminal.h"

static const struct plumb_verb *const verbs[] = {
	&plumb_verb_run,      &plumb_verb_report,  &plumb_verb_iters,
	&plumb_verb_tables,   &plumb_verb_levels,  &plumb_verb_why,
	&plumb_verb_traffic,  &plumb_verb_diff,    &plumb_verb_view,
	&plumb_verb_export,   &plumb_verb_settle,  &plumb_verb_import,
	&plumb_verb_doctor,   &plumb_verb_version, &plumb_verb_help,
	&plumb_verb_generate, &plumb_verb_session, NULL,
};

int
main(int argc, char **argv)
{
	return plumb_cli_main(verbs, argc, argv, plumb_terminal_filter(stdout),
	                      plumb_terminal_filter(stderr));
}
