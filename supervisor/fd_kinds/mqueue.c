/*
 * fd_kinds/mqueue.c - POSIX message queues.
 *
 * What is in one can only be read by receiving it: it is sent again at once, in the same order,
 * which is by priority and, within one, by age; also when we are killed in between
 * (surviving_helper.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <mqueue.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include "lib/limits.h"
#include "lib/procfs.h"
#include "supervisor/fd_kinds/fd_kinds.h"
#include "supervisor/fd/objects_restore.h"
#include "supervisor/fd/objects_dump.h"
#include "supervisor/fd/surviving_helper.h"

#define MQUEUE_MAGIC 0x19800202 /* ipc/mqueue.c */

bool fd_mqueue_match(const struct fd_dump *d, const struct fd_source *s)
{
	struct statfs fs;

	return S_ISREG(s->st.st_mode) && !fstatfs(s->dup, &fs) && fs.f_type == MQUEUE_MAGIC;
}

/* What is being looked at: room for it is made beforehand. */
struct copying {
	mqd_t queue;
	struct mq_attr attr;
	struct buf *bytes;
	struct err *e;
};

static int receive_message(const struct copying *c)
{
	struct timespec now = {0}; /* it has to be there already */
	struct image_queue_message m = {0};
	size_t at = c->bytes->len;
	char *room = buf_grow(c->bytes, sizeof(m) + c->attr.mq_msgsize);
	unsigned priority;
	ssize_t n = mq_timedreceive(
		c->queue, room + sizeof(m), c->attr.mq_msgsize, &priority, &now);

	c->bytes->len = n < 0 ? at : at + sizeof(m) + n;
	if (n < 0)
		return err_set(c->e, errno, "cannot receive its messages");
	m.type = priority;
	m.size = n;
	memcpy(room, &m, sizeof(m));
	return 0;
}

static int send_all(mqd_t queue, const char *data, size_t size, struct err *e)
{
	struct timespec now = {0};
	struct image_queue_message m;

	for (size_t at = 0; at < size; at += sizeof(m) + m.size) {
		if (size - at < sizeof(m))
			return err_set(e, 0, "the image is damaged: messages in a queue");
		memcpy(&m, data + at, sizeof(m));
		if (m.size > size - at - sizeof(m))
			return err_set(e, 0, "the image is damaged: messages in a queue");
		if (mq_timedsend(queue, data + at + sizeof(m), m.size, m.type, &now))
			return err_set(e, errno, "cannot send its messages again");
	}
	return 0;
}

/* The queue's file says how many bytes are in it, and which process is to be notified of the first
 * message in an empty one. */
static int read_info(mqd_t queue, size_t *bytes, struct err *e)
{
	char text[256];
	ssize_t n = pread(queue, text, sizeof(text) - 1, 0);
	const char *pid, *size;

	if (n < 0)
		return err_set(e, errno, "cannot examine it");
	text[n] = 0;
	pid = strstr(text, "NOTIFY_PID:");
	if (pid && strtol(pid + 11, NULL, 10))
		return err_set(e, 0,
			"a process waits for a notification (mq_notify), which is not "
			"supported");
	size = strstr(text, "QSIZE:");
	if (!size)
		return err_set(e, 0, "cannot query how much is in it");
	*bytes = strtoul(size + 6, NULL, 10);
	return 0;
}

static int take_and_put_back(void *arg)
{
	struct copying *c = arg;
	int failed = 0;

	for (long i = 0; i < c->attr.mq_curmsgs && !failed; i++)
		failed = receive_message(c);
	if (send_all(c->queue, c->bytes->data, c->bytes->len, failed ? NULL : c->e))
		failed = -1;
	return failed;
}

static int copy_messages(mqd_t queue, struct fd_object *o, struct err *e)
{
	struct copying c = {.queue = queue, .bytes = &o->bytes, .e = e};
	size_t bytes = 0;

	if (mq_getattr(queue, &c.attr))
		return err_set(e, errno, "cannot examine it");
	if (read_info(queue, &bytes, e))
		return -1;
	/* Its file shows the size of its description as its own. */
	o->o.size = 0;
	o->o.args[1] = c.attr.mq_maxmsg | (uint64_t)c.attr.mq_msgsize << 32;
	if (!c.attr.mq_curmsgs)
		return 0;
	bytes += c.attr.mq_curmsgs * sizeof(struct image_queue_message) + c.attr.mq_msgsize;
	buf_reserve(&o->bytes, bytes);
	if (run_in_surviving_helper(take_and_put_back, &c, e))
		return -1;
	o->o.size = o->bytes.len;
	return 0;
}

int fd_mqueue_dump(struct fd_dump *d, const struct fd_source *s, struct image_description *x,
	struct err *e)
{
	bool known = fd_object_find(d, s->st.st_dev, s->st.st_ino);
	cleanup_free char *path = xasprintf("/proc/%d/fd/%d", s->task, s->fd);
	cleanup_fd int queue = -1;
	struct fd_object *o;

