# SPDX-License-Identifier: Apache-2.0
# The stand-in drivers, one folder for each set of headers, and the programs that run on them.
# Included by the Makefile, or used alone: make -f tests/mock/mock.mk mock
BUILD ?= build
CC ?= gcc
BUILD_CACHE ?= $(HOME)/.cache/plumb
MOCK_VERSIONS := 11.8 12.1 12.8 13.0
MOCK_WARN := -std=gnu17 -O1 -g -Wall -Wextra -Wshadow -Wno-missing-field-initializers $(WERROR)
MOCK_CUPTI_11.8 := libcupti.so.11.8
MOCK_CUPTI_12.1 := libcupti.so.12
MOCK_CUPTI_12.8 := libcupti.so.12
MOCK_CUPTI_13.0 := libcupti.so.13
MOCK_CUDART_11.8 := libcudart.so.11.0
MOCK_CUDART_12.1 := libcudart.so.12
MOCK_CUDART_12.8 := libcudart.so.12
MOCK_CUDART_13.0 := libcudart.so.13
MOCK_RELEASE_11.8 := 11080
MOCK_RELEASE_12.1 := 12010
MOCK_RELEASE_12.8 := 12080
MOCK_RELEASE_13.0 := 13000
KINDS += mock
COMMAND_mock = $(CC) $(MOCK_WARN) $(BUILD_CACHE)
MOCK_COUNTERS_12.8 := tests/mock/counters.c tests/mock/series.c # they came with 12.8
MOCK_COUNTERS_13.0 := $(MOCK_COUNTERS_12.8)
MOCK_SOURCES := $(addprefix tests/mock/,cuda.c memory.c scenario.c cupti.c pcsampling.c counters.c series.c pcsampling.h unused.c extra.c program.c mock.h driver.h tool.h mock.mk) src/collect/gpu/cuda/counters_api.h $(BUILD)/commands/mock

MOCK_NCCL := $(BUILD)/mock/libnccl-standin.so $(foreach v,3 4 5 6,$(BUILD)/mock/libnccl-profiler-other$(v).so)
mock: $(foreach v,$(MOCK_VERSIONS),$(BUILD)/mock/$(v)/mock-profiled) $(BUILD)/mock/launcher.so $(MOCK_NCCL)

$(BUILD)/mock/libnccl-standin.so: tests/mock/nccl.c tests/mock/mock.h $(BUILD)/commands/mock
	@mkdir -p $(@D)
	$(CC) $(MOCK_WARN) -fPIC -shared -fvisibility=hidden -D_GNU_SOURCE -o $@ $< -ldl

$(BUILD)/mock/libnccl-profiler-other%.so: tests/mock/nccl_other.c $(BUILD)/commands/mock
	@mkdir -p $(@D)
	$(CC) $(MOCK_WARN) -fPIC -shared -fvisibility=hidden -DVERSION=$* -o $@ $<

$(BUILD)/mock/launcher.so: tests/mock/launcher.c tests/mock/mock.h $(BUILD)/commands/mock
	@mkdir -p $(@D)
	$(CC) $(MOCK_WARN) -fPIC -shared -fvisibility=hidden -D_GNU_SOURCE -o $@ $< -ldl -lpthread

