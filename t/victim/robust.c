/* Locks: a robust mutex whose owner dies after the restart, a priority-inheriting one (the
 * kernel finds its owner by thread id), an error-checking one, a recursive one. */
#include "victim.h"

static pthread_mutex_t robust, pi, checked, recursive;
static pthread_barrier_t before, after;
static bool spoil;

void victim_hurt(void)
{
	spoil = true;
}

static void make_mutex(pthread_mutex_t *m, int robustness, int protocol, int type)
{
	pthread_mutexattr_t a;

	pthread_mutexattr_init(&a);
	pthread_mutexattr_setrobust(&a, robustness);
	pthread_mutexattr_setprotocol(&a, protocol);
	pthread_mutexattr_settype(&a, type);
	MUST(!pthread_mutex_init(m, &a));
}

static void *owner(void *arg)
{
	MUST(!pthread_mutex_lock(&robust) && !pthread_mutex_lock(&pi) &&
		!pthread_mutex_lock(&checked));
	pthread_mutex_lock(&recursive);
	pthread_mutex_lock(&recursive);
	pthread_barrier_wait(&before);
	pthread_barrier_wait(&after);
	CHECK(!pthread_mutex_unlock(&pi), "pi mutex");
	CHECK(!pthread_mutex_unlock(&checked), "error-checking mutex");
	CHECK(!pthread_mutex_unlock(&recursive) && !pthread_mutex_unlock(&recursive),
		"recursive mutex");
	if (spoil)
		pthread_mutex_unlock(&robust);
	/* Ends without letting go of the robust one. */
	return NULL;
}

static void *waiter(void *arg)
{
	int r;

	pthread_barrier_wait(&before);
	r = pthread_mutex_lock(&pi);
	CHECK(!r, "pi mutex: %s", strerror(r));
	pthread_mutex_unlock(&pi);
	return NULL;
}

int main(void)
{
	pthread_t t, w;
	int r;

	make_mutex(&robust, PTHREAD_MUTEX_ROBUST, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_NORMAL);
	make_mutex(&pi, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_INHERIT, PTHREAD_MUTEX_NORMAL);
	make_mutex(
		&checked, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_ERRORCHECK);
	make_mutex(
		&recursive, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_RECURSIVE);
	pthread_barrier_init(&before, NULL, 3);
	pthread_barrier_init(&after, NULL, 2);
	t = victim_thread(owner, NULL);
	w = victim_thread(waiter, NULL);
	pthread_barrier_wait(&before);
	victim_ready();
	victim_wait();
	CHECK(pthread_mutex_trylock(&robust) == EBUSY, "the robust mutex is not held");
	CHECK(pthread_mutex_trylock(&recursive) == EBUSY, "the recursive mutex is not held");
	pthread_barrier_wait(&after);
	pthread_join(t, NULL);
	r = pthread_mutex_lock(&robust);
	CHECK(r == EOWNERDEAD, "lock of a dead owner's robust mutex: %s", strerror(r));
	CHECK(!pthread_mutex_consistent(&robust) && !pthread_mutex_unlock(&robust),
		"it cannot be made consistent");
	pthread_join(w, NULL);
	return victim_done();
}
