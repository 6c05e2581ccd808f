/*
 * sysv_kinds.c - the table of the kinds of System V objects, and what their functions have in
 * common.
 */
#include "supervisor/sysv/sysv_kinds.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/util.h"

const struct sysv_kind *const sysv_kinds[SYSV_KINDS] = {&sysv_shm, &sysv_sem, &sysv_msg};

const struct sysv_kind *sysv_kind_of(uint32_t kind)
{
	for (size_t i = 0; i < SYSV_KINDS; i++)
		if (sysv_kinds[i]->kind == kind)
			return sysv_kinds[i];
	return NULL;
}

struct fd_object sysv_new_object(
	struct fd_dump *d, const struct sysv_kind *k, const struct sysv_status *s)
{
	struct fd_object o = {
		.o =
			{
				.kind = k->kind,
				.dev = (uint32_t)s->perm.__key,
				.inode = s->id,
				.mode = s->perm.mode,
				.size = s->size,
				.flags = s->unused ? IMAGE_SYSV_UNUSED : 0,
				.args[0] = s->perm.uid | (uint64_t)s->perm.gid << 32,
			},
		.fd = -1,
		.text = xasprintf("%s %d (key %#x)", k->what, s->id, (unsigned)s->perm.__key),
		.link = xstrdup(""),
		.attached = s->attached,
	};

	o.o.name = image_writer_string(d->job, o.text);
	return o;
}

int sysv_set_perm(const struct image_object *o, struct ipc_perm *perm, bool as_was,
	sysv_set_fn *set, void *d)
{
	uid_t uid = perm->uid;
	gid_t gid = perm->gid;

	as_was = as_was && (perm->mode & 0777) == (o->mode & 0777);
	perm->uid = o->args[0];
	perm->gid = o->args[0] >> 32;
	perm->mode = o->mode & 0777;
	if (!set(o->inode, d))
		return 0;
	if (errno != EINVAL)
		return -1;
	perm->uid = uid;
	perm->gid = gid;
	if (!set(o->inode, d))
		return 0;
	return errno == EINVAL && as_was ? 0 : -1;
}

bool sysv_keeps_owner_out(const struct image_object *o)
{
	return (o->mode & 0600) != 0600;
}

int sysv_let_in(int id, int status, struct ipc_perm *perm, sysv_set_fn *set, void *d)
{
	if (status || (perm->mode & 0600) == 0600)
		return status;
	perm->mode |= 0600;
	return set(id, d);
}
