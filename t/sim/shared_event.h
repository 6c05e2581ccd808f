/* shared_event.h - events of several processes: in memory that they share. */
#ifndef T_SIM_SHARED_EVENT_H
#define T_SIM_SHARED_EVENT_H

#include <stdbool.h>

struct shared_event;

/* The one in the file @fd. It stays mapped, as work may come that is about it. */
struct shared_event *shared_event_map(int fd);
/* All records that there have been have come to their turn; wait until those have. */
bool shared_event_is_done(const struct shared_event *event);
void shared_event_await(struct shared_event *event);
/* Work for @stream: 0 or the driver's result. */
int shared_event_record(struct shared_event *event, void *stream);
int shared_event_wait(struct shared_event *event, void *stream);

#endif
