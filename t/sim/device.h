/*
 * device.h - the devices of the simulated driver, and the context of the calling thread.
 */
#ifndef T_SIM_DEVICE_H
#define T_SIM_DEVICE_H

#define SIM_DEVICES 4 /* at most */

/* 0, or the driver's result when it is not initialised, or this thread has no context. */
int sim_ready(void);
int sim_have_context(void);

/* 0, or what is wrong with @device. */
int sim_check_device(int device);

/* The current context is about to run something, which takes more memory for local variables
 * when it is the first. */
void device_runs(void);

/* This thread's context; NULL: none. */
void *current_context(void);
/* Its number. */
int current_device(void);
void make_current(void *context);
int cuCtxCreate_v2(void **context, unsigned flags, int device);
/* How often it was asked for what stubs may know: the current context, its device, what is kept
 * with it. */
extern int device_times_asked;

/* background.c: with "background 1" in SIM_MACHINE_FILE, a thread of the driver's works from now on. */
void sim_work_in_background(void);

/* module.c: print what kernels have said. */
void module_print(void);

#endif
