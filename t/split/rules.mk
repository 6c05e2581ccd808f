# Tests of the split process: programs that run on the simulated driver natively and with a
# lower half.
SPLIT_CFLAGS = -std=gnu11 $(WARN) -O1 -g -pthread -I$(O)/stubs/gen
SIM := $(O)/t/sim/libcuda.so.1
ECHO := $(O)/t/sim/echo/libcuda.so.1
LARGE := $(O)/t/sim/large/libcuda.so.1
OTHER := $(O)/t/sim/other/libcuda.so.1
LACKING := $(O)/t/sim/lacking/libcuda.so.1
# Signal handlers call it: what is thread-local must not be allocated at first use, as malloc may be under way.
SIM_CFLAGS = $(SPLIT_CFLAGS) -fPIC -mfsgsbase -ftls-model=initial-exec
SIM_LINK = -shared -Wl,-soname,libcuda.so.1 -Wl,-z,defs
SIM_OBJ := $(patsubst %.c,$(O)/%.o,$(wildcard t/sim/*.c)) $(O)/t/sim/function_versions.o \
	$(O)/t/sim/cuda.versions.o

$(O)/t/sim/%.o: t/sim/%.c $(O)/stubs/gen/cuda.calls.h $(O)/stubs/gen/cuda.index.h
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(SIM_CFLAGS) -MMD -MP -c -o $@ $<
$(O)/t/sim/function_versions.o: stubs/function_versions.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(SIM_CFLAGS) -c -o $@ $<
$(O)/t/sim/cuda.versions.o: $(O)/stubs/gen/cuda.versions.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(SIM_CFLAGS) -c -o $@ $<
# Objects first, so that what is simulated takes precedence over the weak functions of echo.
$(SIM): $(SIM_OBJ)
	$(CC) $(SIM_LINK) -o $@ $^ -pthread -ldl
# The same with as much code as takes more than one huge page.
$(O)/t/sim/padding.o: t/sim/padding.S
	$(CC) -c -o $@ $<
$(LARGE): $(SIM_OBJ) $(O)/t/sim/padding.o
	@mkdir -p $(@D)
	$(CC) $(SIM_LINK) -o $@ $(O)/t/sim/padding.o $^ -pthread -ldl
# Another build: what programs hold addresses of lies elsewhere, and contexts are larger.
OTHER_OBJ := $(O)/t/sim/other/contexts.o $(O)/t/sim/other/devices.o
$(O)/t/sim/other/%.o: t/sim/%.c $(O)/stubs/gen/cuda.calls.h $(O)/stubs/gen/cuda.index.h
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(SIM_CFLAGS) -DCONTEXT_MORE=24200 -DSIM_VERSION='"13010"' -MMD -MP -c -o $@ $<
$(OTHER): $(O)/t/sim/padding.o $(OTHER_OBJ) $(filter-out %/contexts.o %/devices.o,$(SIM_OBJ))
	@mkdir -p $(@D)
	$(CC) $(SIM_LINK) -o $@ $^ -pthread -ldl
# And one that lacks a function.
$(LACKING): $(O)/t/sim/padding.o $(OTHER_OBJ) $(filter-out %/contexts.o %/devices.o,$(SIM_OBJ))
	@mkdir -p $(@D)
	echo '{ local: cuStreamQuery; };' >$@.map
	$(CC) $(SIM_LINK) -Wl,--version-script=$@.map -o $@ $^ -pthread -ldl
$(ECHO): $(O)/t/sim/echo.o $(O)/t/sim/enter.o
	@mkdir -p $(@D)
	$(CC) $(SIM_LINK) -o $@ $^ -pthread

$(O)/t/sim/libnvidia-ml.so.1: t/sim/nvml/nvml.c $(O)/t/sim/enter.o
	$(CC) $(CPPFLAGS) $(SIM_CFLAGS) -shared -Wl,-soname,$(@F) -o $@ $^

SPLIT_PROGRAMS := $(patsubst t/split/%.c,$(O)/t/split/%,$(wildcard t/split/*.c))
# Load the library themselves.
$(O)/t/split/load $(O)/t/split/closed_library: $(O)/t/split/%: t/split/%.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(SPLIT_CFLAGS) -o $@ $< -ldl
PARTS_SRC := bringup/insn.c bringup/site.c bringup/space.c stubs/function_versions.c
$(O)/t/split/parts: t/split/parts.c $(PARTS_SRC)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(SPLIT_CFLAGS) -o $@ $^
TESTS += $(O)/t/split/parts
$(filter-out %/load %/closed_library %/parts,$(SPLIT_PROGRAMS)): $(O)/t/split/%: t/split/%.c $(O)/stubs/gen/cuda.calls.h $(SIM)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(SPLIT_CFLAGS) -MMD -MP -MF $@.d -MT $@ -o $@ $< $(SIM) -ldl

# Of the lower half, but for the driver.
$(O)/t/unit/heap: t/unit/heap.c lower/heap.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(filter-out -MMD -MP,$(ALL_CFLAGS)) -o $@ $< -ldl
$(O)/t/unit/symbols: t/unit/symbols.c $(wildcard lower/cuda/symbols*.c)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -o $@ $^ -lzstd -llz4

$(O)/t/unit/hash_kernel: t/unit/hash_kernel.c lower/cuda/hash_keys.c lower/cuda/hash_kernel.cu $(O)/libtrecr.a
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(filter-out -MMD -MP,$(ALL_CFLAGS)) -o $@ $(filter-out %.cu,$^) $(LIBS)

# Says whose function it was linked with at the end.
$(O)/t/split/linked-rpath $(O)/t/split/linked-runpath: t/split/linked/linked.c $(SIM)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(SPLIT_CFLAGS) -o $@ $^ -ldl -Wl,-rpath,$(abspath $(O)/t/sim) \
		-Wl,--$(if $(findstring runpath,$@),enable,disable)-new-dtags
SPLIT_PROGRAMS += $(O)/t/split/linked-rpath $(O)/t/split/linked-runpath

# The stub inside a static program: what a program without a dynamic loader has is a libc, and
# that is all the crossing asks for. Compiled once for each libc.
SPLIT_STATIC_OBJ := $(patsubst %,%.o,$(basename $(wildcard stubs/crossing/*.c stubs/crossing/*.S \
	stubs/cuda/*.c stubs/cuda/*.S devmem/*.c) \
	stubs/function_versions.c shared/cuda/calls.c shared/cuda/memory_driver.c \
	$(addprefix bringup/,clone.S elf_map.c insn.c site.c start.c))) \
	$(addprefix gen/cuda.,entries.o versions.o info.o)
SPLIT_STATIC_GEN := $(addprefix $(O)/stubs/gen/cuda.,entries.S versions.c info.c calls.h index.h)
SPLIT_STATIC_CFLAGS = $(SPLIT_CFLAGS) -w -mfsgsbase -fno-stack-protector
MUSL_GCC = musl-gcc -idirafter /usr/include -idirafter /usr/include/x86_64-linux-gnu

# $(1): the libc, $(2): its compiler.
define split_static
$(O)/t/split/$(1)/gen/%.o: $(O)/stubs/gen/%.c $(SPLIT_STATIC_GEN)
	@mkdir -p $$(@D)
	$(2) $$(CPPFLAGS) $$(SPLIT_STATIC_CFLAGS) -MMD -MP -c -o $$@ $$<
$(O)/t/split/$(1)/gen/cuda.entries.o: $(O)/stubs/gen/cuda.entries.S $(GEN_ENTRIES_INCLUDED)
	@mkdir -p $$(@D)
	$(2) $$(CPPFLAGS) $$(SPLIT_STATIC_CFLAGS) -c -o $$@ $$<
$(O)/t/split/$(1)/%.o: %.c $(SPLIT_STATIC_GEN)
	@mkdir -p $$(@D)
	$(2) $$(CPPFLAGS) $$(SPLIT_STATIC_CFLAGS) -MMD -MP -c -o $$@ $$<
$(O)/t/split/$(1)/%.o: %.S
	@mkdir -p $$(@D)
	$(2) $$(CPPFLAGS) $$(SPLIT_STATIC_CFLAGS) -MMD -MP -c -o $$@ $$<
$(O)/t/split/static-$(1)-%: t/split/%.c $(SPLIT_STATIC_OBJ:%=$(O)/t/split/$(1)/%)
	$(2) $$(CPPFLAGS) $$(SPLIT_STATIC_CFLAGS) -MMD -MP -MF $$@.d -MT $$@ -static -o $$@ \
		$$(filter %.c %.o,$$^)
endef
$(eval $(call split_static,glibc,$(CC)))
$(eval $(call split_static,musl,$(MUSL_GCC)))
SPLIT_STATIC := compute callbacks threads signals forks objects held queued
SPLIT_PROGRAMS += $(SPLIT_STATIC:%=$(O)/t/split/static-glibc-%)
ifneq ($(shell command -v musl-gcc),)
SPLIT_PROGRAMS += $(SPLIT_STATIC:%=$(O)/t/split/static-musl-%)
endif

# Not the static ones: the stub would be compiled for them, once for each libc.
ifdef QUICK
SPLIT_PROGRAMS := $(filter $(NAMED:%=$(O)/t/split/%),$(SPLIT_PROGRAMS))
endif

check: $(SPLIT) $(ECHO) $(LARGE) $(OTHER) $(LACKING) $(O)/t/sim/libnvidia-ml.so.1 $(SPLIT_PROGRAMS)

# On a real GPU: skipped where there is none. RUNS=N sets how often costs are measured,
# CUDART12=PATH names a libcudart.so.12 to be tested, too, CUDA_SAMPLES=DIR a checkout of NVIDIA's samples.
check-gpu: all test-tools $(O)/stubs/gen/cuda.calls.h $(O)/t/split/stateless $(O)/t/split/family \
	$(O)/t/split/places $(O)/t/split/mixed_variables
	TRECR_BUILD=$(abspath $(O)) prove -v -e '' t/gpu/check.t t/gpu/places.t t/gpu/restart.t \
		t/gpu/panel.t t/gpu/samples.t

.PHONY: check-gpu
