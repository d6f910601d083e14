/* SPDX-License-Identifier: Apache-2.0 */
/* Names that are made short can still be told apart. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/columns.h"
#include "cli/fit.h"
#include "model/kernel_name.h"

enum { MOST = 1024 };

struct fitted {
	struct plumb_fit_name names[MOST];
	size_t count;
};

static void
add(struct fitted *f, const char *name, bool compact)
{
	assert_true(f->count < MOST);
	f->names[f->count++] = (struct plumb_fit_name){
		.name = strdup(name),
		.compact = compact ? plumb_kernel_name_compact(name) : NULL,
	};
}

static void
drop(struct fitted *f)
{
	for (size_t i = 0; i < f->count; i++) {
		free((char *)f->names[i].name);
		free((char *)f->names[i].compact);
	}
}

/* Fits the names and checks what holds for all. Count of those with a number at the end. */
static size_t
fit(struct fitted *f, int width)
{
	size_t numbered = 0;

	assert_true(plumb_fit_names(f->names, f->count, width));
	for (size_t i = 0; i < f->count; i++) {
		const struct plumb_fit_name *a = &f->names[i];
		if (plumb_columns(a->shown) > width)
			fail_msg("%s is wider than %d", a->shown, width);
		if (plumb_columns(a->name) <= width && strcmp(a->shown, a->name) &&
		    !strchr(a->shown, '#'))
			fail_msg("%s fits and is %s", a->name, a->shown);
		numbered += strchr(a->shown, '#') && !strchr(a->name, '#');
		for (size_t k = i + 1; k < f->count; k++) {
			const struct plumb_fit_name *b = &f->names[k];
			if (!strcmp(a->name, b->name) != !strcmp(a->shown, b->shown))
				fail_msg("in %d columns %s and %s are %s and %s", width, a->name,
				         b->name, a->shown, b->shown);
		}
	}
	return numbered;
}

static void
undo(struct fitted *f)
{
	for (size_t i = 0; i < f->count; i++)
		free(f->names[i].shown);
}

static void
shown(struct fitted *f, int width, const char *const *wanted)
{
	fit(f, width);
	for (size_t i = 0; i < f->count; i++)
		assert_string_equal(f->names[i].shown, wanted[i]);
	undo(f);
}

#define E "\xe2\x80\xa6"

static void
what_is_shared_is_cut(void **state)
{
	static struct fitted f;

	(void)state;
	add(&f, "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT16x32x512_MI16x16x1_SN_LDSB1",
	    true);
	add(&f, "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT32x32x256_MI16x16x1_SN_LDSB1",
	    true);
	shown(&f, 30,
	      (const char *const[]){ "Cijk_Alik" E "MT16x32x512_MI16x16" E,
	                             "Cijk_Alik" E "MT32x32x256_MI16x16" E });
	shown(&f, 20,
	      (const char *const[]){ "Cijk_A" E "MT16x32x512_" E, "Cijk_A" E "MT32x32x256_" E });
	drop(&f);
	f.count = 0;
	add(&f, "triton_red_fused_native_layer_norm_backward_12", false);
	add(&f, "triton_red_fused_native_layer_norm_backward_1", false);
	add(&f, "triton_poi_fused_add_3", false);
	shown(&f, 24,
	      (const char *const[]){ "triton_red_fused_nat" E "_12", "triton_red_fused_nati" E "_1",
	                             "triton_poi_fused_add_3" });
	drop(&f);
	f.count = 0;
	add(&f, "layers.0.self_attn.q_proj", false);
	add(&f, "layers.0.self_attn.k_proj", false);
	add(&f, "layers.10.self_attn.k_proj", false);
	shown(&f, 20,
	      (const char *const[]){ "layers.0.self" E "q_proj", "layers.0.self" E "k_proj",
	                             "layers.10.self" E "_proj" });
	drop(&f);
}

