/*
 * state/vdso_restore.h - make the old vdso's functions lead to the new one's, where the kernel is another one.
 *
 * A thread that was stopped inside the old one cannot go on there, as only its functions lead to the new one's: the
 * restart is refused, by restore_plan_vdso() (state/restore_plan.h). A handler that is to return into it is refused
 * by syscall/vdso_frames.h. (target/vdso_code.h is about the code that trecr has run in a vdso.)
 */
#ifndef SUPERVISOR_STATE_VDSO_RESTORE_H
#define SUPERVISOR_STATE_VDSO_RESTORE_H

#include <stddef.h>
#include <stdint.h>

#include "lib/err.h"

/* Write, over each function of the vdso @old, a jump to the function of the same name in @new,
 * which lies at address @new_at. Fails when there is none of that name. */
int vdso_redirect(uint8_t *old, size_t old_size, const uint8_t *new, size_t new_size,
	uint64_t new_at, struct err *e);

#endif
