# SPDX-License-Identifier: Apache-2.0
# make        builds build/plumb and build/libplumb.so
# make test   runs every test      make demo   profiles examples/train.py
# make help   lists the rest
BUILD ?= build
CC ?= gcc
WERROR ?= -Werror
OPT ?= -O2 -g
WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wvla \
        -Wno-missing-field-initializers $(WERROR)
VERSION := $(shell cat VERSION 2>/dev/null || echo 0.1.0)
CPPFLAGS += -Isrc -D_GNU_SOURCE -DPLUMB_VERSION='"$(VERSION)"'
BASE_CFLAGS := -std=gnu17 $(OPT) $(WARN) -fvisibility=hidden -MMD -MP
COLLECT_CFLAGS := $(BASE_CFLAGS) -fPIC -ftls-model=initial-exec
TOOL_CFLAGS := $(BASE_CFLAGS) -fPIE

# The collector shares these with the command-line program.
SHARED := src/base/words.c src/base/error.c src/region/writer.c
COLLECT := $(wildcard src/collect/*.c src/collect/*/*.c src/collect/*/*/*.c) $(SHARED)
TOOL := $(wildcard src/base/*.c src/region/*.c src/model/*.c src/store/*.c src/settle/*.c \
                   src/analyze/*.c src/cli/*.c)
TOOL_LIBS := -lsqlite3 -lzstd -lelf -lm

all: $(BUILD)/plumb $(BUILD)/libplumb.so

$(BUILD)/libplumb.so: $(COLLECT:src/%.c=$(BUILD)/collect/%.o)
	$(CC) -shared -o $@ $^ $(LDFLAGS) -Wl,-z,nodelete -Wl,-z,now -Wl,--no-undefined -ldl -lpthread
$(BUILD)/plumb: $(TOOL:src/%.c=$(BUILD)/tool/%.o)
	$(CC) -pie -o $@ $^ $(LDFLAGS) $(TOOL_LIBS)
$(BUILD)/collect/%.o: src/%.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(COLLECT_CFLAGS) $(CFLAGS) -c -o $@ $<
$(BUILD)/tool/%.o: src/%.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(TOOL_CFLAGS) $(CFLAGS) -c -o $@ $<

# Unit tests: tests/unit/test_*.c, each a cmocka program over everything but main.
UNIT := $(patsubst tests/unit/%.c,$(BUILD)/unit/%,$(wildcard tests/unit/test_*.c))
unit: $(UNIT)
$(BUILD)/unit/%: tests/unit/%.c $(filter-out $(BUILD)/tool/cli/main.o,$(TOOL:src/%.c=$(BUILD)/tool/%.o))
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(TOOL_CFLAGS) $(CFLAGS) -pie -o $@ $^ $(LDFLAGS) $(TOOL_LIBS) -lcmocka

clean:
	rm -rf $(BUILD)
.PHONY: all unit clean
-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
