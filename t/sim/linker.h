/* linker.h - linker states. */
#ifndef T_SIM_LINKER_H
#define T_SIM_LINKER_H

/* All that goes with a context. */
void linkers_context_gone(const void *context);

#endif
