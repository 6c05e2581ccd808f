# trecr. `make` builds into $(O); nothing is written beside the sources.
O ?= build
CC = gcc
CFLAGS ?= -O2 -g
# Where make install puts things, below $(DESTDIR). The tools find the libraries by the way from BINDIR
# to LIBDIR: give both to make all, too, if not as here.
PREFIX ?= /usr/local
BINDIR = $(PREFIX)/bin
LIBDIR = $(PREFIX)/lib
MANDIR = $(PREFIX)/share/man
VERSION := 0.1

# make V=1 shows the commands.
ifndef V
MAKEFLAGS += --silent
endif

WARN = -Wall -Wextra -Wno-unused-parameter -Wstrict-prototypes -Wmissing-prototypes -Wvla
override CPPFLAGS += -I. -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -DTRECR_VERSION='"$(VERSION)"'
ifdef SANITIZE
override O := $(O)-sanitize
SAN = -fsanitize=address,undefined -fno-omit-frame-pointer -fno-sanitize-recover=undefined
endif
ALL_CFLAGS = -std=gnu11 $(WARN) $(CFLAGS) $(SAN) -MMD -MP -pthread
# Libraries that are linked statically where an archive is installed: each shared one costs every start
# of a program 0.1 ms.
archive_or_shared = $(foreach l,$(1),$(firstword $(wildcard $(shell $(CC) -print-file-name=lib$(l).a)) -l$(l)))
UNPACKERS := $(call archive_or_shared,zstd lz4)
# The phase is looked up by name (lib/phase.h).
LIBS := -Wl,--export-dynamic-symbol=phase_now -Wl,--as-needed -ldw -lelf -lxxhash $(UNPACKERS) \
	$(call archive_or_shared,sodium) -pthread

