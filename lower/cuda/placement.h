/*
 * placement.h - after a restart, variables of modules and managed memory lie where they lay,
 * whatever came and went before.
 *
 * How the driver (580; seen by its mmap calls and the addresses it gives) finds room for them:
 * - It takes addresses as ranges of a multiple of 32 MiB, aligned to that; a range in which
 *   nothing is left is given back. What is 2 MiB or more gets blocks of 2 MiB, in the newest range
 *   that has a hole for it: from the smallest such hole, of those of one size the lowest.
 * - What is smaller shares such a block with others of its context: the smallest hole that
 *   fits, in steps of 256 bytes (managed memory: 512); of such the hole that has been there for
 *   longest.
 * - Reservations of the program are taken from what ranges have left over, before the address
 *   that they ask for is considered.
 *   Managed variables share blocks with those of all contexts of the module's device; those of libraries are with the
 *   first device's.
 * - Each variable is on its own; constants of a program lie together.
 * - The memory for local variables of kernels, of streams and so on comes from the same ranges,
 *   and moves when kernels need more.
 *
 * Here, nothing is left to that. A *place* is what one module or one allocation had in a row; a
 * *filler* is an allocation of ours that keeps room from being used. The addresses of all
 * saved ranges are kept free from the start of the lower half on. Ranges are made there, and
 * filled to the last step with fillers, one of which is just as large as each place. Before a
 * module is loaded again, the fillers of its places are freed, in the order in which it has its
 * variables: as all other room is filled, it finds no other.
 *
 * A module with several places in one heap finds several holes then, and the driver may take
 * them in another order than it once did, when holes were larger, and ranges were not there yet. Nor is it
 * known whether it allocates managed variables before others of a module, behind them, or among them, which
 * matters as it asks for ranges for both in the same way.
 * What else has to be empty for that is found with a model of the driver (place_plan.h). A copy of
 * the module is loaded on trial; should the model be wrong, what else is empty is chosen by
 * chance, over and over. A *way* is the number of such a choice.
 */
#ifndef LOWER_CUDA_PLACEMENT_H
#define LOWER_CUDA_PLACEMENT_H

#include "shared/cuda/cuda_state.h"

struct memory_managed;

/* Before a checkpoint: in which order the driver has taken its ranges; and in the table, how many
 * modules have several places. */
int placement_save(struct cuda_state *s);
/* Before the first context is made: let nothing else be placed there. */
int placement_keep(struct cuda_state *s);
/* When all contexts are there. */
int placement_fill(void);
/* How many places @owner (a module or library) has that are filled yet and of which the driver could take one
 * for another, in @context, NULL: in all. */
unsigned placement_count(const struct object *owner, const void *context);
/* Whether its managed variables, which a library has once for all contexts, are made. */
int placement_has_managed(const struct object *owner);
/* They are empty, for what is made next. Where there is more than one, the driver may take them
 * in another order than it once did: @way 0 has empty what else is to be (place_plan.h), others
 * have something by chance. */
#define PLACEMENT_WAYS 200
int placement_open(const struct object *owner, const void *context, unsigned way);
int placement_is_empty(uint64_t address);
/* The owner has them. */
void placement_made(const struct object *owner, const void *context);
/* The same for managed memory. */
int placement_open_managed(const struct memory_managed *m);
/* What is empty and has not been made is filled again. */
int placement_close(void);
/* All is made. */
int placement_end(void);

#endif
