/* Pages of anonymous shared memory in another order (remap_file_pages). With an argument, the
 * page of that number is mapped nowhere meanwhile: what it has shows when it is mapped again.
 */
#include "victim.h"

enum { PAGES = 8, PAGE = 4096 };

static char *p;

void victim_hurt(void)
{
	memset(p, 1, PAGES * PAGE);
}

static void put_page(size_t at, size_t page)
{
	if (remap_file_pages(p + at * PAGE, PAGE, 0, page, 0))
		victim_skip("no remap_file_pages here");
}

int main(int argc, char **argv)
{
	int hidden = argc > 1 ? atoi(argv[1]) : -1;

	p = victim_map(PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS);
	for (int i = 0; i < PAGES; i++)
		memset(p + i * PAGE, 'a' + i, PAGE);
	for (int i = 0; i < PAGES; i++)
		put_page(i, PAGES - 1 - i);
	if (hidden >= 0)
		put_page(PAGES - 1 - hidden, hidden ? 0 : 1);
	victim_ready();
	victim_wait();
	if (hidden >= 0)
		put_page(PAGES - 1 - hidden, hidden);
	for (int i = 0; i < PAGES; i++)
		CHECK(p[i * PAGE] == 'a' + PAGES - 1 - i && p[i * PAGE + 77] == p[i * PAGE],
			"page %d holds '%c'", i, p[i * PAGE]);
	for (int i = 0; i < PAGES; i++)
		put_page(i, i);
	for (int i = 0; i < PAGES; i++)
		CHECK(p[i * PAGE] == 'a' + i, "in order, page %d holds '%c'", i, p[i * PAGE]);
	return victim_done();
}