static void
the_functor_is_first(void **state)
{
	static struct fitted f;

	(void)state;
	add(&f,
	    "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, "
	    "std::array<char*, 1ul> >(int, at::native::FillFunctor<float>)",
	    true);
	add(&f,
	    "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<long>, "
	    "std::array<char*, 1ul> >(int, at::native::FillFunctor<long>)",
	    true);
	add(&f, "gemm(float*)", true);
	shown(&f, 32,
	      (const char *const[]){ "FillFunctor<float> (vectorized_" E,
	                             "FillFunctor<long> (vectorized_e" E, "gemm(float*)" });
	drop(&f);
}

/* What a compact name leaves out may be all that differs. */
static void
compact_names_that_are_the_same(void **state)
{
	static struct fitted f;

	(void)state;
	add(&f, "void one::kernels::vectorized_gather_kernel<16, long>(char*, char*, long*)", true);
	add(&f, "void two::kernels::vectorized_gather_kernel<16, long>(char*, char*, long*)", true);
	assert_int_equal(fit(&f, 40), 0);
	assert_non_null(strstr(f.names[0].shown, "one"));
	assert_non_null(strstr(f.names[1].shown, "two"));
	undo(&f);
	drop(&f);
}

/* Where nothing else helps, a number does. */
static void
numbers(void **state)
{
	static struct fitted f;
	char name[200];

	(void)state;
	for (int i = 0; i < 40; i++) {
		/* They differ in two places that are far from each other. */
		snprintf(name, sizeof name, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa%c%0100d%c",
		         'a' + i % 20, 0, 'a' + i / 20);
		add(&f, name, false);
	}
	for (int width = PLUMB_FIT_LEAST; width < 150; width++) {
		fit(&f, width);
		undo(&f);
	}
	drop(&f);
	f.count = 0;
	add(&f, "x#2", false); /* a name that looks like a number that was given */
	add(&f, "", false);
	add(&f, "", false);
	add(&f,
	    "\xe6\xbc\xa2\xe5\xad\x97\xe6\xbc\xa2\xe5\xad\x97\xe6\xbc\xa2\xe5\xad\x97\xe6\xbc\xa2"
	    "\xe5\xad\x97",
	    false); /* wide */
	add(&f,
	    "\xe6\xbc\xa2\xe5\xad\x97\xe6\xbc\xa2\xe5\xad\x97\xe6\xbc\xa2\xe5\xad\x97\xe6\xbc\xa2"
	    "\xe6\xbc\xa2",
	    false);
	add(&f, "\xff\xfe not UTF-8, and long enough to be cut somewhere", false);
	fit(&f, PLUMB_FIT_LEAST);
	undo(&f);
	drop(&f);
}

/* Kernels of many programs: every width, all of them and parts. Numbers are rare. */
static void
many_names(void **state)
{
	static struct fitted all, part;
	FILE *file = fopen("tests/data/kernel_names.txt", "r");
	char line[8192];
	uint32_t random = 1;

	(void)state;
	assert_non_null(file);
	while (fgets(line, sizeof line, file)) {
		line[strcspn(line, "\n")] = '\0';
		add(&all, line, true);
	}
	fclose(file);
	assert_true(all.count > 200);
	for (int width = 20; width <= 120; width += 5) {
		size_t numbered = fit(&all, width);
		if (numbered > all.count / (width < 30 ? 8 : 20))
			fail_msg("%zu of %zu names have a number in %d columns", numbered,
			         all.count, width);
		undo(&all);
	}
	for (int i = 0; i < 200; i++) {
		part.count = 0;
		for (int k = 0; k < 20; k++) {
			random = random * 1664525 + 1013904223;
			part.names[part.count++] = all.names[(random >> 8) % all.count];
		}
		fit(&part, 20 + (int)(random >> 16) % 60);
		undo(&part);
	}
	drop(&all);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_shared_is_cut),
		cmocka_unit_test(the_functor_is_first),
		cmocka_unit_test(compact_names_that_are_the_same),
		cmocka_unit_test(numbers),
		cmocka_unit_test(many_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
