/* Pipes between processes, with bytes in them, and ends that tell when a process has gone. */
#include "tree.h"

static int down[2], up[2], full[2];
static pid_t child;

static void take_ends(void)
{
	close(down[1]);
	close(up[0]);
	close(full[0]);
}

static void answer(void)
{
	char text[16] = "";

	/* Written before the checkpoint, for us to read after it. */
	CHECK(read(down[0], text, sizeof(text)) == 5 && !memcmp(text, "bytes", 5), "'%s'",
		text);
	CHECK(write(up[1], "answer", 6) == 6, "%s", strerror(errno));
	CHECK(read(down[0], text, sizeof(text)) == 0, "'%s' instead of the end", text);
}

void victim_hurt(void)
{
	char c;

	MUST(read(full[0], &c, 1) == 1);
}

int main(void)
{
	static char block[4096], text[16];
	size_t filled = 0, left = 0;
	ssize_t n;

	MUST(!pipe(down) && !pipe(up) && !pipe(full));
	child = tree_child(take_ends, answer);
	close(down[0]);
	close(up[1]);
	MUST(write(down[1], "bytes", 5) == 5);
	fcntl(full[1], F_SETFL, O_NONBLOCK);
	memset(block, 'x', sizeof(block));
	while ((n = write(full[1], block, sizeof(block))) > 0)
		filled += n;
	tree_await(1);
	victim_ready();
	victim_wait();
	tree_open(1);
	CHECK(read(up[0], text, sizeof(text)) == 6 && !memcmp(text, "answer", 6), "'%s'", text);
	close(down[1]);
	CHECK(read(up[0], text, 1) == 0, "the other end is still open");
	CHECK(tree_hear() == 'k', "the child");
	tree_reap(child, 0);
	close(full[1]);
	while ((n = read(full[0], block, sizeof(block))) > 0)
		left += n;
	CHECK(left == filled, "%zu bytes were in a pipe, now %zu", filled, left);
	return victim_done();
}
