# SPDX-License-Identifier: Apache-2.0
#: make            build/plumb, build/libplumb.so and build/plumb-counter.so
#: make demo       profiles examples/train.py; installs what is missing (Debian, Ubuntu)
#: make test       runs every test; installs what is missing (Debian, Ubuntu); with PLUMB_FUZZ_SECONDS=N it also fuzzes
#:                 each target for N seconds
#: make unit       builds and runs the unit tests alone
#: make sanitize   the unit tests and fuzz targets under AddressSanitizer and UBSan
#: make clang      builds everything with Clang, warnings as errors
#: make fuzz       fuzzes every target for FUZZ_SECONDS (60) seconds with libFuzzer (libfuzzer builds them)
#: make bench      the benchmark of bench/ (wants a GPU and PyTorch)
#: make web        the page of plumb view, into web/dist, which the next make builds in (wants npm)
#: make wheel      dist/plumb_profiler-*.whl, self-contained and checked; with the page if npm is there
#: make vsix       dist/plumb-VERSION.vsix, the extension for VS Code with the page in it (wants npm)
#: make install    into PREFIX (/usr/local), below DESTDIR
#: make examples   the example tools of examples/, into build/examples
#: make docs       writes the generated sections of docs/ and the outputs in docs/guides again
#: make format     clang-format over the C files      make clean   removes build/ and dist/
#:
#: Variables: BUILD (build), CC (gcc), CLANG, PYTHON, PKG_CONFIG, CCACHE, OPT (-O2 -g), WERROR, BUILD_CACHE
#: (~/.cache/plumb: headers and tools from PyPI), CUDA_HOME (a CUDA toolkit from 13.0 on), LTO (the
#: collector's link-time optimisation, by GCC and zig; LTO= links faster), STATIC (1: libraries are linked in), JOBS, V=1,
#: WEB (web/dist: where app.js and app.css of the page are).
#: What a changed variable compiles or links in another way is made again.
BUILD ?= build
# One folder has one name, or what was built under the other is taken for current.
override BUILD := $(patsubst $(CURDIR)/%,%,$(BUILD))
CC := $(if $(filter default,$(origin CC)),gcc,$(CC))
CLANG ?= $(notdir $(firstword $(wildcard $(foreach d,$(subst :, ,$(PATH)),$(d)/clang $(d)/clang-[12]?))))
# Warnings are errors with the compilers that the tests run; a newer one may know new warnings.
ifndef WERROR
WERROR := $(shell $(CC) --version 2>/dev/null | grep -qE ' 12\.[0-9]|clang version 19' && echo -Werror)
endif
OPT ?= -O2 -g
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 60
export BUILD_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/plumb
JOBS ?= $(shell nproc 2>/dev/null || echo 1)
ifeq ($(MAKELEVEL)$(filter -j% --jobs%,$(MAKEFLAGS)),0)
MAKEFLAGS += -j$(JOBS)
endif

WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wvla \
        -Wno-missing-field-initializers $(WERROR)
VERSION := $(shell cat VERSION)
CUDA_INCLUDE := $(BUILD_CACHE)/cuda/13.0/include
CPPFLAGS += -Isrc -Iinclude -D_GNU_SOURCE -DPLUMB_VERSION='"$(VERSION)"'
BASE_CFLAGS := -std=gnu17 $(OPT) $(WARN) -fvisibility=hidden -MMD -MP
COLLECT_CFLAGS = $(BASE_CFLAGS) $(LTO) -fPIC -ftls-model=initial-exec -isystem $(CUDA_INCLUDE)

