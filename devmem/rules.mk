# The allocator of device memory: part of the stub and of trecr-lower, and tested by itself.
DEVMEM_SRC := $(wildcard devmem/*.c)
DEVMEM_OBJ := $(DEVMEM_SRC:%.c=$(O)/%.o)

$(DEVMEM_OBJ): ALL_CFLAGS = -std=gnu11 $(WARN) $(CFLAGS) -MMD -MP -fPIC -fvisibility=hidden \
	-fno-stack-protector

$(O)/t/unit/devmem: t/unit/devmem.c $(DEVMEM_SRC)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(filter-out -MMD -MP,$(ALL_CFLAGS)) -o $@ $^
