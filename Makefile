# trecr. `make` builds into $(O); nothing is written beside the sources.
O ?= build
CC = gcc
CFLAGS ?= -O2 -g
PREFIX ?= /usr/local
VERSION := 0.1

WARN = -Wall -Wextra -Wno-unused-parameter -Wstrict-prototypes -Wmissing-prototypes -Wvla
CPPFLAGS += -I. -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -DTRECR_VERSION='"$(VERSION)"'
ifdef SANITIZE
O := $(O)-sanitize
SAN = -fsanitize=address,undefined -fno-omit-frame-pointer -fno-sanitize-recover=undefined
endif
ALL_CFLAGS = -std=gnu11 $(WARN) $(CFLAGS) $(SAN) -MMD -MP -pthread
LIBS = -ldw -lelf -lxxhash -lzstd -llz4 -pthread

LIB_SRC := $(wildcard lib/*.c ckpt/*.c supervisor/*.c)
LIB_OBJ := $(LIB_SRC:%.c=$(O)/%.o) $(O)/loader/blob.o
TOOLS := trecr-run trecr-ckpt trecr-restart trecr-inspect
TOOL_BIN := $(TOOLS:%=$(O)/%)

all: $(TOOL_BIN)

$(O)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -c -o $@ $<

$(O)/libtrecr.a: $(LIB_OBJ)
	@rm -f $@
	ar rcs $@ $^

$(O)/trecr-%: $(O)/tools/trecr-%.o $(O)/libtrecr.a
	$(CC) $(ALL_CFLAGS) -o $@ $^ $(LIBS)

# What runs inside a target: no libc, position-independent, one flat binary.
LOADER_CFLAGS = -std=gnu11 $(WARN) -O2 -g -MMD -MP -ffreestanding -fPIE -fno-stack-protector \
	-fno-asynchronous-unwind-tables -fvisibility=hidden -mgeneral-regs-only -fcf-protection=none
LOADER_OBJ := $(patsubst %.S,$(O)/%.o,$(wildcard loader/*.S)) \
	$(patsubst %.c,$(O)/%.o,$(wildcard loader/*.c))
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
$(O)/loader/blob.o: $(O)/loader/loader.bin
	printf '.section .rodata\n.global loader_blob\n.global loader_blob_end\n.balign 64\nloader_blob:\n.incbin "$<"\nloader_blob_end:\n.section .note.GNU-stack\n' \
		| $(CC) -c -x assembler -o $@ -

clean:
	rm -rf $(O)

-include t/rules.mk
-include $(shell find $(O) -name '*.d' 2>/dev/null)

.PHONY: all clean
