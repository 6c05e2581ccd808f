/* Lines of /proc/PID/maps and smaps are understood as kernels write them. */
#include "lib/procfs.h"
#include "t/unit/tap.h"

int main(void)
{
	char text[] = "55d0c000-55d0e000 r-xs 00001000 fe:00 131 /usr/bin/a program\n"
		      "55d0e000-55d0f000 rw-p 00000000 00:00 0 \n"
		      "Rss:                   4 kB\n"
		      "Anonymous:             4 kB\n"
		      "VmFlags: rd wr mr mw me\n"
		      "55d0f000-55d10000 rw-p 00000000 00:00 0\n"
		      "Anonymous:             8 kB\n"
		      "55d10000-55d11000\n";
	struct vma_list list;

	vma_list_parse(text, &list);
	ok(list.count == 3, "three lines are mappings (%zu)", list.count);
	ok(list.v[0].start == 0x55d0c000 && list.v[0].end == 0x55d0e000 && list.v[0].shared &&
			list.v[0].offset == 0x1000 && list.v[0].inode == 131,
		"one is of a file");
	says(list.v[0].name, "/usr/bin/a program", "whose name may have spaces");
	ok(!list.v[1].inode && !*list.v[1].name && list.v[1].own_bytes == 4096,
		"one is of none");
	ok(list.count > 2 && list.v[2].start == 0x55d0f000 && list.v[2].own_bytes == 8192,
		"and a line may end behind the inode");
	vma_list_free(&list);
	return done_testing();
}
