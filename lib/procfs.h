/*
 * procfs.h - what /proc says about processes and their memory (man proc).
 */
#ifndef LIB_PROCFS_H
#define LIB_PROCFS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "lib/err.h"

/* One line of /proc/PID/maps, with what smaps adds. */
struct vma {
	uint64_t start, end, offset;
	uint64_t dev, inode; /* dev as makedev() makes it */
	uint64_t page_size;
	uint32_t prot, max_prot; /* PROT_*; max: what mprotect could still give */
	bool shared;
	bool in_common; /* pages of it are mapped elsewhere, too: by children of fork(2), say */
	bool swapped;   /* some of it is; of shared memory, no matter who has touched it */
	uint64_t own_bytes; /* of pages that are no file's, in memory or swapped out */
	unsigned protection_key;
	uint64_t flags; /* VMA_* */
	char *name;     /* as shown, "" for none */
};

/* The two-letter VmFlags that matter, as bits. */
#define VMA_GROWSDOWN   (1u << 0)  /* gd */
#define VMA_LOCKED      (1u << 1)  /* lo */
#define VMA_NORESERVE   (1u << 2)  /* nr */
#define VMA_SEQUENTIAL  (1u << 3)  /* sr */
#define VMA_RANDOM      (1u << 4)  /* rr */
#define VMA_DONTFORK    (1u << 5)  /* dc */
#define VMA_DONTDUMP    (1u << 6)  /* dd */
#define VMA_WIPEONFORK  (1u << 7)  /* wf */
#define VMA_MERGEABLE   (1u << 8)  /* mg */
#define VMA_HUGEPAGE    (1u << 9)  /* hg */
#define VMA_NOHUGEPAGE  (1u << 10) /* nh */
#define VMA_HUGETLB     (1u << 11) /* ht */
#define VMA_IO          (1u << 12) /* io */
#define VMA_PFNMAP      (1u << 13) /* pf */
#define VMA_UFFD        (1u << 14) /* um, ui */
#define VMA_SHADOWSTACK (1u << 15) /* ss */
#define VMA_LOCKONFAULT (1u << 16) /* lf, seen on some kernels */
#define VMA_SEALED      (1u << 17) /* sl */
#define VMA_DROPPABLE   (1u << 18) /* dp */
#define VMA_UFFD_WP     (1u << 19) /* uw */

struct vma_list {
	struct vma *v;
	size_t count;
};

/* The memory map of @pid, by address. The caller frees it with vma_list_free(). The kernel looks at each page
 * that is in memory, 5 to 50 ms per GiB. */
int procfs_vmas(pid_t pid, struct vma_list *list, struct err *e);
/* The same by /proc/PID/maps, where no pages are looked at. Of each region only the range, the offset, the file,
 * prot, shared and the name are filled. */
int procfs_maps(pid_t pid, struct vma_list *list, struct err *e);
/* The same of @text, which is that of maps or smaps, and is changed. */
void vma_list_parse(char *text, struct vma_list *list);
void vma_list_free(struct vma_list *list);

/* Of /proc/PID/task/TID/stat, as man proc_pid_stat numbers them. */
enum proc_stat_field {
	STAT_PPID = 4,
	STAT_PGRP = 5,
	STAT_SESSION = 6,
	STAT_TTY = 7,
	STAT_TTY_GROUP = 8,
	STAT_FLAGS = 9,
	STAT_START_TIME = 22,
	STAT_START_CODE = 26,
	STAT_END_CODE = 27,
	STAT_START_STACK = 28,
	STAT_EXIT_SIGNAL = 38,
	STAT_PROCESSOR = 39,
	STAT_START_DATA = 45,
	STAT_END_DATA = 46,
	STAT_START_BRK = 47,
	STAT_ARG_START = 48,
	STAT_ARG_END = 49,
	STAT_ENV_START = 50,
	STAT_ENV_END = 51,
	STAT_EXIT_CODE = 52,
	STAT_FIELDS
};

struct proc_stat {
	char state;
	char comm[64];
	uint64_t field[STAT_FIELDS]; /* by enum proc_stat_field */
};

/* One process, and none that gets its id later. */
struct proc_identity {
	pid_t pid;
	uint64_t start_time; /* STAT_START_TIME */
};

int procfs_stat(pid_t pid, pid_t tid, struct proc_stat *st, struct err *e);
/* Whether it is a thread of the kernel's, which has made it among the process's own for work of
 * io_uring: it runs none of the program's code. */
bool procfs_is_worker(const struct proc_stat *st);
/* When it was made, in seconds of CLOCK_REALTIME, to about a second. */
time_t procfs_start_time(const struct proc_stat *st);

/* The text of /proc/PID/task/TID/status, the caller's to free; NULL on failure. */
char *procfs_status(pid_t pid, pid_t tid, struct err *e);
/* The value behind "@key:" in such a text, up to the end of its line, or "". Belongs to the
 * text. Numbers are read from it with strtoull. */
const char *status_value(const char *status, const char *key);
uint64_t status_number(const char *status, const char *key, int base);
/* Whether we have @capability, in our user namespace. */
bool procfs_has_capability(int capability);
/* Whether signal @signal waits for @pid, for no thread of it in particular. */
bool procfs_is_pending(pid_t pid, int signal);
/* The last number on the line of @key: the innermost namespace's for NSpid and the like. */
uint64_t status_last_number(const char *status, const char *key);
/* The @n-th number on that line, counted from 1: that of the @n-th of the nested namespaces. 0: there are not so
 * many. */
uint64_t status_nth_number(const char *status, const char *key, size_t n);
/* How many numbers there are on it. */
size_t status_count_numbers(const char *status, const char *key);

/* Ids in /proc/PID/task, or the children of all its threads; *ids is the caller's to free. */
int procfs_tasks(pid_t pid, pid_t **ids, size_t *count, struct err *e);
int procfs_children(pid_t pid, pid_t **ids, size_t *count, struct err *e);
/* The same of these of its threads only, where they have been listed already. */
int procfs_children_of(pid_t pid, const pid_t *tasks, size_t task_count, pid_t **ids,
	size_t *count, struct err *e);
/* The children of one thread, the oldest first. */
int procfs_thread_children(pid_t pid, pid_t tid, pid_t **ids, size_t *count, struct err *e);

/* The last process id that the kernel gave out (in our pid namespace), or 0. */
pid_t procfs_last_pid(void);

#endif
