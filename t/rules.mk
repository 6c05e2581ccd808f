# Tests. `make check` builds everything under t/ and runs t/*.t and t/unit through prove;
# `make fuzz` runs the fuzzers. A test is added by adding a file:
#
#	t/NAME.t		a scenario, a bash script that prints TAP (t/lib.sh)
#	t/victim/NAME.c		a program that checks itself (t/victim/victim.h)
#	t/application/NAME	what a program of others is to work on (t/applications.t)
#	t/application/panel/	more of them, by themselves: `make check-applications`
#	t/tool/NAME.c		a helper of the scenarios
#	t/fault/		lets system calls of trecr itself fail (t/faults.t)
#	t/unit/NAME.c		a program that prints TAP, linked with libtrecr.a
#	t/fuzz/NAME.c		a fuzzer, linked with libtrecr.a
#	t/sim/			a GPU driver without a GPU: libcuda.so.1 and libnvidia-ml.so.1
#	t/sim/mpi/		an MPI library without an MPI: libmpi.so.12 (t/mpi_sim.t)
#	t/split/NAME.c		a program that runs on it (t/split*.t)
#	t/gpu/			what needs a GPU: `make check-gpu`

# Victims are what users bring: never sanitized, and with frames that debuggers can show.
VICTIM_CFLAGS = -std=gnu11 $(WARN) -Wno-unused-function -Wno-missing-field-initializers \
	-O1 -g -pthread \
	-fno-omit-frame-pointer
TEST_DEPS = -MMD -MP -MF $@.d -MT $@