# pkg-config knows where the libraries are. Without it they have to lie where the compiler looks.
PKG_CONFIG ?= pkg-config
LIBRARIES := sqlite3 libdw libelf liblzma libzstd zlib
ifneq ($(shell command -v $(PKG_CONFIG)),)
LIB_CFLAGS := $(shell $(PKG_CONFIG) --cflags $(LIBRARIES) 2>/dev/null)
LIBS := $(shell $(PKG_CONFIG) $(if $(STATIC),--static) --libs $(LIBRARIES) 2>/dev/null)
else
$(info plumb: pkg-config is not installed, so libraries and headers are looked for in the compiler's folders only)
LIBS := -lsqlite3 -ldw -lelf -llzma $(if $(STATIC),-lbz2) -lzstd -lz
endif
# libstdc++ is there for its demangler alone, so it is linked in. STATIC=1 links in all but glibc.
LIBS += $(shell $(CC) -print-file-name=libstdc++.a 2>/dev/null)
# libevent serves the page of plumb view. It is linked in where its archives are, and what needs it is left out where it is
# not installed.
EVENT := $(wildcard $(foreach l,extra core,$(shell $(CC) -print-file-name=libevent_$(l).a 2>/dev/null)))
ifneq ($(words $(EVENT)),2)
EVENT := $(shell $(PKG_CONFIG) --libs libevent_extra libevent_core 2>/dev/null)
endif
ifneq ($(shell echo '\#include <event2/http.h>' | $(CC) -E - >/dev/null 2>&1 || \
               $(PKG_CONFIG) --exists libevent_extra 2>/dev/null || echo no),)
EVENT :=
endif
ifneq ($(EVENT),)
LIB_CFLAGS += $(shell $(PKG_CONFIG) --cflags libevent_extra 2>/dev/null)
LIBS := $(EVENT) $(LIBS)
else
$(info plumb: libevent is not installed (Debian: libevent-dev), so plumb view cannot serve pages)
endif
GLIBC := -lm -ldl -lpthread
TOOL_LIBS := $(LIBS) $(GLIBC)
ifdef STATIC
TOOL_LIBS := -static-libgcc -Wl,-Bstatic $(filter-out $(GLIBC) -pthread,$(LIBS)) -Wl,-Bdynamic $(GLIBC)
endif
TOOL_CFLAGS := $(BASE_CFLAGS) $(LIB_CFLAGS) -fPIE

# The collector shares these with the command-line program.
SHARED := src/base/words.c src/base/counters.c src/base/error.c src/base/secret.c src/base/procstat.c src/region/writer.c src/region/control.c src/region/code.c
COLLECT := $(wildcard src/collect/*.c src/collect/*/*.c src/collect/*/*/*.c) $(SHARED)
TOOL := $(wildcard $(patsubst %,src/%/*.c,base region isa isa/* code model model/* store settle import import/* analyze analyze/* \
                                          export watch view serve cli cli/*))
TOOL := $(filter-out src/serve/$(if $(EVENT),without_http.c,http.c),$(TOOL))
COLLECT_OBJECTS := $(COLLECT:src/%.c=$(BUILD)/collect/%.o)
# The counter of launches shares the dlsym hook with the collector, and nothing else.
COUNT := $(wildcard src/count/*.c) src/collect/dlsym.c
COUNT_OBJECTS := $(COUNT:src/%.c=$(BUILD)/collect/%.o)
TOOL_OBJECTS := $(TOOL:src/%.c=$(BUILD)/tool/%.o) $(BUILD)/tool/bundle.o
# The page of plumb view: what web/ was built into, if it was.
WEB ?= web/dist
BUNDLE := $(wildcard $(WEB)/app.js $(WEB)/app.css)

# With ccache, what was compiled before is not compiled again, in this folder or another clone. Its debug information may
# name the clone that compiled it first. CCACHE= does without.
CCACHE ?= $(shell command -v ccache)
export CCACHE_NOHASHDIR ?= 1
export CCACHE_BASEDIR ?= $(CURDIR)

# V=1 shows the commands.
Q := $(if $(V),,@)
say = @$(if $(V),:,echo '  $(1)  $(@:$(BUILD)/%=%)')

# The collector first: its link takes one core for seconds, while the other compiles the tool.
all: $(BUILD)/libplumb.so $(BUILD)/plumb-counter.so $(BUILD)/plumb

# COLLECT_CC=scripts/zig-cc compiles the collector for glibc 2.28, whatever this machine has.
COLLECT_CC ?= $(CC)
COLLECT_CCACHE = $(CCACHE)
ifneq ($(filter %zig-cc,$(COLLECT_CC)),)
# Once, not for each file.
export ZIG := $(shell scripts/fetch-zig)
# ccache knows neither zig nor $TARGET. The path of zig names its version.
COLLECT_CCACHE = $(if $(CCACHE),CCACHE_COMPILERTYPE=clang CCACHE_COMPILERCHECK='string:$(ZIG) $(TARGET)' $(CCACHE))
endif
# Link-time optimisation takes a quarter off the instructions of an operator. GCC: in one part, for
# the names in inline assembly, and in fat objects, which unit tests link as they are (-fno-lto). zig
# brings a linker for it; with plain Clang it depends on the system's. Never in instrumented code.
ifeq ($(origin LTO),undefined)
ifneq ($(filter -fsanitize% -fprofile% --coverage,$(OPT) $(CFLAGS)),)
LTO :=
else ifneq ($(filter %zig-cc,$(COLLECT_CC)),)
LTO := -flto
else
LTO := -flto -flto-partition=one -ffat-lto-objects
LTO := $(shell $(COLLECT_CC) $(LTO) -x c -S -o /dev/null /dev/null 2>/dev/null && echo '$(LTO)')
endif
endif
KINDS := libplumb counter plumb collect tool bundle tests unit fuzz example # COMMAND_<kind> makes it: scripts/commands.mk
preloaded = $(COLLECT_CC) $(1) $(OPT) $(or $(LTO),-fno-lto) -shared $(LDFLAGS) -Wl,-z,nodelete -Wl,-z,now \
            -Wl,--no-undefined -ldl -lpthread
COMMAND_libplumb = $(call preloaded,$(COLLECT_OBJECTS))
$(BUILD)/libplumb.so: $(COLLECT_OBJECTS) $(BUILD)/commands/libplumb
	$(call say,LINK)
	$(Q)$(COMMAND_libplumb) -o $@
COMMAND_counter = $(call preloaded,$(COUNT_OBJECTS))
$(BUILD)/plumb-counter.so: $(COUNT_OBJECTS) $(BUILD)/commands/counter
	$(call say,LINK)
	$(Q)$(COMMAND_counter) -o $@
COMMAND_plumb = $(CC) -pie $(TOOL_OBJECTS) $(OPT) $(LDFLAGS) $(TOOL_LIBS)
$(BUILD)/plumb: $(TOOL_OBJECTS) $(BUILD)/commands/plumb
	$(call say,LINK)
	$(Q)$(COMMAND_plumb) -o $@
COMMAND_collect = $(COLLECT_CC) $(CPPFLAGS) $(COLLECT_CFLAGS) $(CFLAGS) -c
$(BUILD)/collect/%.o: src/%.c $(BUILD)/commands/collect | $(CUDA_INCLUDE)/cupti.h
	@mkdir -p $(@D)
	$(call say,CC  )
	$(Q)$(COLLECT_CCACHE) $(COMMAND_collect) -o $@ $<
# It has the patches of the Compute Sanitizer in it.
$(BUILD)/collect/collect/gpu/sanitizer/library.o: src/collect/gpu/sanitizer/patches.fatbin
COMMAND_tool = $(CC) $(CPPFLAGS) $(TOOL_CFLAGS) $(CFLAGS) -c
$(BUILD)/tool/%.o: src/%.c $(BUILD)/commands/tool | present
	@mkdir -p $(@D)
	$(call say,CC  )
	$(Q)$(CCACHE) $(COMMAND_tool) -o $@ $<
COMMAND_bundle = scripts/bundle.py $(BUNDLE)
$(BUILD)/bundle.c: scripts/bundle.py $(BUNDLE) $(BUILD)/commands/bundle | present
	$(call say,WEB )
	$(Q)$(COMMAND_bundle) >$@
$(BUILD)/tool/bundle.o: $(BUILD)/bundle.c $(BUILD)/commands/tool
	@mkdir -p $(@D)
	$(call say,CC  )
	$(Q)$(CCACHE) $(COMMAND_tool) -o $@ $<
$(CUDA_INCLUDE)/cupti.h: | present
	@scripts/fetch-cuda-headers 13.0 >/dev/null
present:
	@CC='$(CC)' scripts/bootstrap.sh --check build

# Unit tests: tests/unit/test_*.c, each a cmocka program; what includes a header of the collector is
# linked with it. The objects come as archives, so that a test may bring a part of its own. Those that
# load libplumb.so into other programs do not run under sanitizers: these programs have none.
SANITIZED := $(findstring -fsanitize,$(OPT))
UNIT_SOURCES := $(if $(SANITIZED),$(shell grep -LE 'libplumb\.so|cuda_mock\.h' tests/unit/test_*.c),$(wildcard \
                  tests/unit/test_*.c))
UNIT := $(UNIT_SOURCES:tests/unit/%.c=$(BUILD)/unit/%)
ARCHIVES := $(BUILD)/collect.a $(BUILD)/tool.a
unit-programs: $(UNIT)
unit: $(if $(SANITIZED),,all mock) $(UNIT)
	@scripts/run-each.sh $(UNIT)
$(BUILD)/collect.a: $(COLLECT_OBJECTS) $(BUILD)/commands/libplumb
$(BUILD)/tool.a: $(filter-out $(BUILD)/tool/cli/main.o,$(TOOL_OBJECTS)) $(BUILD)/commands/plumb
$(ARCHIVES):
	@rm -f $@
	$(Q)$(AR) rcs $@ $(filter %.o,$^)
archives = $(if $(shell grep -l '"collect/' $(1)),$(ARCHIVES),$(BUILD)/tool.a)
COMMAND_tests = $(CC) $(CPPFLAGS) $(TOOL_CFLAGS) -isystem $(CUDA_INCLUDE) $(CFLAGS) -fno-lto -c
$(BUILD)/tests/%.o: tests/%.c $(BUILD)/commands/tests | $(CUDA_INCLUDE)/cupti.h present
	@mkdir -p $(@D)
	$(call say,CC  )
	$(Q)$(CCACHE) $(COMMAND_tests) -o $@ $<
COMMAND_unit = $(CC) -fno-lto -pie $(1) $(OPT) $(CFLAGS) $(LDFLAGS) $(TOOL_LIBS) -lcmocka
$(UNIT): $(BUILD)/unit/%: $(BUILD)/tests/unit/%.o $(ARCHIVES) $(BUILD)/commands/unit
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(call COMMAND_unit,-o $@ $< $(call archives,tests/unit/$*.c))

# Fuzz targets: tests/fuzz/fuzz_*.c; `replay` feeds each its corpus, as a plain test.
FUZZ := $(patsubst tests/fuzz/%.c,$(BUILD)/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_MAIN ?= $(BUILD)/tests/fuzz/replay.o
replay: $(FUZZ)
	@scripts/run-corpus.sh $^
COMMAND_fuzz = $(CC) -fno-lto -pie $(FUZZ_MAIN) $(1) $(OPT) $(CFLAGS) $(LDFLAGS) $(TOOL_LIBS)
$(FUZZ): $(BUILD)/fuzz/%: $(BUILD)/tests/fuzz/%.o $(ARCHIVES) $(filter %.o,$(FUZZ_MAIN)) $(BUILD)/commands/fuzz
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(call COMMAND_fuzz,-o $@ $< $(call archives,tests/fuzz/$*.c))
fuzz-programs: $(FUZZ)
test-objects: $(patsubst tests/%.c,$(BUILD)/tests/%.o,$(wildcard tests/unit/test_*.c tests/fuzz/fuzz_*.c) tests/fuzz/replay.c)
SANITIZE := -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all
fuzz: libfuzzer
	@FUZZ_SECONDS=$(FUZZ_SECONDS) scripts/fuzz.sh $(FUZZ:$(BUILD)/%=$(BUILD)/libfuzzer/%)
libfuzzer:
	@scripts/bootstrap.sh fuzz
	@$(MAKE) --no-print-directory BUILD=$(BUILD)/libfuzzer CC=$(CLANG) \
	  OPT='$(SANITIZE) -fsanitize=fuzzer-no-link' FUZZ_MAIN=-fsanitize=fuzzer fuzz-programs
sanitize:
	@$(MAKE) --no-print-directory BUILD=$(BUILD)/sanitize OPT='$(SANITIZE)' unit replay
clang:
	@$(MAKE) --no-print-directory BUILD=$(BUILD)/clang CC=$(CLANG) WERROR=-Werror OPT=-O0 LTO= \
	  all test-objects # its warnings are the front end's: they need no optimiser, and of tests no programs

# Compiled as somebody else would, with the public headers alone.
EXAMPLES := $(BUILD)/examples/monitor.so
examples: $(EXAMPLES)
COMMAND_example = $(CC) -std=gnu11 -O2 -g $(WARN) -Iinclude -fPIC -shared $(1) -lpthread
$(BUILD)/examples/%.so: examples/%/tool.c include/plumb/monitor.h $(BUILD)/commands/example
	@mkdir -p $(@D)
	$(call say,CC  )
	$(Q)$(call COMMAND_example,-o $@ $<)

demo:
	@scripts/bootstrap.sh demo
	@$(MAKE) --no-print-directory all
	@BUILD=$(BUILD) scripts/demo.sh
# The page, if npm can build it. It must be there before make looks for it, so this is a make of its own.
BUILD_WEB = command -v npm >/dev/null && $(MAKE) --no-print-directory web
test:
	@scripts/bootstrap.sh test
	@$(BUILD_WEB) || echo 'plumb: the page of plumb view was not built, so its tests are skipped' >&2
	@$(MAKE) --no-print-directory all unit-programs fuzz-programs mock
	@$(if $(filter-out 0,$(PLUMB_FUZZ_SECONDS)),$(MAKE) --no-print-directory libfuzzer ||) true # or a test says why
	@BUILD=$(BUILD) scripts/test.sh
bench: all
	@BUILD=$(BUILD) scripts/bench.sh
web:
	@[ -e web/dist/app.css ] && [ -z "$$(find web/src web/*.json web/build.mjs -newer web/dist/app.js)" ] || \
	  { cd web && npm ci --no-audit --no-fund --ignore-scripts >/dev/null && npm run --silent build; }
vsix: web
	@scripts/vsix.sh
wheel:
	@scripts/bootstrap.sh wheel
	@$(BUILD_WEB) || echo 'plumb: the wheel has no page for plumb view; that wants npm and Node.js 18 or later' >&2
	@BUILD=$(BUILD) scripts/wheel.sh
install: all
	install -D -m 755 $(BUILD)/plumb $(DESTDIR)$(PREFIX)/lib/plumb/plumb
	install -D -m 755 $(BUILD)/libplumb.so $(DESTDIR)$(PREFIX)/lib/plumb/libplumb.so
	install -D -m 755 $(BUILD)/plumb-counter.so $(DESTDIR)$(PREFIX)/lib/plumb/plumb-counter.so
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/lib/plumb/python/plumb $(wildcard python/plumb/*.py python/plumb/*.pyi) python/plumb/py.typed
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/include/plumb include/plumb/annotate.h \
	  include/plumb/monitor.h
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/share/man/man1 \
	  $(DESTDIR)$(PREFIX)/share/bash-completion/completions
	ln -sfn ../lib/plumb/plumb $(DESTDIR)$(PREFIX)/bin/plumb
	$(BUILD)/plumb generate man $(DESTDIR)$(PREFIX)/share/man/man1
	$(BUILD)/plumb generate completion-bash \
	  >$(DESTDIR)$(PREFIX)/share/bash-completion/completions/plumb
docs: all
	$(BUILD)/plumb generate docs docs
	BUILD=$(BUILD) scripts/guides.py --write
format:
	@scripts/check_format.py --write
clean:
	rm -rf $(BUILD) dist
help:
	@sed -n 's/^#: \{0,1\}//p' Makefile
.PHONY: all examples web present unit-programs unit replay fuzz-programs test-objects fuzz libfuzzer sanitize clang demo test bench \
        wheel vsix install docs format clean help
include tests/mock/mock.mk
-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
