/* Named pipes whose ends are all inside the program, with bytes in them. */
#include "victim.h"

static int r, w, both;

void victim_hurt(void)
{
	char c;

	if (read(r, &c, 1) != 1)
		victim_failures++;
}

int main(void)
{
	char data[32] = "";
	int n;

	MUST(!mkfifo("fifo", 0600) && !mkfifo("both", 0600));
	r = open("fifo", O_RDONLY | O_NONBLOCK);
	w = open("fifo", O_WRONLY);
	both = open("both", O_RDWR);
	MUST(r > 0 && w > 0 && both > 0);
	MUST(write(w, "hello", 5) == 5 && write(both, "there", 5) == 5);
	victim_ready();
	victim_wait();
	n = read(r, data, 31);
	CHECK(n == 5 && !strcmp(data, "hello"), "%d bytes: '%s'", n, data);
	CHECK(read(r, data, 1) < 0 && errno == EAGAIN, "O_NONBLOCK");
	n = read(both, data, 31);
	CHECK(n == 5 && !memcmp(data, "there", 5), "%d bytes: '%s'", n, data);
	CHECK(write(w, "x", 1) == 1 && read(r, data, 1) == 1, "using it on");
	close(w);
	CHECK(read(r, data, 1) == 0, "no end of file");
	w = open("fifo", O_WRONLY | O_NONBLOCK);
	CHECK(w >= 0 && write(w, "y", 1) == 1 && read(r, data, 1) == 1, "it is another FIFO");
	return victim_done();
}
