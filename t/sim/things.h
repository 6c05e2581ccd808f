/* things.h - objects that are made and destroyed, and do nothing in between. */
#ifndef T_SIM_THINGS_H
#define T_SIM_THINGS_H

/* The things of @context are no more. */
void things_context_gone(void *context);

#endif
