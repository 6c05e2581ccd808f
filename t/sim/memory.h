/* memory.h - device memory: ordinary memory at the addresses that the program sees. */
#ifndef T_SIM_MEMORY_H
#define T_SIM_MEMORY_H

#include <stdint.h>

/* Ends the process unless all of [address, address + size) is device memory. */
void memory_check(uint64_t address, uint64_t size, const char *function);

/* Device memory that was not asked for as such: variables of modules. */
void memory_adopt(uint64_t address, uint64_t size);
void memory_forget(uint64_t address);

#endif
