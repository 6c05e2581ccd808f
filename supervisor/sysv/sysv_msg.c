/*
 * sysv_msg.c - System V message queues.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/msg.h>
#include <sys/syscall.h>

#include "lib/limits.h"
#include "lib/util.h"
#include "supervisor/fd/objects_restore.h"
#include "supervisor/sysv/sysv_kinds.h"
#include "supervisor/sysv/sysv_owner.h"

/* ---- checkpoint ---- */

static int highest_queue(struct sysv_asker *a, int64_t *highest, struct err *e)
{
	return SYSV_ASK(a, highest, e, SYS_msgctl, 0, MSG_INFO, a->scratch + SYSV_ANSWER);
}

static int ask_queue(
	struct sysv_asker *a, int call, int which, struct sysv_status *s, struct err *e)
{
	struct msqid_ds d;
	int64_t id;

	if (SYSV_ASK(a, &id, e, SYS_msgctl, which, call, a->scratch + SYSV_ANSWER))
		return -1;
	if (id < 0)
		return -id;
	if (sysv_answer(a, &d, sizeof(d), e))
		return -1;
	sysv_status_begin(s, &d.msg_perm, call == IPC_STAT ? which : id, d.msg_ctime);
	s->size = d.msg_qbytes;
	s->messages = d.msg_qnum;
	s->bytes = d.__msg_cbytes;
	s->unused = !d.msg_stime && !d.msg_rtime;
	s->used = sysv_later(d.msg_stime, d.msg_rtime);
	sysv_status_add_user(s, d.msg_lspid);
	sysv_status_add_user(s, d.msg_lrpid);
	return 0;
}

static bool waits_at_queue(long nr)
{
	return nr == SYS_msgrcv || nr == SYS_msgsnd;
}

static int copy_message(
	struct sysv_asker *a, struct fd_object *o, uint64_t index, struct err *e)
{
	struct image_queue_message m = {0};
	int64_t n;

	/* CONFIG_CHECKPOINT_RESTORE: a copy of the message, which stays. */
	if (SYSV_ASK(a, &n, e, SYS_msgrcv, o->o.inode, a->scratch + SYSV_ANSWER,
		    SYSV_SCRATCH - 8, index, MSG_COPY | IPC_NOWAIT | MSG_NOERROR))
		return -1;
	if (n < 0)
		return err_set(e, -n, "%s: cannot copy message %" PRIu64 "%s", o->text, index,
			n == -EACCES ? SYSV_MODE_HINT : "");
	if (n > SYSV_SCRATCH - 16)
		return err_set(e, 0, "%s: message %" PRIu64 " is too long", o->text, index);
	if (sysv_answer(a, &m.type, sizeof(m.type), e))
		return -1;
	m.size = n;
	buf_push(&o->bytes, struct image_queue_message, &m);
	return sysv_read(
		a, a->scratch + SYSV_ANSWER + sizeof(m.type), buf_grow(&o->bytes, n), n, e);
}

static int copy_queue(
	struct sysv_asker *a, struct fd_object *o, const struct sysv_status *s, struct err *e)
{
	o->o.args[1] = s->size;
	for (uint64_t i = 0; i < s->messages; i++)
		if (copy_message(a, o, i, e))
			return -1;
	o->o.size = o->bytes.len;
	return 0;
}

/* ---- restart ---- */

/* The kernel does not show waiters at a queue. What is in one is no sign of another one. */
static int look_at_queue(const struct image_object *o, struct sysv_found *found)
{
	struct msqid_ds d;

	if (msgctl(o->inode, IPC_STAT, &d))
		return -1;
	*found = (struct sysv_found){
		.key = d.msg_perm.__key,
		.size = o->size,
		.used_by_now = sysv_is_alive(d.msg_lspid, d.msg_stime) ||
			       sysv_is_alive(d.msg_lrpid, d.msg_rtime),
		.ever_used = d.msg_stime || d.msg_rtime,
	};
	return 0;
}

