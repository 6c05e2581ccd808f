/*
 * member_text.c - from a struct job_member to text, and back.
 */
#include "supervisor/job/member_text.h"

#include <stdio.h>
#include <string.h>

char *member_text(const struct job_member *m)
{
	cleanup_buf struct buf text = {0};
	char secret[WIRE_KEY_TEXT];

	wire_key_text(secret, m->secret);
	buf_printf(&text, "member %d %d %d %s %u %s\nmachine %s %llu\ninterval %u\n", m->rank,
		m->size, m->supervisor, m->host, m->keep, m->from, m->machine, m->start_time,
		m->interval_s);
	buf_printf(&text, "mpi %04x %04x %d\n", m->mpi_begun, m->mpi_verdict, m->mpi_refused);
	buf_printf(&text, "local %d\nport %d\n", m->local, m->port);
	for (size_t i = 0; i < m->addresses.count; i++)
		buf_printf(&text, "address %s\n", m->addresses.text[i]);
	buf_printf(&text, "secret %s\nend\n", secret);
	BUG_ON(text.len >= MEMBER_TEXT_MAX);
	buf_grow(&text, 1);
	return steal_ptr(text.data);
}

static bool is_member(const struct job_member *m)
{
	return m->rank >= 0 && m->size > 1 && m->size <= JOB_SIZE_MAX && m->port >= 0 &&
	       m->port <= 65535;
}

int member_parse(const char *text, struct job_member *m)
{
	char secret[WIRE_KEY_TEXT] = "";
	int n = 0, refused = 0;

	*m = (struct job_member){0};
	if (sscanf(text,
		    "member %d %d %d %64s %u %39s machine %63s %llu interval %u mpi %x %x %d "
		    "local %d port "
		    "%d\n%n",
		    &m->rank, &m->size, &m->supervisor, m->host, &m->keep, m->from, m->machine,
		    &m->start_time, &m->interval_s, &m->mpi_begun, &m->mpi_verdict, &refused,
		    &m->local, &m->port, &n) < 14 ||
		!n)
		return -1;
	m->mpi_refused = refused;
	for (text += n; m->addresses.count < ADDRESSES_MAX; text += n) {
		n = 0;
		if (sscanf(text, "address %45s\n%n", m->addresses.text[m->addresses.count],
			    &n) != 1 ||
			!n)
			break;
		m->addresses.count++;
	}
	n = 0;
	if (sscanf(text, "secret %64s end%n", secret, &n) != 1 || !n || !is_member(m))
		return -1;
	return wire_parse_key(secret, m->secret);
}
