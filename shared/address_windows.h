/*
 * address_windows.h - who may have memory where (x86-64, 47 bit).
 *
 * What lies in the window of the lower half is lower, by construction: nothing is guessed from
 * names in /proc/PID/maps. The window works with AddressSanitizer (its heap is at
 * 0x600000000000, its shadow ends at 0x10007fff8000); ThreadSanitizer leaves no room.
 *
 * This header stands alone and is for assembly too.
 */
#ifndef SHARED_ADDRESS_WINDOWS_H
#define SHARED_ADDRESS_WINDOWS_H

#define LOWER_WINDOW       0x480000000000
#define LOWER_WINDOW_SHIFT 40
#define LOWER_WINDOW_SIZE  (1ul << LOWER_WINDOW_SHIFT)
#define LOWER_WINDOW_TOP   0x48 /* address >> LOWER_WINDOW_SHIFT */

/* Fixed places. Jumps reach +-2 GiB, so all code that is patched and all code that patches lead
 * to lies in the lowest 2 GiB. */
#define LOWER_CORE        (LOWER_WINDOW + 0x00000000) /* code behind the patches (bringup) */
#define LOWER_SHARED      (LOWER_WINDOW + 0x00800000) /* struct lower_table (shared/table.h) */
#define LOWER_SHARED_SIZE 0x10000
#define LOWER_PATCHES     (LOWER_WINDOW + 0x00c00000)
#define LOWER_PATCH_SIZE  0x100000
#define LOWER_RUNTIME     (LOWER_WINDOW + 0x01000000) /* the program trecr-lower */
#define LOWER_LDSO        (LOWER_WINDOW + 0x02000000)
#define LOWER_STACK       (LOWER_WINDOW + 0x10000000) /* of the first lower thread */
#define LOWER_STACK_SIZE  0x800000

/* Places of their own in ld.so's part: each of the first libraries (lower/library.c). */
#define LOWER_LIBRARIES    (LOWER_WINDOW + 0x40000000)
#define LOWER_LIBRARY_SIZE 0x10000000
/* And, up to where jumps reach no further, one for another build of the driver where the program
 * holds addresses of the first. */
#define LOWER_LIBRARY_SPARE (LOWER_WINDOW + 0x70000000)

/* The rest is given out by an allocator in separate parts, so that the addresses the driver
 * gets do not depend on what threads do. */
#define LOWER_PART_LDSO   (LOWER_WINDOW + 0x20000000)
#define LOWER_PART_LIBC   (LOWER_WINDOW + 0x1000000000)
#define LOWER_HEAP        (LOWER_WINDOW + 0x2000000000) /* lower/heap.c */
#define LOWER_HEAP_SIZE   0x2000000000
#define LOWER_PART_STACKS (LOWER_WINDOW + 0x4000000000)
#define LOWER_PART_DRIVER (LOWER_WINDOW + 0x6000000000)
#define LOWER_PART_END    (LOWER_WINDOW + 0x10000000000)

/* Records of the upper half (shared/records.h): what makes the lower half's state again. Upper
 * memory, so it is in an image as all else is; at a fixed place, for readers from
 * outside. */
#define RECORDS_WINDOW       0x47f000000000
#define RECORDS_WINDOW_SIZE  0x1000000000
#define RECORDS_WINDOW_SHIFT 36
#define RECORDS_WINDOW_TOP   0x47f                      /* address >> RECORDS_WINDOW_SHIFT */
#define RECORDS_LIVE         (RECORDS_WINDOW + 0x1000)  /* struct records */
#define RECORDS_LAUNCHER     (RECORDS_WINDOW + 0x8000)  /* struct records_launcher */
#define RECORDS_CUDA         (RECORDS_WINDOW + 0x10000) /* struct cuda_state (cuda_state.h) */
#define RECORDS_HEAP         (RECORDS_WINDOW + 0x20000) /* the rest is given out piece by piece */

/* Memory of the upper half that devices reach too (cuMemHostAlloc and the like). */
#define PINNED_WINDOW 0x46f000000000

/* Messages of MPI that were received for a checkpoint (lower/mpi/drain.c): upper memory. */
#define MESSAGES_WINDOW      0x450000000000
#define MESSAGES_WINDOW_SIZE 0x10000000000

/* Device memory: of each device (devmem/devmem.h), and from GPU_RESERVED on what programs reserve. */
#define GPU_WINDOW      0x200000000000
#define GPU_WINDOW_SIZE 0x200000000000
#define GPU_RESERVED    0x300000000000
/* Contents of CUDA arrays in an image: they have no addresses otherwise. Nothing is mapped here. */
#define ARRAYS_WINDOW      0x3e0000000000
#define ARRAYS_WINDOW_SIZE 0x10000000000
/* A copy of device memory that a checkpoint reads while the program runs on. */
#define SNAPSHOT_WINDOW      0x3f0000000000
#define SNAPSHOT_WINDOW_SIZE 0x10000000000

#ifndef __ASSEMBLER__
static inline int in_lower_window(unsigned long address)
{
	return address >> LOWER_WINDOW_SHIFT == LOWER_WINDOW_TOP;
}

static inline int in_arrays_window(unsigned long address)
{
	return address - ARRAYS_WINDOW < ARRAYS_WINDOW_SIZE;
}

static inline int in_snapshot_window(unsigned long address)
{
	return address - SNAPSHOT_WINDOW < SNAPSHOT_WINDOW_SIZE;
}

static inline int in_records_window(unsigned long address)
{
	return address >> RECORDS_WINDOW_SHIFT == RECORDS_WINDOW_TOP;
}
#endif

#endif
