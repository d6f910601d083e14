/* SPDX-License-Identifier: Apache-2.0 */
/* Reading code objects, of this very program and of one made here; losing the child that reads. */
#include <dirent.h>
#include <fcntl.h>
#include <link.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "settle/symbolizer.h"

static char folder[64];

static int
setup(void **state)
{
	(void)state;
	snprintf(folder, sizeof folder, "/tmp/plumb-symbols-XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int
teardown(void **state)
{
	char command[128];

	(void)state;
	plumb_code_debug_folder = "/usr/lib/debug";
	snprintf(command, sizeof command, "rm -rf %s", folder);
	return system(command);
}

static void
shell(const char *format, ...)
{
	char command[1024], all[1200];
	va_list args;

	va_start(args, format);
	vsnprintf(command, sizeof command, format, args);
	va_end(args);
	snprintf(all, sizeof all, "cd %s && { %s; }", folder, command);
	if (system(all))
		fail_msg("failed: %s", command);
}

/* A program with one function, `answer`, whose body is on line 3. */
static void
compile(const char *options)
{
	char path[128];
	FILE *source;

	snprintf(path, sizeof path, "%s/one.c", folder);
	source = fopen(path, "w");
	assert_non_null(source);
	fputs("int answer(int x)\n{\n\treturn x * 42;\n}\n"
	      "int main(int argc, char **argv)\n{\n\t(void)argv;\n\treturn answer(argc);\n}\n",
	      source);
	fclose(source);
	shell("gcc -O0 -Wl,--build-id=0x0123456789abcdef01234567 %s -o one one.c", options);
}

static uint64_t
address_of(const char *program, const char *name)
{
	char command[256];
	unsigned long address = 0;
	FILE *pipe;

	snprintf(command, sizeof command, "nm %s/%s | sed -n 's/ [Tt] %s$//p'", folder, program,
	         name);
	pipe = popen(command, "r");
	assert_non_null(pipe);
	assert_int_equal(fscanf(pipe, "%lx", &address), 1);
	pclose(pipe);
	return address;
}

static struct plumb_code_wanted
wanted(const char *name)
{
	static char paths[8][128];
	static unsigned next;
	char *path = paths[next++ % 8];
	struct plumb_code_wanted made = {
		.path = path,
		.build_id = { 0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0x01, 0x23, 0x45,
		              0x67 },
		.build_id_bytes = 12,
	};

	snprintf(path, sizeof paths[0], "%s/%s", folder, name);
	return made;
}

/* ---- one object ---- */

static struct plumb_code *
open_code(const char *name)
{
	struct plumb_code_wanted one = wanted(name);
	enum plumb_code_state state;
	struct plumb_code *code = plumb_code_open(&one, &state);

	assert_int_equal(state, PLUMB_CODE_FINE);
	return code;
}

static void
test_debug_file_in_the_build_id_folder(void **state)
{
	struct plumb_code_place place;
	struct plumb_code_facts facts;
	struct plumb_code *code;
	char debug[128];

	(void)state;
	compile("-g");
	uint64_t address = address_of("one", "answer");
	shell("mkdir -p debug/.build-id/01 && objcopy --only-keep-debug one "
	      "debug/.build-id/01/23456789abcdef01234567.debug && strip one");
	snprintf(debug, sizeof debug, "%s/debug", folder);

	code = open_code("one");
	plumb_code_look(code, address, &place);
	assert_null(place.symbol);
	assert_int_equal(place.count, 0);
	plumb_code_close(code);

	plumb_code_debug_folder = debug;
	code = open_code("one");
	plumb_code_look(code, address, &place);
	assert_string_equal(place.symbol, "answer");
	assert_true(place.bounded);
	assert_int_equal(place.start, address);
	assert_int_equal(place.count, 1);
	assert_string_equal(place.frames[0].name, "answer");
	assert_int_equal(place.frames[0].line, 2);
	plumb_code_facts(code, &facts);
	assert_true(facts.lines && !facts.fetched);
	assert_true(facts.functions >= 2);
	assert_non_null(strstr(facts.debug, "/.build-id/01/23456789abcdef01234567.debug"));
	plumb_code_close(code);

	/* One of another program there is left alone. */
	shell("gcc -g -Wl,--build-id=0xffffffff -o other one.c && objcopy --only-keep-debug other "
	      "debug/.build-id/01/23456789abcdef01234567.debug");
	code = open_code("one");
	plumb_code_look(code, address, &place);
	assert_null(place.symbol);
	plumb_code_close(code);
}

static void
test_the_functions_of_this_program(void **state)
{
	struct plumb_code_wanted own = { .path = "/proc/self/exe" };
	enum plumb_code_state opened;
	struct plumb_code *code = plumb_code_open(&own, &opened);
	struct plumb_code_place place;
	Dl_info info;
	struct link_map *map = NULL;

	(void)state;
	assert_non_null(code);
	assert_true(dladdr1((void *)(uintptr_t)test_the_functions_of_this_program, &info,
	                    (void **)&map, RTLD_DL_LINKMAP));
	plumb_code_look(code, (uintptr_t)test_the_functions_of_this_program - map->l_addr, &place);
	assert_string_equal(place.symbol, __func__);
	assert_true(place.count == 0 || !strcmp(place.frames[0].name, __func__));
	plumb_code_close(code);
}

static void
test_versions_of_symbols_are_left_out(void **state)
{
	struct plumb_code_place place;
	struct plumb_code *code;

	(void)state;
	compile("");
	uint64_t address = address_of("one", "answer");
	shell("objcopy --redefine-sym answer=answer@@V_1 one");
	code = open_code("one");
	plumb_code_look(code, address, &place);
	assert_string_equal(place.symbol, "answer");
	plumb_code_close(code);
}

/* ---- operators ---- */

/* A library like PyTorch's: functions and schemas. One text is the end of another, as a linker
 * makes it. */
static void
compile_operators(void)
{
	static const char *const functions[] = {
		"_ZN2at4_ops10add_Tensor4callERKNS_6TensorE",
		"_ZN2at4_ops10add_Tensor10redispatchEN3c1014DispatchKeySetE",
		"_ZN2at4_ops11add__Tensor4callEv",
		"_ZN2at4_ops18_foreach_add__List4callEv",
		"_ZN2at4_ops5relu_4callEv",
		"_ZN2at4_ops12index_Tensor4callEv",
		"_ZN2at4_ops7unknown4callEv",
		"_ZN2at4_ops10add_Tensor4nameEv",
		"_ZN2at4_ops99add_Tensor4callEv",
		"_ZN2at6native3addEv",
		"_ZN4c10d12ProcessGroup9allreduceERSt6vectorE",
		"_ZN4c10d12ProcessGroup7barrierEv",
		"_ZN3c104impl31make_boxed_from_unboxed_functorIXadL_ZNS5_12_GLOBAL__N_117wrapper_"
		"CPU_addmmES8_EEELb0EE4callEv",
		"_ZN3c104impl31make_boxed_from_unboxed_functorIXadL_ZNS5_12_GLOBAL__N_122wrapper_"
		"CPU_add_TensorES8_EEELb0EE4callEv",
		"_ZN3c104impl31make_boxed_from_unboxed_functorIXadL_ZNS5_12_GLOBAL__N_125wrapper_"
		"CPU_addmm_out_outES8_EEELb0EE4callEv",
		"_ZN3c104impl31make_boxed_from_unboxed_functorIXadL_ZNS5_12_GLOBAL__N_143wrapper_"
		"CompositeExplicitAutograd___to_copyES8_EEELb0EE4callEv",
		"_ZN3c104impl31make_boxed_from_unboxed_functorIXadL_ZNS5_12_GLOBAL__N_131wrapper_"
		"CUDA_Tensor_out_sub_outES8_EEELb0EE4callEv",
		"_ZN3c104impl31make_boxed_from_unboxed_functorIXadL_ZN12mine9something_EEE4callEv",
	};
	char path[128];
	FILE *source;

	snprintf(path, sizeof path, "%s/operators.c", folder);
	source = fopen(path, "w");
	assert_non_null(source);
	fputs("const char schemas[] =\n", source);
	for (size_t i = 0; i < 8; i++)
		fprintf(source, "\t\"\\0%s\"\n",
		        (const char *[]){
				"add.Tensor(Tensor self, Tensor other) -> Tensor",
				"aten::add_.Tensor(Tensor(a!) self) -> Tensor(a!)",
				"_foreach_add_.List(Tensor(a!)[] self) -> ()",
				"relu_(Tensor(a!) self) -> Tensor(a!)",
				"_unsafe_index.Tensor(Tensor self) -> Tensor",
				"addmm.out(Tensor self) -> Tensor\\0addmm(Tensor x) -> Tensor",
				"_to_copy(Tensor self) -> Tensor",
				"sub.Tensor_out(Tensor self) -> Tensor" }[i]);
	fputs("\t\"\\0not a schema (at all)\";\n", source);
	for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
		fprintf(source, "void f%zu(void) __asm__(\"%s\");\nvoid f%zu(void) {}\n", i,
		        functions[i], i);
	fclose(source);
	shell("gcc -shared -fPIC -O1 -Wl,--build-id=0x0123456789abcdef01234567 -o operators.so "
	      "operators.c");
}

/* The operator that the function with this symbol runs; "" for none. */
static const char *
operator_of(struct plumb_symbolizer *symbolizer, uint32_t object, const char *symbol,
            bool redispatch)
{
	static struct plumb_code_place place;

	assert_int_equal(plumb_symbolizer_operator(symbolizer, object,
	                                           address_of("operators.so", symbol), &place),
	                 PLUMB_CODE_FINE);
	assert_string_equal(place.symbol, symbol);
	assert_int_equal(place.redispatch, redispatch);
	return place.operation ? place.operation : "";
}

static void
test_operators_of_functions(void **state)
{
	static const char boxed[] =
		"_ZN3c104impl31make_boxed_from_unboxed_functorIXadL_ZNS5_12_GLOBAL__N_1";
	static const struct {
		const char *symbol, *name;
		bool redispatch, boxed;
	} cases[] = {
		{ "_ZN2at4_ops10add_Tensor4callERKNS_6TensorE", "aten::add", false, false },
		{ "_ZN2at4_ops10add_Tensor10redispatchEN3c1014DispatchKeySetE", "aten::add", true,
		  false },
		{ "_ZN2at4_ops11add__Tensor4callEv", "aten::add_", false, false },
		{ "_ZN2at4_ops18_foreach_add__List4callEv", "aten::_foreach_add_", false, false },
		{ "_ZN2at4_ops5relu_4callEv", "aten::relu_", false, false },
		{ "_ZN2at4_ops12index_Tensor4callEv", "aten::index", false, false },
		{ "_ZN2at4_ops7unknown4callEv", "aten::unknown", false, false },
		{ "_ZN2at4_ops10add_Tensor4nameEv", "", false, false },
		{ "_ZN2at4_ops99add_Tensor4callEv", "", false, false },
		{ "_ZN2at6native3addEv", "", false, false },
		{ "_ZN4c10d12ProcessGroup9allreduceERSt6vectorE", "c10d::allreduce_", false,
		  false },
		{ "_ZN4c10d12ProcessGroup7barrierEv", "c10d::barrier", false, false },
		{ "17wrapper_CPU_addmmES8_EEELb0EE4callEv", "aten::addmm", true, true },
		{ "22wrapper_CPU_add_TensorES8_EEELb0EE4callEv", "aten::add", true, true },
		{ "25wrapper_CPU_addmm_out_outES8_EEELb0EE4callEv", "aten::addmm", true, true },
		{ "43wrapper_CompositeExplicitAutograd___to_copyES8_EEELb0EE4callEv",
		  "aten::_to_copy", true, true },
		{ "31wrapper_CUDA_Tensor_out_sub_outES8_EEELb0EE4callEv", "aten::sub", true, true },
		{ "_ZN3c104impl31make_boxed_from_unboxed_functorIXadL_ZN12mine9something_EEE"
		  "4callEv",
		  "", false, false },
	};
	struct plumb_symbolizer *symbolizer = plumb_symbolizer_new();
	struct plumb_code_place place;
	char symbol[400];

	(void)state;
	compile_operators();
	struct plumb_code_wanted one = wanted("operators.so");
	uint32_t object = plumb_symbolizer_object(symbolizer, &one);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		snprintf(symbol, sizeof symbol, "%s%s", cases[i].boxed ? boxed : "",
		         cases[i].symbol);
		assert_string_equal(operator_of(symbolizer, object, symbol, cases[i].redispatch),
		                    cases[i].name);
	}
	/* Kernels of GPUs are in another library. It has no schemas, so those beside it count. */
	shell("mv operators.so libtorch_cpu.so && "
	      "objcopy --rename-section .rodata=.other libtorch_cpu.so operators.so");
	object = plumb_symbolizer_object(symbolizer, &one);
	assert_string_equal(operator_of(symbolizer, object, cases[0].symbol, false), "aten::add");
	shell("rm libtorch_cpu.so");
	object = plumb_symbolizer_object(symbolizer, &one);
	assert_string_equal(operator_of(symbolizer, object, cases[0].symbol, false),
	                    "aten::add_Tensor");
	/* Who does not ask is not told. */
	plumb_symbolizer_look(symbolizer, object, address_of("operators.so", cases[0].symbol),
	                      &place);
	assert_string_equal(place.symbol, cases[0].symbol);
	assert_null(place.operation);
	plumb_symbolizer_free(symbolizer);
}

/* ---- the child ---- */

/* The process that this one started; 0: there is none. */
static pid_t
child(void)
{
	char path[64];
	int pid = 0;
	FILE *list;

	snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
	list = fopen(path, "r");
	if (!list)
		skip(); /* the kernel does not tell */
	if (fscanf(list, "%d", &pid) != 1)
		pid = 0;
	fclose(list);
	return pid;
}

static void
test_a_lost_child_costs_one_object(void **state)
{
	struct plumb_symbolizer *symbolizer = plumb_symbolizer_new();
	struct plumb_code_place place;
	struct plumb_code_wanted one, two;
	uint32_t first, second;

	(void)state;
	compile("-g");
	shell("cp one two");
	one = wanted("one"), two = wanted("two");
	uint64_t address = address_of("one", "answer");
	first = plumb_symbolizer_object(symbolizer, &one);
	second = plumb_symbolizer_object(symbolizer, &two);
	assert_int_equal(child(), 0);
	assert_int_equal(plumb_symbolizer_look(symbolizer, first, address, &place),
	                 PLUMB_CODE_FINE);
	assert_string_equal(place.symbol, "answer");
	assert_int_equal(place.frames[0].line, 2);
	assert_true(plumb_symbolizer_bytes(symbolizer, first) > 1000);

	pid_t before = child();
	assert_true(before > 0);
	kill(before, SIGKILL);
	assert_int_equal(plumb_symbolizer_look(symbolizer, first, address, &place),
	                 PLUMB_CODE_FAILED);
	assert_null(place.symbol);
	assert_int_equal(place.count, 0);
	/* The other is read by the next child; the first is asked no more. */
	assert_int_equal(plumb_symbolizer_look(symbolizer, second, address, &place),
	                 PLUMB_CODE_FINE);
	assert_string_equal(place.symbol, "answer");
	assert_int_not_equal(child(), before);
	assert_int_equal(plumb_symbolizer_look(symbolizer, first, address, &place),
	                 PLUMB_CODE_FAILED);
	plumb_symbolizer_free(symbolizer);
	assert_int_equal(child(), 0);
}

static void
test_no_child_for_what_is_no_file(void **state)
{
	struct plumb_symbolizer *symbolizer = plumb_symbolizer_new();
	struct plumb_code_wanted gone = wanted("gone"), pipe = wanted("fifo");
	struct plumb_code_place place;

	(void)state;
	shell("mkfifo fifo");
	assert_int_equal(plumb_symbolizer_look(
				 symbolizer, plumb_symbolizer_object(symbolizer, &gone), 1, &place),
	                 PLUMB_CODE_ABSENT);
	assert_int_equal(plumb_symbolizer_look(
				 symbolizer, plumb_symbolizer_object(symbolizer, &pipe), 1, &place),
	                 PLUMB_CODE_IRREGULAR);
	assert_int_equal(child(), 0);
	plumb_symbolizer_free(symbolizer);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_debug_file_in_the_build_id_folder, setup,
		                                teardown),
		cmocka_unit_test(test_the_functions_of_this_program),
		cmocka_unit_test_setup_teardown(test_versions_of_symbols_are_left_out, setup,
		                                teardown),
		cmocka_unit_test_setup_teardown(test_operators_of_functions, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_lost_child_costs_one_object, setup,
		                                teardown),
		cmocka_unit_test_setup_teardown(test_no_child_for_what_is_no_file, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
