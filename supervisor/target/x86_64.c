/*
 * x86_64.c - the code in the vdso, instruction by instruction, and the registers of system
 * calls.
 */
#include "supervisor/target/x86_64.h"

#include <elf.h>
#include <string.h>
#include <sys/syscall.h>

#include "lib/err.h"

struct code {
	uint8_t *at, *end;
};

static void emit_bytes(struct code *c, const void *bytes, size_t n)
{
	BUG_ON((size_t)(c->end - c->at) < n);
	memcpy(c->at, bytes, n);
	c->at += n;
}

#define EMIT(c, ...)                                                                           \
	emit_bytes((c), (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

/* movabs $value, %reg: REX prefix and opcode name the register. */
static void emit_mov64(struct code *c, uint8_t rex, uint8_t opcode, uint64_t value)
{
	EMIT(c, rex, opcode);
	emit_bytes(c, &value, sizeof(value));
}

/* mov $value, %reg32 */
static void emit_mov32(struct code *c, uint8_t opcode, uint32_t value)
{
	EMIT(c, opcode);
	emit_bytes(c, &value, sizeof(value));
}

static void emit_syscall(struct code *c)
{
	EMIT(c, 0x0f, 0x05);
}

/* rt_sigprocmask(SIG_SETMASK, &mask, NULL, 8). Returns where the mask's displacement stands,
 * as the mask itself comes at the end. No instruction here may change the flags. */
static uint8_t *emit_set_sigmask(struct code *c)
{
	uint8_t *displacement;

	emit_mov32(c, 0xb8, SYS_rt_sigprocmask); /* eax */
	emit_mov32(c, 0xbf, 2);                  /* edi = SIG_SETMASK */
	EMIT(c, 0x48, 0x8d, 0x35);               /* lea mask(%rip), %rsi */
	displacement = c->at;
	EMIT(c, 0, 0, 0, 0);
	emit_mov32(c, 0xba, 0); /* edx */
	EMIT(c, 0x41);
	emit_mov32(c, 0xba, 8); /* r10d */
	emit_syscall(c);
	return displacement;
}

static void emit_unmap(struct code *c, uint64_t start, uint64_t size)
{
	emit_mov32(c, 0xb8, SYS_munmap);
	emit_mov64(c, 0x48, 0xbf, start);
	emit_mov64(c, 0x48, 0xbe, size); /* size 0: EINVAL, and nothing happens */
	emit_syscall(c);
}

/* All registers that a system call's arguments and the instruction itself overwrite. */
static void emit_registers(struct code *c, const struct user_regs_struct *r)
{
	emit_mov64(c, 0x48, 0xb8, r->rax);
	emit_mov64(c, 0x48, 0xb9, r->rcx);
	emit_mov64(c, 0x48, 0xba, r->rdx);
	emit_mov64(c, 0x48, 0xbe, r->rsi);
	emit_mov64(c, 0x48, 0xbf, r->rdi);
	emit_mov64(c, 0x49, 0xb8, r->r8);
	emit_mov64(c, 0x49, 0xb9, r->r9);
	emit_mov64(c, 0x49, 0xba, r->r10);
	emit_mov64(c, 0x49, 0xbb, r->r11);
}

/* Let the thread enter its interrupted system call again from the start. */
static void rewind_syscall(struct user_regs_struct *regs)
{
	regs->rip -= 2; /* the length of `syscall` */
	regs->rax = regs->orig_rax;
	regs->orig_rax = -1;
}

/* Turn what the kernel would do from @regs on the way out of a stop into plain registers. */
static void apply_restart(struct user_regs_struct *regs)
{
	if (!x86_64_in_syscall(regs))
		return;
	switch (-(int64_t)regs->rax) {
	case ERESTARTSYS:
	case ERESTARTNOINTR:
	case ERESTARTNOHAND:
		rewind_syscall(regs);
		break;
	case ERESTART_RESTARTBLOCK:
		rewind_syscall(regs);
		regs->rax = SYS_restart_syscall;
		break;
	}
}

/* A system call that returns in two processes: the maker goes home.
 * Nothing here changes the flags. */
static void emit_clone(struct code *c, const uint8_t *start)
{
	int32_t home;

	BUG_ON(c->at != start + CAVE_CLONE);
	emit_syscall(c);
	EMIT(c, 0x48, 0x89, 0xc1); /* mov %rax, %rcx */
	EMIT(c, 0xe3, 5);          /* jrcxz, over the jump */
	home = start + CAVE_HOME - (c->at + 5);
	EMIT(c, 0xe9); /* jmp */
	emit_bytes(c, &home, sizeof(home));
	emit_mov32(c, 0xb8, SYS_exit_group);
	emit_syscall(c);
}

void x86_64_cave(uint8_t code[CAVE_SIZE], const struct cave_home *home)
{
	struct code c = {code, code + CAVE_SPARE};
	struct user_regs_struct regs = home->regs;
	uint8_t *displacement;
	int32_t distance;

	memset(code, 0, CAVE_SIZE);
	apply_restart(&regs);
	emit_syscall(&c);
	displacement = emit_set_sigmask(&c);
	emit_unmap(&c, home->scratch, home->scratch_size);
	emit_registers(&c, &regs);
	EMIT(&c, 0xff, 0x25, 0, 0, 0, 0); /* jmp *0(%rip) */
	emit_bytes(&c, &regs.rip, sizeof(regs.rip));
	distance = c.at - (displacement + 4);
	memcpy(displacement, &distance, sizeof(distance));
	emit_bytes(&c, &home->sigmask, sizeof(home->sigmask));
	emit_clone(&c, code);
}

void x86_64_trapped_call(uint8_t code[TRAPPED_CALL_SIZE], long nr)
{
	struct code c = {code, code + TRAPPED_CALL_SIZE};

	emit_mov32(&c, 0xb8, nr); /* eax */
	emit_syscall(&c);
	EMIT(&c, 0xcc); /* int3 */
}

static bool is_empty(const uint8_t *p, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (p[i])
			return false;
	return true;
}

/* Our own code, which an earlier checkpoint could not take out: all that is the same whatever
 * there is to be found at home. */
static bool is_left_over(const uint8_t *p)
{
	struct cave_home one, other;
	uint8_t a[CAVE_SIZE], b[CAVE_SIZE];

	memset(&one, 0, sizeof(one));
	memset(&other, 0xff, sizeof(other));
	x86_64_cave(a, &one);
	x86_64_cave(b, &other);
	for (size_t i = 0; i < CAVE_SIZE; i++)
		if (a[i] == b[i] && p[i] != a[i])
			return false;
	return true;
}

size_t x86_64_find_cave(const uint8_t *vdso, size_t size, size_t *room)
{
	const Elf64_Ehdr *eh = (const void *)vdso;
	size_t used, at;

	if (size < sizeof(*eh) || memcmp(eh->e_ident, ELFMAG, SELFMAG))
		return 0;
	used = eh->e_shoff + (size_t)eh->e_shnum * eh->e_shentsize;
	if (!eh->e_shoff || used > size)
		return 0;
	at = (used + 63) & ~(size_t)63;
	if (at + CAVE_SIZE > size)
		return 0;
	*room = size - at;
	if (is_empty(vdso + at, size - at))
		return at;
	/* What else is left over stands behind it. */
	if (!is_empty(vdso + at, CAVE_SIZE))
		return is_left_over(vdso + at) ? at : 0;
	*room = CAVE_SIZE;
	return at;
}

static unsigned long long *arg_register(struct user_regs_struct *regs, int i)
{
	unsigned long long *r[6] = {
		&regs->rdi, &regs->rsi, &regs->rdx, &regs->r10, &regs->r8, &regs->r9};

	return r[i];
}

void x86_64_set_syscall(
	struct user_regs_struct *regs, uint64_t rip, long nr, const uint64_t args[6])
{
	regs->rip = rip;
	regs->rax = nr;
	/* Or the kernel would take what was interrupted before for a call to restart. */
	regs->orig_rax = -1;
	for (int i = 0; i < 6; i++)
		*arg_register(regs, i) = args[i];
}

int64_t x86_64_result(const struct user_regs_struct *regs)
{
	return regs->rax;
}

int64_t x86_64_query_mapped(const struct user_regs_struct *regs)
{
	return regs->r9;
}

void x86_64_set_result(struct user_regs_struct *regs, int64_t result)
{
	regs->rax = result;
}

void x86_64_end_syscall(struct user_regs_struct *regs, int64_t result)
{
	regs->rax = result;
	regs->orig_rax = -1;
}

void x86_64_set_stack(struct user_regs_struct *regs, uint64_t top)
{
	regs->rsp = top;
}

bool x86_64_in_syscall(const struct user_regs_struct *regs)
{
	return (int64_t)regs->orig_rax >= 0;
}

long x86_64_syscall_number(const struct user_regs_struct *regs)
{
	return regs->orig_rax;
}

void x86_64_set_syscall_number(struct user_regs_struct *regs, long nr)
{
	regs->orig_rax = nr;
}

uint64_t x86_64_syscall_arg(const struct user_regs_struct *regs, int i)
{
	return *arg_register((struct user_regs_struct *)regs, i);
}

void x86_64_set_syscall_arg(struct user_regs_struct *regs, int i, uint64_t value)
{
	*arg_register(regs, i) = value;
}

uint64_t x86_64_stack(const struct user_regs_struct *regs)
{
	return regs->rsp;
}

uint64_t x86_64_pc(const struct user_regs_struct *regs)
{
	return regs->rip;
}

void x86_64_set_pc(struct user_regs_struct *regs, uint64_t pc)
{
	regs->rip = pc;
}
