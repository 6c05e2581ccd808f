/*
 * xcr0.h - which parts of a processor's state the kernel saves (Intel SDM 1, 13.3): without AVX's,
 * a program can use no instruction of AVX, though the processor has them.
 */
#ifndef LIB_XCR0_H
#define LIB_XCR0_H

#include <stdint.h>

#define CPUID_1_ECX_OSXSAVE (1u << 27)

/* As XSTATE_BV: one bit for each part. @ecx: of CPUID leaf 1, which tells whether it can be asked. */
static inline uint64_t xcr0_read(uint32_t ecx)
{
	uint32_t low = 3, high = 0; /* x87 and SSE, which every processor has */

	if (ecx & CPUID_1_ECX_OSXSAVE)
		__asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
	return (uint64_t)high << 32 | low;
}

#endif
