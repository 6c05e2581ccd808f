/*
 * build_id.c - reads the notes of a file by its program headers.
 */
#include "lib/build_id.h"

#include <elf.h>
#include <string.h>
#include <unistd.h>

#include "lib/util.h"

/* More than any linker makes; a file that has more has none for us. */
#define HEADERS_MAX 256
#define NOTES_MAX   65536

static bool read_at(int fd, void *data, size_t size, uint64_t offset)
{
	return pread(fd, data, size, offset) == (ssize_t)size;
}

static bool is_elf64(const Elf64_Ehdr *eh)
{
	return !memcmp(eh->e_ident, ELFMAG, SELFMAG) && eh->e_ident[EI_CLASS] == ELFCLASS64 &&
	       eh->e_ident[EI_DATA] == ELFDATA2LSB && eh->e_phentsize == sizeof(Elf64_Phdr);
}

static size_t note_align(size_t size)
{
	return (size + 3) & ~(size_t)3;
}

static size_t find_in_notes(const uint8_t *notes, size_t size, uint8_t *id, size_t room)
{
	Elf64_Nhdr n;

	for (size_t at = 0; at + sizeof(n) <= size;) {
		size_t name, desc;

		memcpy(&n, notes + at, sizeof(n));
		name = at + sizeof(n);
		desc = name + note_align(n.n_namesz);
		if (desc > size || n.n_descsz > size - desc)
			return 0;
		if (n.n_type == NT_GNU_BUILD_ID && n.n_namesz == sizeof(ELF_NOTE_GNU) &&
			!memcmp(notes + name, ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU)) &&
			n.n_descsz <= room) {
			memcpy(id, notes + desc, n.n_descsz);
			return n.n_descsz;
		}
		at = desc + note_align(n.n_descsz);
	}
	return 0;
}

static size_t find_in_segment(int fd, const Elf64_Phdr *ph, uint8_t *id, size_t room)
{
	cleanup_free uint8_t *notes = NULL;

	if (ph->p_type != PT_NOTE || !ph->p_filesz || ph->p_filesz > NOTES_MAX)
		return 0;
	notes = xmalloc(ph->p_filesz);
	if (!read_at(fd, notes, ph->p_filesz, ph->p_offset))
		return 0;
	return find_in_notes(notes, ph->p_filesz, id, room);
}

size_t build_id_read(int fd, uint8_t *id, size_t room)
{
	Elf64_Phdr headers[HEADERS_MAX];
	Elf64_Ehdr eh;
	size_t size = 0;

	if (!read_at(fd, &eh, sizeof(eh), 0) || !is_elf64(&eh) || eh.e_phnum > HEADERS_MAX ||
		!read_at(fd, headers, eh.e_phnum * sizeof(*headers), eh.e_phoff))
		return 0;
	for (int i = 0; i < eh.e_phnum && !size; i++)
		size = find_in_segment(fd, &headers[i], id, room);
	return size;
}
