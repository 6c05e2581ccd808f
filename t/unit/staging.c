/* However fast the readers of the staging buffer are, each byte is copied once. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "supervisor/split/lower_half.h"
#include "t/unit/tap.h"

#define MIB    (1ul << 20)
#define TOTAL  (200 * MIB + 12288)
#define START  (0x200000000000ul + 8192)
#define CHUNK  MIB
#define CHUNKS ((TOTAL + CHUNK - 1) / CHUNK + 1)

static struct process process;
static struct lower_half lower;
static struct device_range range = {START, START + TOTAL, 0};
static struct staging_stream *stream;
static atomic_ulong copied, orders, under_way, wrong;
static int failing;

static uint64_t word_at(uint64_t address)
{
	return address * 0x9e3779b97f4a7c15;
}

/* In place of the lower half. */
int lower_order(struct process *p, enum lower_request request,
	const struct lower_transfer *transfers, unsigned count, uint64_t deadline_ns,
	struct err *e)
{
	const struct lower_transfer *t = transfers;

	wrong += atomic_fetch_add(&under_way, 1) || request != LOWER_SAVE || count != 1 ||
		 t->offset + t->size > p->lower->staging.size || t->address < range.start ||
		 t->address + t->size > range.end;
	for (uint64_t at = 0; at < t->size; at += 4096)
		*(uint64_t *)(p->lower->staging.data + t->offset + at) =
			word_at(t->address + at);
	copied += t->size;
	orders++;
	under_way--;
	return failing ? err_set(e, 0, "it fails") : 0;
}

static void begin(void)
{
	process.lower = &lower;
	memset(&lower, 0, sizeof(lower));
	staging_init(&lower.staging);
	lower.staging.size = 64 * MIB;
	lower.staging.data = xmalloc(lower.staging.size);
	staging_add(&lower.staging, &lower.staging.wanted, &range);
	stream = &lower.staging.wanted;
	copied = orders = 0;
}

static void end(void)
{
	free(lower.staging.data);
	lower.staging.data = NULL;
	staging_free(&lower.staging);
}

/* Chunks end at multiples of their size. */
static int read_chunk(uint64_t n, char *data)
{
	uint64_t from = n ? START - START % CHUNK + n * CHUNK : START;
	uint64_t to = START - START % CHUNK + (n + 1) * CHUNK;
	struct err e = ERR_INIT;

	if (to > range.end)
		to = range.end;
	if (from >= to)
		return 0;
	if (staging_read(&process, stream, from, data, to - from, &e))
		return -1;
	for (uint64_t at = 0; at < to - from; at += 4096)
		wrong += *(uint64_t *)(data + at) != word_at(from + at);
	return 0;
}

static atomic_ulong next;

static void *read_in_turn(void *argument)
{
	char *data = xmalloc(CHUNK);
	uint64_t n;

	while ((n = next++) < CHUNKS)
		wrong += !!read_chunk(n, data);
	free(data);
	return NULL;
}

int main(void)
{
	char *data = xmalloc(CHUNK);
	pthread_t threads[8];

	begin();
	for (uint64_t n = 0; n < CHUNKS; n += 2 * 12) /* two that are 12 chunks apart */
		for (uint64_t i = 0; i < 12; i++)
			wrong += read_chunk(n + i + 12 < CHUNKS ? n + i + 12 : n + i, data) ||
				 read_chunk(n + i, data);
	ok(!wrong, "one that is ahead of another");
	ok(copied == TOTAL, "each byte is copied once");
	end();

	begin();
	for (int i = 0; i < 8; i++)
		pthread_create(&threads[i], NULL, read_in_turn, NULL);
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	ok(!wrong, "eight at once");
	/* A thread that has not run for long finds that the others are through the whole buffer. */
	ok(copied <= TOTAL * 2, "few bytes are copied twice: %lu of %lu", copied - TOTAL,
		TOTAL);
	end();

	begin();
	failing = 1;
	ok(read_chunk(0, data) < 0 && read_chunk(0, data) < 0, "a failure is told, each time");
	failing = 0;
	ok(!read_chunk(0, data) && !wrong, "and what was copied then is not believed");
	end();
	free(data);
	return done_testing();
}
