/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The other end is python/plumb/rules.py. It answers on a pipe, line by line, fields parted by tabs
 * (a tab, newline and backslash in a field are \t, \n, \\):
 *
 *	F <context or -> <ordinal> <severity> <saving or -> <confidence or -> <rule> <title>
 *	  <advice> <evidence>
 *	E <message>       the rule failed
 *	D                 the end: everything was said
 */
#include "cli/rules.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analyze/analyze.h"
#include "base/json.h"
#include "base/vec.h"
#include "cli/run/probe.h"

#define MOST_BYTES ((size_t)64 * 1024 * 1024)
#define FIELDS 10

/* Where the package may be, seen from the program's folder: in a wheel, beside a build folder of
 * the source tree, in an installation. */
static const char *const places[] = { "/../..", "/../python", "/../../python", "/python" };

/* Runs with -I: nothing of the current folder, the rule's folder, PYTHONPATH or the user's own
 * site-packages can be imported. Only the package itself is taken from where this program lies; of
 * a wheel also what is installed beside it, after the interpreter's own modules. */
static const char start[] =
	"import sys\n"
	"folder, site = sys.argv[1:3]\n"
	"del sys.argv[1:3]\n"
	"if site:\n"
	"    sys.path.append(site)\n"
	"try:\n"
	"    if folder:\n"
	"        from importlib import util\n"
	"        spec = util.spec_from_file_location('plumb', folder + '/plumb/__init__.py',\n"
	"            submodule_search_locations=[folder + '/plumb'])\n"
	"        package = sys.modules['plumb'] = util.module_from_spec(spec)\n"
	"        spec.loader.exec_module(package)\n"
	"    from plumb.rules import main\n"
	"except (ImportError, OSError):\n"
	"    import os\n"
	"    os.write(int(sys.argv[3]), b'E\\tthis Python has no package plumb with '\n"
	"             b'rules; install plumb-profiler, or name a Python that has it '\n"
	"             b'with PLUMB_PYTHON\\n')\n"
	"    sys.exit(2)\n"
	"main(*sys.argv[1:4])\n";

/* ---- running it ---- */

struct package {
	char folder[PATH_MAX]; /* empty: there is none beside this program */
	bool wheel;
};

/* Does FILE belong to the owner of this program, to root or to us? Another user may have put it
 * there. */
static bool
is_trusted(const char *file)
{
	struct stat own, status;

	return stat(file, &status) == 0 && S_ISREG(status.st_mode) && access(file, R_OK) == 0 &&
	       (status.st_uid == 0 || status.st_uid == geteuid() ||
	        (stat("/proc/self/exe", &own) == 0 && status.st_uid == own.st_uid));
}

static void
find_package(struct package *package)
{
	char own[PATH_MAX], file[PATH_MAX + 64];
	ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);

	*package = (struct package){ 0 };
	if (length <= 0)
		return;
	own[length] = '\0';
	*strrchr(own, '/') = '\0';
	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		int size = snprintf(file, sizeof file, "%s%s/plumb/rules.py", own, places[i]);

		if (size >= (int)sizeof file || !is_trusted(file))
			continue;
		package->wheel = i == 0;
		if (snprintf(package->folder, PATH_MAX, "%s%s", own, places[i]) < PATH_MAX)
			return;
		package->folder[0] = '\0';
	}
}

/* In the child: becomes Python. Comes back with errno when that cannot be. */
static void
become_python(const char *python, const struct package *package, const char *path, const char *rule,
              int pipe)
{
	char number[16];
	const char *beside = package->wheel ? package->folder : "";
	const char *argv[] = { python, "-I", "-c", start,  package->folder,
		               beside, path, rule, number, NULL };
	int nothing = open("/dev/null", O_RDONLY);

	snprintf(number, sizeof number, "%d", pipe);
	if (nothing >= 0)
		dup2(nothing, 0);
	dup2(2, 1); /* standard output is the report's */
	plumb_probe_become(argv);
}

static int
read_all(int fd, char **text, size_t *bytes, struct plumb_error *error)
{
	FILE *in = fdopen(fd, "r"), *out = in ? open_memstream(text, bytes) : NULL;
	char piece[65536];
	size_t got, whole = 0;

	if (!out) {
		if (in)
			fclose(in);
		else
			close(fd);
		return plumb_fail_memory(error, "for the rule");
	}
	while ((got = fread(piece, 1, sizeof piece, in)) > 0) {
		whole += got;
		if (whole <= MOST_BYTES)
			fwrite(piece, 1, got, out);
	}
	fclose(in);
	if (fclose(out))
		return plumb_fail_memory(error, "for the rule");
	if (whole > MOST_BYTES)
		return plumb_fail(error, PLUMB_EINPUT, "the rule flagged more than plumb keeps");
	return 0;
}