# In one recipe: the libraries are linked with each other and nothing else ever uses them.
$(BUILD)/mock/%/mock-profiled: $(MOCK_SOURCES)
	@mkdir -p $(@D)
	@test -f $(BUILD_CACHE)/cuda/$*/include/cupti.h || scripts/fetch-cuda-headers $* >/dev/null
	$(CC) $(MOCK_WARN) -fPIC -shared -D_GNU_SOURCE -isystem $(BUILD_CACHE)/cuda/$*/include \
	  -Wl,-soname,libcuda.so.1 -o $(@D)/libcuda.so.1 tests/mock/cuda.c tests/mock/memory.c \
	  tests/mock/scenario.c -ldl -lpthread
	$(CC) $(MOCK_WARN) -fPIC -shared -D_GNU_SOURCE -isystem $(BUILD_CACHE)/cuda/$*/include \
	  -Wl,-soname,$(MOCK_CUPTI_$*) -Wl,-rpath,'$$ORIGIN' \
	  -Wl,--default-symver -o $(@D)/$(MOCK_CUPTI_$*) tests/mock/cupti.c tests/mock/pcsampling.c $(MOCK_COUNTERS_$*) tests/mock/unused.c \
	  -L$(@D) -l:libcuda.so.1 -lpthread
	$(CC) $(MOCK_WARN) -fPIC -shared -DLIBRARY=1 -DCUDART=$(MOCK_RELEASE_$*) \
	  -Wl,-soname,$(MOCK_CUDART_$*) -o $(@D)/$(MOCK_CUDART_$*) tests/mock/extra.c
	$(CC) $(MOCK_WARN) -fPIC -shared -DLIBRARY=2 -o $(@D)/libcudnn.so.9 tests/mock/extra.c
	$(CC) $(MOCK_WARN) -fPIC -shared -DLIBRARY=3 -o $(@D)/libnccl.so.2 tests/mock/extra.c
	$(CC) $(MOCK_WARN) -D_GNU_SOURCE -isystem $(BUILD_CACHE)/cuda/$*/include -o $(@D)/mock-program \
	  tests/mock/program.c -L$(@D) -l:libcuda.so.1 -Wl,--no-as-needed -l:$(MOCK_CUDART_$*) \
	  -Wl,-rpath,'$$ORIGIN' -lpthread
	$(CC) $(MOCK_WARN) -D_GNU_SOURCE -DPROFILED -isystem $(BUILD_CACHE)/cuda/$*/include -o $@ \
	  tests/mock/program.c -L$(@D) -l:libcuda.so.1 -Wl,--no-as-needed -l:$(MOCK_CUDART_$*) \
	  -l:$(MOCK_CUPTI_$*) -l:libcudnn.so.9 -l:libnccl.so.2 -Wl,-rpath,'$$ORIGIN' -lpthread
.PHONY: mock

# The stand-in Compute Sanitizer, and the program that plays on it.
SANITIZER_MOCK := $(BUILD)/mock/13.0/traffic
mock: $(SANITIZER_MOCK)
$(SANITIZER_MOCK): tests/mock/traffic.c tests/mock/nvshmem.c tests/mock/sanitizer.c tests/mock/sanitizer.h src/collect/gpu/sanitizer/api.h \
                   src/collect/gpu/sanitizer/counting.h $(BUILD)/mock/13.0/mock-profiled
	$(CC) $(MOCK_WARN) -fPIC -shared -D_GNU_SOURCE -Isrc -fvisibility=hidden -Wl,-soname,libsanitizer-public.so \
	  -o $(@D)/libsanitizer-public.so tests/mock/sanitizer.c -lpthread
	$(CC) $(MOCK_WARN) -fPIC -shared -D_GNU_SOURCE -fvisibility=hidden -Wl,-soname,libnvshmem_host.so.3 \
	  -Wl,--default-symver -o $(@D)/libnvshmem_host.so.3 tests/mock/nvshmem.c
	$(CC) $(MOCK_WARN) -D_GNU_SOURCE -o $@ tests/mock/traffic.c -L$(@D) -l:libsanitizer-public.so -l:libcuda.so.1 \
	  -l:libnvshmem_host.so.3 \
	  -Wl,-rpath,'$$ORIGIN'

# The stand-in NVML. It is in a folder of its own, so that only tests that want it have it.
MOCK_NVML := $(BUILD)/mock/nvml/libnvidia-ml.so.1
mock: $(MOCK_NVML)
$(MOCK_NVML): tests/mock/nvml.c $(BUILD)/commands/mock
	@mkdir -p $(@D)
	$(CC) $(MOCK_WARN) -fPIC -shared -fvisibility=hidden -D_GNU_SOURCE -Wl,-soname,libnvidia-ml.so.1 -o $@ $<

# What tests/e2e/test_torture.py runs, plain and under sanitizers.
TORTURE := $(addprefix $(BUILD)/torture/,program program-address program-undefined program-thread \
             library.so faults.so)
TORTURE_LINK = -L$(BUILD)/mock/13.0 -l:libcuda.so.1 -Wl,-rpath,'$$ORIGIN/../mock/13.0' -lpthread -ldl
mock: $(TORTURE)
$(BUILD)/torture/program: tests/torture/program.c $(BUILD)/mock/13.0/mock-profiled
	@mkdir -p $(@D)
	$(CC) $(MOCK_WARN) -D_GNU_SOURCE -o $@ $< $(TORTURE_LINK)
$(BUILD)/torture/program-%: tests/torture/program.c $(BUILD)/mock/13.0/mock-profiled
	@mkdir -p $(@D)
	$(CC) $(MOCK_WARN) -D_GNU_SOURCE -fsanitize=$* -o $@ $< $(TORTURE_LINK)
$(BUILD)/torture/%.so: tests/torture/%.c $(BUILD)/commands/mock
	@mkdir -p $(@D)
	$(CC) $(MOCK_WARN) -fPIC -shared -o $@ $< -ldl

include scripts/commands.mk
