/*
 * site.h - system calls in the text of a libc or ld.so, found by their code and led through a
 * function of ours.
 *
 * A site is `mov $NR, %eax`, then instructions that insn.h knows, then `syscall`; the five
 * bytes of the mov become a jump to a trampoline that does what was displaced, calls the hook
 * and, when the hook leaves the call alone, makes it. A call whose number is not a constant is
 * recognised by the five-byte load before its `syscall`: syscall(3), and the cancellable calls
 * of glibc 2.41 and later.
 *
 * Nothing but the five bytes of one instruction is overwritten, so no jump of the original code
 * can land in the middle of ours.
 */
#ifndef BRINGUP_SITE_H
#define BRINGUP_SITE_H

#include <stddef.h>
#include <stdint.h>

#define SITE_VARIABLE (-1) /* the number is in a register */

struct site {
	uint8_t *start;     /* what is overwritten */
	unsigned displaced; /* bytes from there to the syscall instruction */
	int nr;
};

/* Find the first site in [from, end) for which @wanted says yes. Returns 0 and fills @site, or
 * -1. Search on from site_end(). */
int site_find(
	const uint8_t *from, const uint8_t *end, int (*wanted)(int nr), struct site *site);
const uint8_t *site_end(const struct site *site);

/* Where @bytes first stand in [from, end), or NULL. */
const uint8_t *site_bytes(
	const uint8_t *from, const uint8_t *end, const uint8_t *bytes, unsigned count);

/* Registers at the call, as the hook sees and may change them. */
struct site_registers {
	long nr; /* rax; the result, when the hook makes the call */
	long rdi, rsi, rdx, r10, r8, r9;
	long rbx;
};

/* What a trampoline calls: assembly (site_entry.inc has the macro for one). */
typedef void site_entry(void);

/* Memory for trampolines, in reach of a jump from the sites. */
struct site_room {
	uint8_t *next, *end;
};

/* Write the trampoline of @site. The address to jump to, or NULL: no room, or out of reach. */
uint8_t *site_prepare(const struct site *site, site_entry *entry, struct site_room *room);

/* The bytes of a jump from @start to @trampoline. */
void site_jump(const uint8_t *start, const uint8_t *trampoline, uint8_t jump[5]);

#endif