VICTIM_BIN := $(patsubst t/victim/%.c,$(O)/t/victim/%,$(wildcard t/victim/*.c))
$(O)/t/victim/%: t/victim/%.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(VICTIM_CFLAGS) $(TEST_DEPS) -o $@ $< -lm -lrt

# One program in the ways a program can be linked.
VICTIM_BIN += $(O)/t/victim/program-static $(O)/t/victim/program-static-pie \
	$(O)/t/victim/program-no-pie
$(O)/t/victim/program-static: VICTIM_LINK = -static
$(O)/t/victim/program-static-pie: VICTIM_LINK = -static-pie -fPIE
$(O)/t/victim/program-no-pie: VICTIM_LINK = -no-pie -fno-pie
$(O)/t/victim/program-static $(O)/t/victim/program-static-pie $(O)/t/victim/program-no-pie: \
		t/victim/program.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(VICTIM_CFLAGS) $(TEST_DEPS) $(VICTIM_LINK) -o $@ $<

ifneq ($(shell command -v musl-gcc),)
VICTIM_BIN += $(O)/t/victim/program-musl
$(O)/t/victim/program-musl: t/victim/program.c
	@mkdir -p $(@D)
	musl-gcc $(CPPFLAGS) $(VICTIM_CFLAGS) $(TEST_DEPS) -static -o $@ $<
endif

ifneq ($(shell command -v go),)
VICTIM_BIN += $(O)/t/victim/program-go
$(O)/t/victim/program-go: t/victim/program.go
	@mkdir -p $(@D)
	GO111MODULE=off GOFLAGS= GOCACHE=$(abspath $(O))/t/go-cache CGO_ENABLED=0 \
		go build -o $@ $<
endif

ifneq ($(shell command -v go),)
APPLICATION_BIN := $(if $(QUICK),,$(O)/t/application/talk)
$(O)/t/application/talk: t/application/talk.go
	@mkdir -p $(@D)
	GO111MODULE=off GOFLAGS= GOCACHE=$(abspath $(O))/t/go-cache CGO_ENABLED=0 \
		go build -o $@ $<
endif

# A library that is loaded at run time, and one that changes under a checkpoint.
VICTIM_BIN += $(O)/t/victim/plugin.so
$(O)/t/victim/plugin.so: t/victim/plugin/plugin.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(VICTIM_CFLAGS) $(TEST_DEPS) -shared -fPIC -Wl,--build-id -o $@ $<

# For make quick, what the tests to be run name, and nothing that takes long to build: the first Go
# program takes all of Go's library with it.
ifdef QUICK
NAMED := $(shell cat $(filter %.t,$(TESTS)) $(wildcard t/*.sh) | tr -cs 'A-Za-z0-9_.-' '\n' | sed 's/^[-.]*//' | sort -u)
VICTIM_BIN := $(filter-out %-go,$(filter $(NAMED:%=$(O)/t/victim/%),$(VICTIM_BIN)))
endif

# What lets system calls of trecr itself fail, or plays another user behind them.
TEST_TOOL_BIN_SO := $(O)/t/calls.so $(O)/t/fault.so $(O)/t/slow.so $(O)/t/swap.so
$(O)/t/fault.so: t/fault/fault.h
$(TEST_TOOL_BIN_SO): $(O)/t/%.so: t/fault/%.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) -std=gnu11 $(WARN) -Wno-missing-prototypes -O1 -g -shared -fPIC \
		$(TEST_DEPS) -o $@ $< -ldl

# Helpers that read or edit images use the library; the others need no more than libc.
TEST_TOOL_BIN := $(patsubst t/tool/%.c,$(O)/t/tool/%,$(wildcard t/tool/*.c))
TEST_TOOL_LINKED := $(O)/t/tool/edit-image $(O)/t/tool/hot-loops
$(filter-out $(TEST_TOOL_LINKED),$(TEST_TOOL_BIN)): $(O)/t/tool/%: t/tool/%.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) -std=gnu11 $(WARN) $(CFLAGS) $(TEST_DEPS) -o $@ $<
$(TEST_TOOL_LINKED): $(O)/t/tool/%: t/tool/%.c $(O)/libtrecr.a
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -MF $@.d -MT $@ -o $@ $< $(O)/libtrecr.a $(LIBS)
# Compressors that the program contained would be counted as trecr's own code.
$(O)/t/tool/hot-loops: LIBS := $(filter-out $(UNPACKERS),$(LIBS)) -lzstd -llz4

UNIT_BIN := $(patsubst t/unit/%.c,$(O)/t/unit/%,$(wildcard t/unit/*.c))
FUZZ_BIN := $(patsubst t/fuzz/%.c,$(O)/t/fuzz/%,$(wildcard t/fuzz/*.c))
$(filter-out %/unit/hash_kernel %/unit/heap %/unit/devmem %/unit/symbols,$(UNIT_BIN)) $(FUZZ_BIN): $(O)/t/%: t/%.c $(O)/libtrecr.a
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -MF $@.d -MT $@ -o $@ $< $(O)/libtrecr.a $(LIBS)

victims: $(VICTIM_BIN) $(APPLICATION_BIN)
test-tools: $(TEST_TOOL_BIN_SO) $(filter-out $(TEST_TOOL_LINKED),$(TEST_TOOL_BIN))

# TESTS names what to run: make check TESTS='t/memory.t t/files.t'. STRICT=root, user ... fails when a
# test is skipped that .ci/skips does not expect to be there; STRICT=+root tells of it.
TESTS ?= $(LONG_TESTS) $(filter-out $(LONG_TESTS),$(wildcard t/*.t)) $(UNIT_BIN)
# They begin first, so that none of them is left at the end by itself.
LONG_TESTS := $(patsubst %,t/%.t,restart_faults faults victims split_restart applications clock combined gpu_memory \
	sockets memory tcp_outside tree limits compress mpi mpi_job mpi_cross mpi_sim)
# Tests wait most of the time: two processors are not busy with two of them.
TEST_JOBS ?= 4
define RUN_TESTS
dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && mkdir "$$dir/tap" "$$dir/errors" && \
	if TRECR_BUILD=$(abspath $(O)) PERL_TEST_HARNESS_DUMP_TAP=$$dir/tap \
		prove -j$(TEST_JOBS) -e "mk/one_test.sh $$dir/errors" $(PROVE_FLAGS) $(TESTS); then \
		mk/skips.sh "$$dir/tap" $(STRICT); \
	else mk/failures.sh "$$dir/tap" "$$dir/errors"; exit 1; fi
endef
check: all $(VICTIM_BIN) $(APPLICATION_BIN) $(TEST_TOOL_BIN_SO) $(TEST_TOOL_BIN) $(UNIT_BIN)
	$(RUN_TESTS)

# What shows most mistakes, in about a minute on two processors that have nothing else to do: the
# victims of most kinds over two restarts, and tests that take a few seconds. The long ones first.
QUICK_TESTS := $(patsubst %,t/%.t,sockets memory tree files signals refuse threads split process \
	programs run restart inspect uring aio posix_shm std_streams) $(UNIT_BIN)
quick:
	QUICK=1 $(MAKE) check TESTS='$(QUICK_TESTS)' TEST_JOBS=8

# What the sanitizers see of the tools, in a part of the tests. Victims are never sanitized: the
# ordinary build's do.
SANITIZED_TESTS := $(patsubst %,t/%.t,inspect process threads posix_shm ipc std_streams) \
	$(patsubst t/%.c,$(O)-sanitize/t/%,$(wildcard t/unit/*.c))
check-sanitized: victims
	$(MAKE) SANITIZE=1 check-part PLAIN=$(abspath $(O)) TESTS='$(SANITIZED_TESTS)' QUICK=1
check-part: $(TOOL_BIN) $(TEST_TOOL_BIN_SO) $(TEST_TOOL_BIN) $(UNIT_BIN)
	[ -e $(O)/t/victim ] || ln -s $(PLAIN)/t/victim $(O)/t/victim
	$(RUN_TESTS)

# Not part of the tests: a busy tree, saved and brought back time and again.
SOAK_CYCLES ?= 500
soak: all $(TEST_TOOL_BIN)
	TRECR_BUILD=$(abspath $(O)) TEST_LIMIT=36000 SOAK_CYCLES=$(SOAK_CYCLES) t/soak.sh

# Nor are these: programs of others over three crashes each, and stressors of stress-ng.
check-applications: all $(TEST_TOOL_BIN)
	TRECR_BUILD=$(abspath $(O)) PROGRAMS="$(PROGRAMS)" t/application/panel.sh
check-stressors: all $(TEST_TOOL_BIN)
	TRECR_BUILD=$(abspath $(O)) STRESSORS="$(STRESSORS)" t/application/stressors.sh

# MPICH's own tests: natively, under trecr-run, and over a restart.
check-mpi: all $(TEST_TOOL_BIN)
	TRECR_BUILD=$(abspath $(O)) FOLDERS="$(FOLDERS)" ONLY="$(ONLY)" SUITE="$(SUITE)" t/mpi/suite.sh

# Some time of image_fuzz under the sanitizers, from the seeds it makes itself.
FUZZ_SECONDS ?= 60
fuzz:
	$(MAKE) SANITIZE=1 fuzz-run
fuzz-run: $(FUZZ_BIN)
	@for f in $(FUZZ_BIN); do echo "$$f $(FUZZ_SECONDS)"; "$$f" $(FUZZ_SECONDS) || exit 1; done

.PHONY: victims test-tools check quick check-sanitized check-part check-applications check-stressors check-mpi fuzz fuzz-run soak