	x->object = fd_object_of(d, s, IMAGE_OBJECT_MQUEUE);
	o = fd_object_at(d, x->object);
	x->path = o->o.name;
	if (known)
		return 0;
	free(o->file);
	o->file = NULL;
	o->o.args[0] = fd_source_owner(s);
	o->o.flags = s->st.st_nlink;
	queue = open(path, O_RDWR | O_CLOEXEC);
	if (queue < 0)
		return err_set(e, errno, "cannot open it for receiving and sending");
	return copy_messages(queue, o, e);
}

/* ---- restart ---- */

int fd_mqueue_check(const struct fd_check *c, const struct image_description *x, struct err *e)
{
	const struct image_object *o =
		fd_object_info(c->job, x->object, IMAGE_OBJECT_MQUEUE, e);

	if (o && o->size > 1u << 30)
		return err_set(
			e, 0, "the image is damaged: a message queue of impossible size");
	return o ? 0 : -1;
}

/* Its name in the namespace's queues, however it was opened. */
static const char *queue_name(const struct fd_restore *r, const struct image_object *o)
{
	return strrchr(image_string(r->job, o->name), '/');
}

static mqd_t make_queue(
	const char *name, bool unlinked, const struct mq_attr *attr, struct err *e)
{
	struct mq_attr now;
	mqd_t queue = mq_open(name, O_RDWR | O_CREAT | (unlinked ? O_EXCL : 0), 0600, attr);

	if (queue < 0) {
		limit_err(e, errno, SYS_mq_open, "cannot create message queue %s", name);
		return -1;
	}
	if (unlinked)
		mq_unlink(name);
	/* A queue that is still there is the program's, as it was at the checkpoint. */
	if (mq_getattr(queue, &now) || now.mq_maxmsg != attr->mq_maxmsg ||
		now.mq_msgsize != attr->mq_msgsize) {
		err_set(e, 0, "message queue %s is not the one of the checkpoint", name);
		mq_close(queue);
		return -1;
	}
	return queue;
}

static int drain_queue(mqd_t queue, size_t size)
{
	cleanup_free char *text = xmalloc(size);
	struct timespec now = {0};

	while (mq_timedreceive(queue, text, size, NULL, &now) >= 0)
		;
	return errno == ETIMEDOUT ? 0 : -1;
}

static int fill_mqueue(struct fd_restore *r, uint32_t number, mqd_t queue, struct err *e)
{
	const struct image_object *o = &r->objects[number - 1];
	cleanup_buf struct buf messages = {0};

	if (drain_queue(queue, o->args[1] >> 32))
		return err_set(e, errno, "cannot empty a message queue");
	if (fd_object_contents(r, number, o->size, &messages, e) ||
		send_all(queue, messages.data, messages.len, e))
		return -1;
	/* Only root could give it away. */
	(void)!fchown(queue, (uid_t)o->args[0], (gid_t)(o->args[0] >> 32));
	return 0;
}

static struct fd_made *make_mqueue(struct fd_restore *r, uint32_t number, struct err *e)
{
	const struct image_object *o = fd_object_info(r->job, number, IMAGE_OBJECT_MQUEUE, e);
	cleanup_free char *temporary = xasprintf("/trecr-%d-%u", getpid(), number);
	struct mq_attr attr = {0};
	struct fd_made *made;
	const char *name;
	mqd_t queue;

	if (!o)
		return NULL;
	made = &r->made[number - 1];
	if (made->fd >= 0)
		return made;
	attr.mq_maxmsg = (uint32_t)o->args[1];
	attr.mq_msgsize = o->args[1] >> 32;
	name = o->flags ? queue_name(r, o) : temporary;
	if (!name) {
		err_set(e, 0, "the image is damaged: a message queue without a name");
		return NULL;
	}
	queue = make_queue(name, !o->flags, &attr, e);
	if (queue < 0)
		return NULL;
	made->fd = fd_lift(r, queue, e);
	return made->fd < 0 || fill_mqueue(r, number, made->fd, e) ? NULL : made;
}

int fd_mqueue_restore(struct fd_restore *r, const struct image_description *x, struct err *e)
{
	struct fd_made *made = make_mqueue(r, x->object, e);

	return made ? fd_open_object(r, made->fd, x, e) : -1;
}

void fd_mqueue_show(const struct image *job, const struct image_description *x, struct buf *out)
{
	const struct image_object *o =
		fd_object_info(job, x->object, IMAGE_OBJECT_MQUEUE, NULL);

	buf_printf(out, "message queue %s%s", image_string(job, x->path),
		o && !o->flags ? ", unlinked" : "");
	if (o)
		buf_printf(out, ", of %u messages at most", (uint32_t)o->args[1]);
}