VECTOR_UNITS := sse2 avx2 avx512
LIB_SRC := $(wildcard lib/*.c ckpt/*.c supervisor/*/*.c supervisor/*/*.S)
LIB_OBJ := $(addprefix $(O)/,$(addsuffix .o,$(basename $(filter-out ckpt/hash_variant.c,$(LIB_SRC))))) \
	$(VECTOR_UNITS:%=$(O)/ckpt/hash_variant_%.o) $(O)/loader/blob.o $(O)/opener/blob.o
TOOLS := trecr-run trecr-ckpt trecr-restart trecr-inspect
TOOL_BIN := $(TOOLS:%=$(O)/%)

all: $(TOOL_BIN)

$(O)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -c -o $@ $<

$(O)/%.o: %.S
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -c -o $@ $<

# Compiled once for each vector unit; which one runs is found out (ckpt/hash.c).
XXH_VECTOR_sse2 = -msse2 -DXXH_VECTOR=XXH_SSE2
XXH_VECTOR_avx2 = -mavx2 -DXXH_VECTOR=XXH_AVX2
XXH_VECTOR_avx512 = -mavx512f -DXXH_VECTOR=XXH_AVX512
$(VECTOR_UNITS:%=$(O)/ckpt/hash_variant_%.o): $(O)/ckpt/hash_variant_%.o: ckpt/hash_variant.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(ALL_CFLAGS) $(XXH_VECTOR_$*) -DHASH_VARIANT=hash_$* -DHASH_UNIT='"$*"' \
		-c -o $@ $<

$(O)/libtrecr.a: $(LIB_OBJ)
	@rm -f $@
	ar rcs $@ $^

$(O)/trecr-%: $(O)/tools/trecr-%.o $(O)/libtrecr.a
	$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

# Their only trace of where they are installed. The file changes when it does.
FROM_BIN := $(shell realpath -sm --relative-to='$(BINDIR)' '$(LIBDIR)/trecr')
$(shell mkdir -p $(O); echo '$(FROM_BIN)' | cmp -s - $(O)/from-bin || echo '$(FROM_BIN)' >$(O)/from-bin)
$(O)/supervisor/split/stub_libraries.o $(O)/supervisor/restore/release_choice.o: $(O)/from-bin
$(O)/supervisor/split/stub_libraries.o $(O)/supervisor/restore/release_choice.o: \
	private override CPPFLAGS += -DTRECR_FROM_BIN='"$(FROM_BIN)"'

# Loaded when it is needed.
$(O)/supervisor/socket/netfilter_library.o: private override CPPFLAGS += -DTRECR_NFTNL_SONAME='"$(shell \
	objdump -p $$($(CC) -print-file-name=libnftnl.so) | awk '$$1 == "SONAME" { print $$2 }')"'

INSPECT_OBJ := $(patsubst %.c,$(O)/%.o,$(wildcard tools/inspect/*.c))
$(O)/trecr-inspect: $(O)/tools/trecr-inspect.o $(INSPECT_OBJ) $(O)/libtrecr.a
	$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

# What runs inside a target: no libc, position-independent, one flat binary.
LOADER_CFLAGS = -std=gnu11 $(WARN) -O2 -g -MMD -MP -ffreestanding -fPIE -fno-stack-protector \
	-fno-asynchronous-unwind-tables -fvisibility=hidden -mgeneral-regs-only -fcf-protection=none
LOADER_OBJ := $(patsubst %.S,$(O)/%.o,$(wildcard loader/*.S)) \
	$(patsubst %.c,$(O)/%.o,$(filter-out loader/check_blocks.c,$(wildcard loader/*.c))) \
	$(VECTOR_UNITS:%=$(O)/loader/check_blocks_%.o)
$(VECTOR_UNITS:%=$(O)/loader/check_blocks_%.o): $(O)/loader/check_blocks_%.o: loader/check_blocks.c
	@mkdir -p $(@D)
	$(CC) -I. $(filter-out -mgeneral-regs-only,$(LOADER_CFLAGS)) $(XXH_VECTOR_$*) \
		-DCHECK_BLOCKS=check_blocks_$* -c -o $@ $<
$(O)/loader/%.o: loader/%.c
	@mkdir -p $(@D)
	$(CC) -I. $(LOADER_CFLAGS) -c -o $@ $<
$(O)/loader/%.o: loader/%.S
	@mkdir -p $(@D)
	$(CC) -I. $(LOADER_CFLAGS) -c -o $@ $<
$(O)/loader/loader.elf: $(LOADER_OBJ) loader/loader.lds
	$(CC) -nostdlib -static-pie -Wl,-T,loader/loader.lds -Wl,--build-id=none \
		-Wl,-z,noexecstack -Wl,--no-dynamic-linker -o $@ $(LOADER_OBJ)
$(O)/loader/loader.bin: $(O)/loader/loader.elf
	objcopy -O binary $< $@
# The bytes of a file as NAME and NAME_end.
embed = printf '.section .rodata\n.global $(1)\n.global $(1)_end\n.balign 64\n$(1):\n.incbin "$<"\n$(1)_end:\n.section .note.GNU-stack\n' \
	| $(CC) -c -x assembler -o $@ -
$(O)/loader/blob.o: $(O)/loader/loader.bin
	$(call embed,loader_blob)

# A program of its own, without libc.
$(O)/opener/open_by_group.o: opener/open_by_group.c
	@mkdir -p $(@D)
	$(CC) -I. $(LOADER_CFLAGS) -c -o $@ $<
$(O)/opener/open_by_group: $(O)/opener/open_by_group.o
	$(CC) -nostdlib -static -no-pie -s -Wl,--build-id=none -Wl,-z,noexecstack -Wl,-z,noseparate-code -o $@ $<
$(O)/opener/blob.o: $(O)/opener/open_by_group
	$(call embed,opener_program)

# Programs that are measured and shown; ordinary ones, without anything of trecr in them.
DEMO_BIN := $(O)/demo/counter
BENCH_BIN := $(patsubst bench/%.c,$(O)/bench/%,$(wildcard bench/*.c))
$(DEMO_BIN) $(BENCH_BIN): $(O)/%: %.c
	@mkdir -p $(@D)
	$(CC) -I. -D_GNU_SOURCE -std=gnu11 $(WARN) $(CFLAGS) -MMD -MP -MF $@.d -MT $@ -pthread -o $@ $<

demo: all $(DEMO_BIN)
	@demo/run.sh $(O)

# What bench/run and bench/turns need; they are run by hand (bench/README.md).
bench: all $(BENCH_BIN) $(O)/bench/noop/libcuda.so.1
$(O)/bench/noop/libcuda.so.1: bench/noop/libcuda.c
	@mkdir -p $(@D)
	$(CC) -std=gnu11 $(WARN) $(CFLAGS) -fPIC -shared -Wl,-soname,$(@F) -o $@ $<

# What building and testing need is installed first, also in a parallel make. DEPS=no: nothing is
# installed.
deps:
	@sh mk/deps.sh
ifneq ($(DEPS),no)
check quick demo: deps
ifneq ($(filter check quick demo,$(MAKECMDGOALS)),)
$(LIB_OBJ) $(LOADER_OBJ) $(TOOLS:%=$(O)/tools/%.o) $(INSPECT_OBJ) $(DEMO_BIN): | deps
endif
endif

PAGES := $(notdir $(wildcard man/*.[157]))
# One command a section that has pages.
define install_man
$(if $(wildcard man/*.$(1)),install -m 644 $(wildcard man/*.$(1)) $(DESTDIR)$(MANDIR)/man$(1)/)

endef
# Programs on a GPU hold these libraries, in images too: each release has a folder of its own, and
# stays when another one is installed (supervisor/restore/release_choice.h).
RELEASES = $(DESTDIR)$(LIBDIR)/trecr
RELEASE = $(RELEASES)/$(VERSION)-$(shell cat $(sort $(SPLIT)) | sha256sum | cut -c1-12)
install: all
	install -d $(DESTDIR)$(BINDIR) $(addprefix $(DESTDIR)$(MANDIR)/man,1 5 7)
	install -d $(RELEASE)/stubs $(RELEASE)/coverage
	install -m 755 $(filter-out $(SPLIT_DIR)/stubs/% $(SPLIT_DIR)/coverage/%,$(SPLIT)) $(O)/trecr-restart $(RELEASE)/
	install -m 755 $(filter $(SPLIT_DIR)/stubs/%,$(SPLIT)) $(RELEASE)/stubs/
	install -m 755 $(filter $(SPLIT_DIR)/coverage/%,$(SPLIT)) $(RELEASE)/coverage/
	ln -sfn $(notdir $(RELEASE)) $(RELEASES)/current
	install -m 755 $(TOOL_BIN) $(DESTDIR)$(BINDIR)/
	$(foreach s,1 5 7,$(call install_man,$(s)))

# Releases before the current one stay: images may need them.
uninstall:
	rm -f $(TOOLS:%=$(DESTDIR)$(BINDIR)/%)
	rm -f $(foreach p,$(PAGES),$(DESTDIR)$(MANDIR)/man$(subst .,,$(suffix $(p)))/$(p))
	current=$$(readlink $(RELEASES)/current) && rm -rf "$(RELEASES)/$${current##*/}" || :
	rm -f $(RELEASES)/current
	[ ! -d $(RELEASES) ] || rmdir $(RELEASES) 2>/dev/null || \
		echo "Left for images that need them: $$(echo $(RELEASES)/*)"

lint:
	@sh mk/lint.sh

format:
	clang-format -i $(shell find lib ckpt supervisor shared loader opener bringup lower devmem stubs tools t bench demo -name '*.[ch]')

clean:
	rm -rf $(O)

-include t/rules.mk
-include bringup/rules.mk
-include devmem/rules.mk
-include lower/rules.mk
-include stubs/rules.mk
-include t/split/rules.mk
-include t/sim/mpi/rules.mk
-include $(shell find $(O) -name '*.d' 2>/dev/null)

# No file is deleted because nothing but another one's making needed it: it would be made anew, and
# then all that hangs on it.
.SECONDARY:

.PHONY: all bench clean demo deps format install lint uninstall
