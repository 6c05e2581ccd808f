# Stubs: libraries of the upper half that stand for those of the lower half, and the generator
# of what follows from the API tables.
GEN := $(O)/stubs/gen/gen
GEN_OBJ := $(patsubst %.c,$(O)/%.o,$(wildcard stubs/gen/*.c)) $(O)/lib/err.o $(O)/lib/util.o

# It ends with all that it has in its hands.
RUN_GEN := ASAN_OPTIONS=detect_leaks=0 $(GEN)

$(GEN): $(GEN_OBJ)
	$(CC) $(ALL_CFLAGS) -o $@ $^

# One file per output and API; an unfinished one is never left behind.
$(O)/stubs/gen/%.entries.S: stubs/api/%.api $(GEN)
	$(RUN_GEN) entries $< >$@.tmp && mv $@.tmp $@
$(O)/stubs/gen/%.procs.c: stubs/api/%.api $(GEN)
	$(RUN_GEN) procs $< >$@.tmp && mv $@.tmp $@
$(O)/stubs/gen/%.printer.c: stubs/api/%.api $(GEN)
	$(RUN_GEN) printer $< >$@.tmp && mv $@.tmp $@
$(O)/stubs/gen/%.calls.h: stubs/api/%.api $(GEN)
	$(RUN_GEN) calls $< >$@.tmp && mv $@.tmp $@

check-api: $(GEN)
	@CC="$(CC)" stubs/gen/check-api $(GEN) stubs/api/cuda.api cuda.h cudaProfiler.h || [ $$? = 77 ]

.PHONY: check-api

# What a program and its lower half need at run time, laid out as it is installed: stubs are in
# a folder of their own, which programs find first.
LIBDIR := $(O)/lib/trecr
STUB_FLAGS = -std=gnu11 $(WARN) $(CFLAGS) -MMD -MP -fPIC -fno-stack-protector -mfsgsbase \
	-I$(O)/stubs/gen
CROSSING_OBJ := $(patsubst %,$(O)/%.o,$(basename $(wildcard stubs/crossing/*.c \
	stubs/crossing/*.S))) $(patsubst %,$(O)/stubs/lower/%.o,clone elf_map insn site start)
CUDA_OBJ := $(patsubst %.c,$(O)/%.o,$(wildcard stubs/cuda/*.c)) $(O)/stubs/procs.o \
	$(O)/stubs/gen/cuda.entries.o $(O)/stubs/gen/cuda.procs.o

NVML_OBJ := $(O)/stubs/nvml/library.o $(O)/stubs/gen/nvml.entries.o

# Theirs alone: not of what they need, as the generator, which is made for this machine.
$(CROSSING_OBJ) $(CUDA_OBJ) $(NVML_OBJ): private ALL_CFLAGS = $(STUB_FLAGS)
$(O)/stubs/crossing/signals.o: private ALL_CFLAGS = $(STUB_FLAGS) -mgeneral-regs-only
$(O)/stubs/cuda/library.o: $(O)/stubs/gen/cuda.calls.h
$(O)/stubs/nvml/library.o: $(O)/stubs/gen/nvml.calls.h

$(O)/stubs/%.o: stubs/%.S
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -c -o $@ $<
$(O)/stubs/gen/%.o: $(O)/stubs/gen/%.S
	$(CC) -c -o $@ $<
$(O)/stubs/gen/%.procs.o: $(O)/stubs/gen/%.procs.c
	$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -fvisibility=hidden -c -o $@ $<
# The part of the loader that the crossing brings the lower half up with.
$(O)/stubs/lower/%.o: loader/lower/%.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -fvisibility=hidden -c -o $@ $<
$(O)/stubs/lower/%.o: loader/lower/%.S
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -c -o $@ $<

STUB_LDFLAGS = -shared -Wl,-z,defs -Wl,-z,now -Wl,-z,noexecstack
$(LIBDIR)/libtrecr-crossing.so: $(CROSSING_OBJ)
	@mkdir -p $(@D)
	$(CC) $(STUB_LDFLAGS) -Wl,-soname,$(@F) -o $@ $^ -pthread -ldl
$(LIBDIR)/stubs/libcuda.so.1: $(CUDA_OBJ) $(LIBDIR)/libtrecr-crossing.so
	@mkdir -p $(@D)
	$(CC) $(STUB_LDFLAGS) -Wl,-soname,$(@F) -Wl,-rpath,'$$ORIGIN/..' -o $@ $^
$(LIBDIR)/stubs/libnvidia-ml.so.1: $(NVML_OBJ) $(LIBDIR)/libtrecr-crossing.so
	@mkdir -p $(@D)
	$(CC) $(STUB_LDFLAGS) -Wl,-soname,$(@F) -Wl,-rpath,'$$ORIGIN/..' -o $@ $^
$(LIBDIR)/trecr-lower: $(LOWER)
	@mkdir -p $(@D)
	cp $< $@
$(LIBDIR)/trecr-lower-core: $(LOWER_CORE)
	@mkdir -p $(@D)
	cp $< $@

# No libc: it is loaded into a space of its own in every program.
$(LIBDIR)/libtrecr-audit.so: $(O)/stubs/audit/audit.o
	@mkdir -p $(@D)
	$(CC) $(STUB_LDFLAGS) -nostdlib -Wl,-soname,$(@F) -o $@ $^
$(O)/stubs/audit/audit.o: private ALL_CFLAGS = $(STUB_FLAGS) -fvisibility=hidden -ffreestanding

SPLIT := $(LIBDIR)/libtrecr-audit.so $(LIBDIR)/libtrecr-crossing.so $(LIBDIR)/stubs/libcuda.so.1 $(LIBDIR)/stubs/libnvidia-ml.so.1 \
	$(LIBDIR)/trecr-lower $(LIBDIR)/trecr-lower-core
all: $(SPLIT)