static int find_queue(key_t key)
{
	return msgget(key, 0);
}

static int make_queue(const struct image_object *o)
{
	return msgget(o->dev, SYSV_NEW);
}

static void remove_queue(int id)
{
	(void)msgctl(id, IPC_RMID, NULL);
}

static int set_queue(int id, void *d)
{
	return msgctl(id, IPC_SET, d);
}

static int let_into_queue(int id)
{
	struct msqid_ds d;

	return sysv_let_in(id, msgctl(id, IPC_STAT, &d), &d.msg_perm, set_queue, &d);
}

static int send_messages(int id, const char *data, size_t size, struct err *e)
{
	struct image_queue_message m;

	for (size_t at = 0; at < size; at += sizeof(m) + m.size) {
		cleanup_free struct msgbuf *message = NULL;

		if (size - at < sizeof(m))
			return err_set(e, 0, "the image is damaged");
		memcpy(&m, data + at, sizeof(m));
		if (m.size > size - at - sizeof(m))
			return err_set(e, 0, "the image is damaged");
		message = xmalloc(sizeof(*message) + m.size);
		message->mtype = m.type;
		memcpy(message->mtext, data + at + sizeof(m), m.size);
		if (msgsnd(id, message, m.size, IPC_NOWAIT))
			return err_set(e, errno, "cannot send a message");
	}
	return 0;
}

static int set_perm_and_room(const struct image_object *o, uint64_t bytes, struct err *e)
{
	struct msqid_ds d;
	bool as_was;

	if (msgctl(o->inode, IPC_STAT, &d))
		return err_set(e, errno, "cannot examine it");
	as_was = d.msg_qbytes == bytes;
	d.msg_qbytes = bytes;
	if (sysv_set_perm(o, &d.msg_perm, as_was, set_queue, &d))
		return limit_err(e, errno, SYS_msgctl, "cannot set its owner, mode and size");
	return 0;
}

/* The next checkpoint tells a queue's owner by its last user (sysv_owner.h). */
static int use_queue(int id, struct err *e)
{
	struct msgbuf message = {.mtype = 1};

	return msgsnd(id, &message, 0, IPC_NOWAIT) || msgrcv(id, &message, 0, 0, IPC_NOWAIT) < 0
		       ? err_set(e, errno, "cannot send a message")
		       : 0;
}

static int fill_queue(
	struct fd_restore *r, uint32_t number, const struct image_object *o, struct err *e)
{
	cleanup_buf struct buf messages = {0};
	char *data = buf_grow(&messages, o->size);
	struct {
		long type;
		char byte;
	} old;

	while (msgrcv(o->inode, &old, 1, 0, IPC_NOWAIT | MSG_NOERROR) >= 0)
		;
	if (errno != ENOMSG)
		return err_set(e, errno, "cannot empty it");
	if (!o->size && !(o->flags & IMAGE_SYSV_UNUSED) && use_queue(o->inode, e))
		return -1;
	if (fd_contents(r->job, number, o->size, data, e))
		return -1;
	/* It may hold more than it would take now. */
	if (o->args[1] < o->size && send_messages(o->inode, data, o->size, e))
		return -1;
	if (set_perm_and_room(o, o->args[1], e))
		return -1;
	return o->args[1] >= o->size ? send_messages(o->inode, data, o->size, e) : 0;
}

const struct sysv_kind sysv_msg = {
	.kind = IMAGE_OBJECT_MSG,
	.what = "System V message queue",
	.next_id = "/proc/sys/kernel/msg_next_id",
	.get = SYS_msgget,
	.set = SYS_msgctl,
	.stat = MSG_STAT,
	.stat_any = MSG_STAT_ANY,
	.highest = highest_queue,
	.ask = ask_queue,
	.waits_at = waits_at_queue,
	.copy = copy_queue,
	.look = look_at_queue,
	.find = find_queue,
	.make = make_queue,
	.let_in = let_into_queue,
	.fill = fill_queue,
	.remove = remove_queue,
};
