/* SPDX-License-Identifier: Apache-2.0 */
/* The table of hardware counters against the lists of metrics that CUPTI has by chip. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/counters.h"

static const char *const chips[PLUMB_COUNTER_FAMILIES] = {
	[PLUMB_COUNTER_TURING] = "TU102",          [PLUMB_COUNTER_AMPERE] = "GA100",
	[PLUMB_COUNTER_AMPERE_SMALL] = "GA102",    [PLUMB_COUNTER_ADA] = "AD102",
	[PLUMB_COUNTER_HOPPER] = "GH100",          [PLUMB_COUNTER_BLACKWELL] = "GB100",
	[PLUMB_COUNTER_BLACKWELL_SMALL] = "GB202",
};

/* Is the metric NAME, before its dot, in the recorded list of CHIP? */
static bool
is_listed(const char *chip, const char *name, size_t length)
{
	char line[256], wanted[256];
	FILE *file = fopen("tests/data/counters.txt", "r");
	bool found = false;

	assert_non_null(file);
	snprintf(wanted, sizeof wanted, "%s %.*s\n", chip, (int)strcspn(name, "."), name);
	assert_true(strcspn(name, ".") < length);
	while (!found && fgets(line, sizeof line, file))
		found = !strcmp(line, wanted);
	fclose(file);
	return found;
}

static void
test_chips_have_the_metrics(void **state)
{
	(void)state;
	assert_false(is_listed("GB202", "dram__bytes_read.sum", 20));
	for (const struct plumb_counter *c = plumb_counters; c->name; c++)
		for (int family = 0; family < PLUMB_COUNTER_FAMILIES; family++) {
			struct plumb_counter_term term;
			const char *at = c->expressions[family];
			unsigned terms = 0;
			assert_non_null(at);
			for (; plumb_counter_term(&at, &term); terms++)
				if (!is_listed(chips[family], term.name, term.length))
					fail_msg("%s has no %.*s", chips[family], (int)term.length,
					         term.name);
			assert_in_range(terms, 1, 12);
		}
}

static void
test_families(void **state)
{
	(void)state;
	for (int family = 0; family < PLUMB_COUNTER_FAMILIES; family++)
		assert_int_equal(plumb_counter_family(chips[family]), family);
	assert_int_equal(plumb_counter_family("GA104"), PLUMB_COUNTER_AMPERE_SMALL);
	assert_int_equal(plumb_counter_family("gb203"), PLUMB_COUNTER_BLACKWELL_SMALL);
	assert_int_equal(plumb_counter_family("GV100"), PLUMB_COUNTER_FAMILIES);
	assert_int_equal(plumb_counter_family(""), PLUMB_COUNTER_FAMILIES);
}

static void
test_expressions(void **state)
{
	struct plumb_counter_term term;
	const char *at = "a__b.sum + 2*c__d.avg + 10000*e__f.pct";

	(void)state;
	assert_true(plumb_counter_term(&at, &term));
	assert_true(term.factor == 1 && term.length == 8 && !memcmp(term.name, "a__b.sum", 8));
	assert_true(plumb_counter_term(&at, &term));
	assert_true(term.factor == 2 && term.length == 8 && !memcmp(term.name, "c__d.avg", 8));
	assert_true(plumb_counter_term(&at, &term));
	assert_true(term.factor == 10000 && term.length == 8);
	assert_false(plumb_counter_term(&at, &term));
	assert_string_equal(plumb_counter_find("dram_read_bytes", 15)->unit, "byte");
	assert_null(plumb_counter_find("dram_read_bytes", 14));
}

static void
test_names_and_lists(void **state)
{
	const char *at = "roofline,,x", *name;
	size_t length;

	(void)state;
	assert_true(plumb_counter_is_foreign("dram__bytes_read.sum", 20));
	assert_false(plumb_counter_is_foreign("dram__bytes_read", 16));
	assert_false(plumb_counter_is_foreign("__x.sum", 7));
	assert_false(plumb_counter_is_foreign("dram_bytes.sum", 14));
	assert_false(plumb_counter_is_foreign("dram__bytes read.sum", 20));
	assert_false(plumb_counter_is_foreign("", 0));
	assert_true(plumb_counter_listed(&at, &name, &length));
	assert_int_equal(length, 8);
	assert_true(plumb_counter_listed(&at, &name, &length));
	assert_int_equal(length, 0);
	assert_true(plumb_counter_listed(&at, &name, &length));
	assert_true(length == 1 && *name == 'x');
	assert_false(plumb_counter_listed(&at, &name, &length));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_chips_have_the_metrics),
		cmocka_unit_test(test_families),
		cmocka_unit_test(test_expressions),
		cmocka_unit_test(test_names_and_lists),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
