/*
 * What device code prints comes out of the driver in a call that waits for the device, and has a
 * place among what the program prints itself: before what the program prints after that call, and
 * behind what it has printed by then. When it comes out for the lower half's agent, which waits on
 * behalf of a checkpoint, it is saved in the records (lower/device_printf.c). It is printed where the
 * program's next call that waits would have let it out.
 *
 * The agent says that it may keep something, or that it has, and then arms: crossing_print() comes
 * in place of crossing().
 */
#include <stdio.h>

#include "shared/records.h"
#include "stubs/crossing/internal.h"

/* lower_table.print, by its thunk. */
HIDDEN long output_print(const char *text, size_t size)
{
	return fwrite(text, 1, size, stdout);
}

static int may_print(void)
{
	return __atomic_load_n(&RECORDS->device_awaited, __ATOMIC_SEQ_CST) ||
	       __atomic_load_n(&RECORDS->printed, __ATOMIC_SEQ_CST);
}

static void disarm_output(void)
{
	void (**cross)(void) = RECORDS->print_cross;

	if (!cross) /* This is a child of fork: the kernel has wiped the records here. */
		return;
	__atomic_store_n(cross, crossing, __ATOMIC_SEQ_CST);
	if (may_print()) /* The agent has armed meanwhile. */
		__atomic_store_n(cross, (void (*)(void))crossing_print, __ATOMIC_SEQ_CST);
}

/* @slot is what r11 leads crossing() to: a target, or the word of a piece of code in front of one.
 * Functions without a name are not known to let anything out. */
static int flushes_output(void *const *slot)
{
	const struct crossing_library *l = process_find_library(slot);
	void *const *targets = l ? l->lower.targets : NULL;

	if (!l || !l->flushes)
		return 0;
	if (slot >= targets && slot < targets + l->target_count)
		return l->flushes(slot - targets);
	return l->flushes(l->word_calls[slot - l->words]);
}

/* Of several threads one prints the text. */
HIDDEN void output_print_kept(void)
{
	struct records_text *t = __atomic_exchange_n(&RECORDS->printed, NULL, __ATOMIC_ACQ_REL);

	if (!t)
		return;
	output_print(t->text, t->size);
	__atomic_store_n(&RECORDS->printed_spare, t, __ATOMIC_RELEASE);
}

/* Before the function of @slot is called. Not 0: output_print_kept() is to be called after it, as
 * the agent, waiting at the same time, may have taken what the function would have let out. */
HIDDEN long output_before_call(void *const *slot)
{
	int flushed = flushes_output(slot);

	if (flushed)
		output_print_kept();
	if (!may_print())
		disarm_output();
	return flushed;
}
