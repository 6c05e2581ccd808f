/*
 * kcmp_search.c - a binary search whose comparison is kcmp(2).
 */
#include "supervisor/target/kcmp_search.h"

int kcmp_search(
	size_t count, kcmp_compare *compare, const void *context, size_t *at, struct err *e)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		int r = compare(context, mid, e);

		if (r < 0)
			return -1;
		if (!r) {
			*at = mid;
			return 1;
		}
		if (r == 1)
			low = mid + 1;
		else
			high = mid;
	}
	*at = low;
	return 0;
}
