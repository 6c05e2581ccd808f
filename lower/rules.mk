# trecr-lower: the program of the lower half. Not sanitized: it lives beside the program's own
# sanitizer, if any.
LOWER := $(O)/lower/trecr-lower
LOWER_OBJ := $(patsubst %.c,$(O)/%.o,$(wildcard lower/*.c))

$(LOWER_OBJ): private ALL_CFLAGS = -std=gnu11 $(WARN) $(CFLAGS) -MMD -MP -pthread -fPIE \
	-fno-stack-protector -mfsgsbase
$(LOWER): $(LOWER_OBJ)
	$(CC) -pie -pthread -o $@ $^ -Wl,--export-dynamic-symbol=mmap \
		-Wl,--export-dynamic-symbol=mmap64 -ldl
