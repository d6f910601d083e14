/* SPDX-License-Identifier: Apache-2.0 */
/* Names of functions as people write them. The symbols were made by GCC, hipcc and rustc. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/demangle.h"

static void
check(const char *symbol, const char *wanted)
{
	char *text = plumb_demangle(symbol);

	if (wanted) {
		assert_non_null(text);
		assert_string_equal(text, wanted);
	} else {
		assert_null(text);
	}
	free(text);
}

static void
names_of_cpp(void **state)
{
	(void)state;
	check("_Z4axpyPfi", "axpy(float*, int)");
	check("_Z1fi [clone .isra.0]", "f(int) [clone .isra.0]");
	check("_Z4axpyPfi.kd", "axpy(float*, int)");
	check("_Z9quantizedIDF16bLi64EEvPT_", "void quantized<__bf16, 64>(__bf16*)");
	check("_Z4halfIDF16_EvPT_DF16b", "void half<_Float16>(_Float16*, __bf16)");
	check("main", NULL);
	check("i", NULL);
}

static void
names_of_older_rust(void **state)
{
	(void)state;
	check("_ZN5alone6solver4step17h2e29a57dc0719003E", "alone::solver::step");
	check("_ZN70_$LT$alone..solver..Field$LT$T$GT$$u20$as$u20$alone..solver..Relax$GT$5relax"
	      "17h964c64c95082c2e3E",
	      "<alone::solver::Field<T> as alone::solver::Relax>::relax");
	check("_ZN3std2rt10lang_start28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcdefE.llvm.42",
	      "std::rt::lang_start::{{closure}}");
	/* C++ with a function that is called like a hash, but not where a hash is */
	check("_ZN17h0123456789abcdef1fEv", "h0123456789abcdef::f()");
	check("_ZN3foo17h0123456789abcdefEv", "foo::h0123456789abcdef()");
}

static void
names_of_newer_rust(void **state)
{
	(void)state;
	check("_RNvNtCsdJXrpt64QQy_5alone6solver4step", "alone::solver::step");
	check("_RNvXNtCsdJXrpt64QQy_5alone6solverINtB2_5FieldfENtB2_5Relax5relaxB4_",
	      "<alone::solver::Field<f32> as alone::solver::Relax>::relax");
	check("_RNvMsr_NtCs3ssYzQotkvD_3std4pathNtB5_7PathBuf3newCs15kBYyAo9fc_7mycrate",
	      "<std::path::PathBuf>::new");
	check("_RNCNvCsgStHSCytQ6I_7mycrate4main0B3_", "mycrate::main::{closure#0}");
	check("_RNCNCINvCs1_1a1fpE00B5_", "a::f::<_>::{closure#0}::{closure#0}");
	check("_RINvCs1_1a1fKj8_Kb1_Kc41_Klna_E", "a::f::<8, true, 'A', -10>");
	check("_RINvCs1_1a1fRShQDNtNtC3std2io5WriteEL_TlxETEPuE",
	      "a::f::<&[u8], &mut dyn std::io::Write, (i32, i64), (), *const ()>");
	check("_RINvCs1_1a1fFUKChEuFEmAtj4_E",
	      "a::f::<unsafe extern \"C\" fn(u8), fn() -> u32, [u16; 4]>");
	check("_RINvCs1_1a1fFG_RL0_hEL0_E", NULL); /* a lifetime that nothing names */
	check("_RINvCs1_1a1fRL0_hE", NULL);
	check("_RINvCs1_1a1fFG_RL0_hEuE", "a::f::<for<'a> fn(&'a u8)>");
	check("_RNvCs1_1au8gdel_5qa", "a::g\xc3\xb6"
	                              "del");
}

/* What a damaged or hostile name may do is to be shown as it is. */
static void
damaged_names(void **state)
{
	static const char whole[] =
		"_RNvXNtCsdJXrpt64QQy_5alone6solverINtB2_5FieldfENtB2_5Relax5relaxB4_";
	char text[4096];

	(void)state;
	check("_R", NULL);
	check("_RNvC1a999999999999999999999b", NULL);
	check("_RNvB_1a", NULL); /* refers to itself */
	check("_RNvC1a1b with more", NULL);
	for (size_t length = 2; length + 2 < sizeof whole; length++) {
		snprintf(text, sizeof text, "%.*s", (int)length, whole);
		free(plumb_demangle(text));
	}
	memset(text, 'S', sizeof text - 1); /* [[[[… */
	memcpy(text, "_RINvC1a1f", 10);
	text[sizeof text - 1] = '\0';
	check(text, NULL);
	/* Each reference doubles the name. */
	snprintf(text, sizeof text, "_RINvC1a1fTxxE");
	for (unsigned at = 8, i = 0; i < 60; i++) {
		size_t used = strlen(text);
		static const char digits[] =
			"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
		char back[8];
		unsigned number = at - 1;

		if (number < 62)
			snprintf(back, sizeof back, "B%c_", digits[number]);
		else
			snprintf(back, sizeof back, "B%c%c_", digits[number / 62],
			         digits[number % 62]);
		snprintf(text + used, sizeof text - used, "T%s%sE", back, back);
		at = (unsigned)used - 2;
	}
	strcat(text, "E");
	check(text, NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_of_cpp),
		cmocka_unit_test(names_of_older_rust),
		cmocka_unit_test(names_of_newer_rust),
		cmocka_unit_test(damaged_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
