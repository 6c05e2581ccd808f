/*
 * The first process of a restart makes all open files of the tree, and what they are made of;
 * each process then has them all until its own are in their places (fd_table/descriptor_numbers.c). What
 * is counted here must not be less: the program is gone when the restart finds out.
 */
#include "supervisor/fd_table/descriptors_count.h"

#include "supervisor/fd/object_kinds.h"
#include "supervisor/socket/sockets_dump.h"

/* How many descriptors an object is made with. */
static unsigned made_with(const struct fd_object *o)
{
	const struct object_kind *k = object_kind_of(o->o.kind);

	return k->descriptors + (k->takes_another && k->takes_another(o));
}

static uint64_t count_objects(const struct fd_dump *d)
{
	size_t objects = buf_count(&d->objects, struct fd_object);
	cleanup_free uint8_t *taken = xcalloc(objects + 1, sizeof(*taken));
	uint64_t count = 0;

	for (size_t i = 0; i < buf_count(&d->descriptions, struct fd_described); i++) {
		const struct fd_described *of =
			buf_at(&d->descriptions, struct fd_described, i);
		uint32_t n = of->x.object;

		if (n && n <= objects && of->kind->takes)
			taken[n] |= of->kind->takes(&of->x, fd_object_at(d, n));
	}
	for (uint32_t n = 1; n <= objects; n++)
		count += made_with(fd_object_at(d, n)) - __builtin_popcount(taken[n]);
	return count;
}

/* A connection whose other end no longer exists is made with one. */
static uint64_t count_other_ends(const struct fd_dump *d)
{
	uint64_t count = 0;

	for (uint32_t n = 1; n <= socket_dump_count(d); n++)
		count += socket_dump_at(d, n)->s.state == IMAGE_SOCKET_ENDED;
	return count;
}

uint64_t descriptors_count(const struct fd_dump *d)
{
	return buf_count(&d->descriptions, struct fd_described) + count_objects(d) +
	       count_other_ends(d) + d->most_duplicates + d->in_threads;
}
