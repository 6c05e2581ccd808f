/*
 * raw.h - system calls and the few functions a libc would supply, for code that has none: it
 * runs before the lower half's libc, or on whatever FS base the caller had.
 */
#ifndef SHARED_RAW_H
#define SHARED_RAW_H

#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

static inline long raw6(long nr, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
}

#define RAW_PICK(_0, _1, _2, _3, _4, _5, _6, N, ...) N
#define RAW_0(nr)                                    raw6(nr, 0, 0, 0, 0, 0, 0)
#define RAW_1(nr, a)                                 raw6(nr, (long)(a), 0, 0, 0, 0, 0)
#define RAW_2(nr, a, b)                              raw6(nr, (long)(a), (long)(b), 0, 0, 0, 0)
#define RAW_3(nr, a, b, c)                           raw6(nr, (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define RAW_4(nr, a, b, c, d)                        raw6(nr, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)
#define RAW_5(nr, a, b, c, d, e)                                                               \
	raw6(nr, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), 0)
#define RAW_6(nr, a, b, c, d, e, f)                                                            \
	raw6(nr, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
/* raw(SYS_name, arguments...): the result, -errno on failure. */
#define raw(...)                                                                               \
	RAW_PICK(__VA_ARGS__, RAW_6, RAW_5, RAW_4, RAW_3, RAW_2, RAW_1, RAW_0, 0)(__VA_ARGS__)

static inline int raw_failed(long result)
{
	return (unsigned long)result > -4096ul;
}

static inline uint64_t raw_read_fs(void)
{
	uint64_t fs;

	__asm__ volatile("rdfsbase %0" : "=r"(fs));
	return fs;
}

static inline void raw_write_fs(uint64_t fs)
{
	__asm__ volatile("wrfsbase %0" ::"r"(fs) : "memory");
}

/* For short critical sections among threads of one process. */
static inline void raw_lock(uint32_t *lock)
{
	while (__atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE))
		raw(SYS_sched_yield);
}

static inline void raw_unlock(uint32_t *lock)
{
	__atomic_store_n(lock, 0, __ATOMIC_RELEASE);
}

/* Sleep while *word is @value; wake all who sleep on it. Private to the process. */
static inline void raw_wait(uint32_t *word, uint32_t value)
{
	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) == value)
		raw(SYS_futex, word, 128 /* FUTEX_WAIT_PRIVATE */, value, 0, 0, 0);
}

static inline void raw_wake(uint32_t *word)
{
	raw(SYS_futex, word, 129 /* FUTEX_WAKE_PRIVATE */, 0x7fffffff, 0, 0, 0);
}

static inline void raw_set_and_wake(uint32_t *word, uint32_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
	raw_wake(word);
}

static inline size_t raw_length(const char *s)
{
	size_t n = 0;

	while (s[n])
		n++;
	return n;
}

static inline void raw_copy(void *to, const void *from, size_t n)
{
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n)::"memory");
}

static inline void raw_zero(void *to, size_t n)
{
	__asm__ volatile("rep stosb" : "+D"(to), "+c"(n) : "a"(0) : "memory");
}

static inline int raw_starts(const char *s, const char *prefix)
{
	while (*prefix)
		if (*s++ != *prefix++)
			return 0;
	return 1;
}

/* "trecr: TEXT" on standard error: for what must not go wrong silently and has no caller to
 * report to. */
static inline void raw_complain(const char *text)
{
	raw(SYS_write, 2, "trecr: ", 7);
	raw(SYS_write, 2, text, raw_length(text));
	raw(SYS_write, 2, "\n", 1);
}

#endif