/* What Python says of RULE into *TEXT, malloced. */
static int
ask_python(const char *path, const char *rule, char **text, struct plumb_error *error)
{
	const char *named = getenv("PLUMB_PYTHON");
	const char *python = named && *named ? named : "python3";
	struct package package;
	int ends[2], status = 0, result;
	size_t bytes = 0;
	pid_t child;

	find_package(&package);
	if (pipe2(ends, O_CLOEXEC) != 0)
		return plumb_fail_errno(error, "cannot run %s", python);
	fflush(NULL);
	child = fork();
	if (child == 0) {
		fcntl(ends[1], F_SETFD, 0);
		become_python(python, &package, path, rule, ends[1]);
		_exit(errno == ENOENT ? 127 : 126);
	}
	close(ends[1]);
	if (child < 0) {
		close(ends[0]);
		return plumb_fail_errno(error, "cannot run %s", python);
	}
	result = read_all(ends[0], text, &bytes, error);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		continue;
	if (result < 0)
		return result;
	if (WIFEXITED(status) && (WEXITSTATUS(status) == 127 || WEXITSTATUS(status) == 126) &&
	    !bytes)
		return plumb_fail(error, PLUMB_ESYSTEM,
		                  "cannot run %s for the rule %s; name a Python with PLUMB_PYTHON",
		                  python, rule);
	if (WIFSIGNALED(status))
		return plumb_fail(error, PLUMB_EINPUT, "the rule %s: %s was ended by signal %d",
		                  rule, python, WTERMSIG(status));
	return 0;
}

/* ---- reading what it says ---- */

/* Splits LINE at its tabs and undoes the escapes, in place. Returns the number of fields. */
static int
split_fields(char *line, char *fields[FIELDS])
{
	char *to = line;
	int count = 1;

	fields[0] = line;
	for (const char *from = line; *from; from++) {
		if (*from == '\t') {
			*to++ = '\0';
			if (count == FIELDS)
				return FIELDS + 1;
			fields[count++] = to;
		} else if (*from == '\\' && from[1]) {
			from++;
			*to++ = *from == 't' ? '\t' : *from == 'n' ? '\n' : *from;
		} else {
			*to++ = *from;
		}
	}
	*to = '\0';
	return count;
}

typedef PLUMB_VEC(struct plumb_finding_text) findings;

static bool
add_finding(const struct plumb_profile *profile, char *fields[FIELDS], findings *list)
{
	struct plumb_finding_text *row = plumb_vec_add(list);
	bool whole = !strcmp(fields[1], "-");
	char id[PLUMB_FINDING_ID], key[PLUMB_FINDING_ID + 16];

	if (!row)
		return false;
	row->context = whole ? 0 : (uint32_t)strtoul(fields[1], NULL, 10);
	row->severity = (uint32_t)strtoul(fields[3], NULL, 10);
	row->saving_ns = strcmp(fields[4], "-") ? strtoll(fields[4], NULL, 10) : PLUMB_UNKNOWN;
	row->confidence = strcmp(fields[5], "-") ? strtod(fields[5], NULL) : NAN;
	row->rule = fields[6];
	row->title = fields[7];
	row->advice = *fields[8] ? fields[8] : NULL;
	row->evidence = plumb_json_valid(fields[9]) ? fields[9] : NULL;
	/* The order tells several flags of one place apart. */
	plumb_finding_id(id, profile, "rule", row->rule, NULL, row->context);
	if (strcmp(fields[2], "0")) {
		snprintf(key, sizeof key, "%s %.12s", id, fields[2]);
		plumb_finding_id(id, profile, "rule", row->rule, key, row->context);
	}
	row->id = strdup(id);
	return row->id != NULL;
}

static int
read_answer(struct plumb_profile *profile, const char *rule, char *text, struct plumb_error *error)
{
	char *fields[FIELDS], *save = NULL;
	findings list = { 0 };
	bool done = false, ok = true;
	int code = 0;

	for (char *line = strtok_r(text, "\n", &save); line && ok && !code;
	     line = strtok_r(NULL, "\n", &save)) {
		int count = split_fields(line, fields);

		if (!strcmp(fields[0], "E") && count == 2)
			code = plumb_fail(error, PLUMB_EINPUT, "%.900s", fields[1]);
		else if (!strcmp(fields[0], "D"))
			done = true;
		else if (!strcmp(fields[0], "F") && count == FIELDS)
			ok = add_finding(profile, fields, &list);
	}
	if (!ok)
		code = plumb_fail_memory(error, "for the findings");
	else if (!code && !done)
		code = plumb_fail(error, PLUMB_EINPUT,
		                  "the rule %s ended before it was done; see the lines above",
		                  rule);
	if (!code)
		code = plumb_findings_add(profile, list.items, list.count, error);
	for (uint32_t i = 0; i < list.count; i++)
		free((char *)list.items[i].id);
	plumb_vec_free(&list);
	return code;
}

static int
run_rule(struct plumb_profile *profile, const char *path, const char *rule,
         struct plumb_error *error)
{
	char *text = NULL;
	int code;

	if (access(rule, R_OK) != 0) {
		plumb_fail_errno(error, "cannot read the rule %s", rule);
		return error->code = PLUMB_EINPUT;
	}
	code = ask_python(path, rule, &text, error);
	if (!code)
		code = read_answer(profile, rule, text, error);
	free(text);
	return code;
}

int
plumb_rules_run(struct plumb_profile *profile, const char *path, const char *rules,
                struct plumb_error *error)
{
	char *list = strdup(rules), *save = NULL;
	int code = 0;

	if (!list)
		return plumb_fail_memory(error, "for the rules");
	for (char *rule = strtok_r(list, ",", &save); rule && !code;
	     rule = strtok_r(NULL, ",", &save))
		code = run_rule(profile, path, rule, error);
	free(list);
	return code;
}
