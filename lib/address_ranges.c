#include "lib/address_ranges.h"

void address_ranges_add(struct buf *ranges, uint64_t start, uint64_t end)
{
	size_t count = buf_count(ranges, struct address_range);
	struct address_range *last =
		count ? buf_at(ranges, struct address_range, count - 1) : NULL;
	struct address_range range = {start, end};

	if (last && last->end == start)
		last->end = end;
	else
		buf_push(ranges, struct address_range, &range);
}

uint64_t address_ranges_part(const struct buf *ranges, uint64_t at, uint64_t end, bool *inside)
{
	const struct address_range *r = ranges->data;
	size_t low = 0, count = buf_count(ranges, struct address_range), high = count;
	uint64_t border;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (r[mid].end <= at)
			low = mid + 1;
		else
			high = mid;
	}
	*inside = low < count && r[low].start <= at;
	if (low == count)
		return end;
	border = *inside ? r[low].end : r[low].start;
	return border < end ? border : end;
}
