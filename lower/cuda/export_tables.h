/* export_tables.h - the driver's tables of functions without names, at a restart with another build. */
#ifndef LOWER_CUDA_EXPORT_TABLES_H
#define LOWER_CUDA_EXPORT_TABLES_H

/*
 * Tables that the program got from another build of the driver are where they were, in pages of their
 * own, and lead to this driver's functions. Refused, if the driver has no such table, or one of
 * another form. 0, or -1 by agent_fail().
 */
int export_tables_replay(void);

#endif
