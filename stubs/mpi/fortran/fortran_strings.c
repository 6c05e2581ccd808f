/* Strings, which Fortran pads with blanks. */
#include "stubs/mpi/fortran/fortran.h"

char *string_for_c(struct exchange_memory *memory, const char *text, int length)
{
	int first = 0, end = length > 0 ? length : 0;
	char *copy;

	while (first < end && text[first] == ' ')
		first++;
	while (end > first && text[end - 1] == ' ')
		end--;
	copy = exchange_alloc(memory, end - first + 1);
	if (!copy)
		return NULL;
	for (int i = first; i < end; i++)
		copy[i - first] = text[i];
	copy[end - first] = 0;
	return copy;
}

void string_for_fortran(char *text, int length, const char *from)
{
	int i = 0;

	for (; i < length && from[i]; i++)
		text[i] = from[i];
	for (; i < length; i++)
		text[i] = ' ';
}
