/* stream.h - work in order, on threads of the driver's own. */
#ifndef T_SIM_STREAM_H
#define T_SIM_STREAM_H

#include <stddef.h>

/* Queue @work(@data) on @stream (NULL: the default stream). @data, allocated with malloc, is
 * freed after. 0, or the driver's result. */
int stream_queue(void *stream, void (*work)(void *data), void *data, const char *function);
/* Wait until all queued so far is done. */
int stream_wait(void *stream, const char *function);
int stream_wait_all(void);
/* Its default stream is no more. */
void stream_context_gone(void *context);
/* A copy of @size bytes, for stream_queue. */
void *stream_data(const void *data, size_t size);

#endif
