/*
 * Questions that runtime libraries ask many times for each thing they do (PyTorch nine times a
 * kernel): which device the thread's current context is on, and whether a device's primary
 * context is there. Their answers are kept, and given without a crossing (answers.inc).
 *
 * A kept answer is a word that is compared with cuda_state.changes, which grows with each
 * change that any thread may make to a context. The word of the thread's device goes as well
 * with all that may change which context is the thread's current one: calls of class "thread"
 * and functions without a name set it to 0, behind the crossing. Recorded calls that have to
 * do with a context count as changes, whether we know the context or not. A signal handler or
 * a callback that comes in the middle of such a call keeps no answer; what it may be given is
 * as it was before the call, which has not returned. A child of fork has no answers: words and
 * changes are in pages that are wiped there.
 *
 * The driver answers both also after an error of the device that the program cannot get over
 * (seen with driver 580).
 */
#include "stubs/cuda/objects.h"

STUB_HIDDEN void answers_changed(void)
{
	if (state_usable())
		__atomic_add_fetch(&CUDA_STATE->changes, ANSWERS_STEP, __ATOMIC_ACQ_REL);
}

/* What keep() takes for an answer asked for from now on; @word may be NULL. */
static uint64_t ask(uint64_t *word)
{
	uint64_t asked;

	if (!word || !state_usable())
		return 0;
	asked = __atomic_load_n(&CUDA_STATE->changes, __ATOMIC_ACQUIRE) + ANSWERS_ASKED;
	__atomic_store_n(word, asked, __ATOMIC_RELEASE);
	return asked;
}

/* Unless the word has been set to something else since. */
static void keep(uint64_t *word, uint64_t asked, uint64_t answer)
{
	uint64_t known = asked - ANSWERS_ASKED + 1 + answer;

	if (asked && answer <= ANSWERS_MAX)
		__atomic_compare_exchange_n(
			word, &asked, known, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

int body_cuCtxGetDevice(int *device)
{
	uint64_t *word = crossing_thread_word(), asked = ask(word);
	int r = real_cuCtxGetDevice(device);

	if (!r && device)
		keep(word, asked, (unsigned)*device);
	return r;
}

int body_cuCtxGetDevice_v2(int *device, void *context)
{
	uint64_t *word = context ? NULL : crossing_thread_word(), asked = ask(word);
	int r = real_cuCtxGetDevice_v2(device, context);

	if (!r && device)
		keep(word, asked, (unsigned)*device);
	return r;
}

int body_cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active)
{
	uint64_t *word =
		(unsigned)device < CUDA_DEVICES ? &CUDA_STATE->primaries[device] : NULL;
	uint64_t asked = ask(word);
	int r = real_cuDevicePrimaryCtxGetState(device, flags, active);

	/* One that is not there may be made by ways that do not lead past here. */
	if (!r && flags && active && *active)
		keep(word, asked, *flags);
	return r;
}
