/*
 * sock_diag.c - requests and answers of netlink: for UNIX, TCP and packet sockets.
 */
#include "supervisor/socket/sock_diag.h"

#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/packet_diag.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <netinet/tcp.h>
#include <string.h>

/* An answer about one socket; a backlog of 4096 has as many inodes. */
#define ANSWER_SIZE 65536

/* Ask, and return the payload of the one answer in @answer (ANSWER_SIZE bytes), NULL on
 * failure with errno set. */
static const void *ask_sock_diag(
	int nl, const void *question, size_t size, void *answer, size_t need, size_t *rest)
{
	struct nlmsghdr *h = answer;
	ssize_t n;

	if (nl < 0 || send(nl, question, size, 0) != (ssize_t)size)
		return NULL;
	n = recv(nl, answer, ANSWER_SIZE, 0);
	if (n < 0)
		return NULL;
	if (!NLMSG_OK(h, (size_t)n) || h->nlmsg_type == NLMSG_ERROR) {
		const struct nlmsgerr *error = NLMSG_DATA(h);

		errno = NLMSG_OK(h, (size_t)n) ? -error->error : EPROTO;
		return NULL;
	}
	if (h->nlmsg_len < NLMSG_LENGTH(need)) {
		errno = EPROTO;
		return NULL;
	}
	*rest = h->nlmsg_len - NLMSG_LENGTH(NLMSG_ALIGN(need));
	return NLMSG_DATA(h);
}

static void take_unix(struct unix_facts *out, const struct rtattr *a)
{
	const struct unix_diag_rqlen *queue = RTA_DATA(a);
	const struct unix_diag_vfs *file = RTA_DATA(a);

	switch (a->rta_type) {
	case UNIX_DIAG_PEER:
		out->has_peer = true;
		memcpy(&out->peer, RTA_DATA(a), sizeof(out->peer));
		break;
	case UNIX_DIAG_VFS:
		out->has_file = true;
		out->file_dev = file->udiag_vfs_dev;
		out->file_inode = file->udiag_vfs_ino;
		break;
	case UNIX_DIAG_SHUTDOWN:
		memcpy(&out->shutdown, RTA_DATA(a), sizeof(out->shutdown));
		break;
	case UNIX_DIAG_RQLEN:
		out->backlog = queue->udiag_wqueue;
		break;
	case UNIX_DIAG_ICONS:
		buf_add(&out->waiting, RTA_DATA(a), RTA_PAYLOAD(a));
		break;
	default:
		break;
	}
}

struct unix_question {
	struct nlmsghdr head;
	struct unix_diag_req body;
};

/* One of the messages of a dump. */
static const struct unix_diag_msg *find_listener(
	const struct nlmsghdr *h, ssize_t n, uint32_t inode, size_t *rest)
{
	for (; NLMSG_OK(h, (size_t)n); h = NLMSG_NEXT(h, n)) {
		const struct unix_diag_msg *m = NLMSG_DATA(h);

		if (h->nlmsg_type == NLMSG_DONE || h->nlmsg_type == NLMSG_ERROR)
			break;
		*rest = h->nlmsg_len - NLMSG_LENGTH(sizeof(*m));
		if (m->udiag_ino == inode)
			return m;
	}
	return NULL;
}

/* An answer about one socket is a page at most, which some 900 that wait to be accepted fill
 * (unix_diag_get_exact(), net/unix/diag.c). One of those about all listening sockets is as
 * large as what was received with before on this netlink socket, up to 32 KiB. */
static const struct unix_diag_msg *ask_of_all(
	int nl, struct unix_question *question, char *answer, size_t *rest)
{
	const struct unix_diag_msg *m = NULL;
	ssize_t n;

	question->head.nlmsg_flags |= NLM_F_DUMP;
	question->body.udiag_states = 1 << TCP_LISTEN;
	if (send(nl, question, sizeof(*question), 0) != sizeof(*question))
		return NULL;
	while (!m) {
		const struct nlmsghdr *h = (const void *)answer;

		n = recv(nl, answer, ANSWER_SIZE, 0);
		if (n < 0)
			return NULL;
		m = find_listener(h, n, question->body.udiag_ino, rest);
		if (!m && (!NLMSG_OK(h, (size_t)n) || h->nlmsg_type == NLMSG_DONE ||
				  h->nlmsg_type == NLMSG_ERROR)) {
			errno = EMSGSIZE;
			return NULL;
		}
	}
	return m;
}

int socket_diag_unix(uint32_t inode, struct unix_facts *out, struct err *e)
{
	struct unix_question question = {
		.head = {.nlmsg_len = sizeof(question),
			.nlmsg_type = SOCK_DIAG_BY_FAMILY,
			.nlmsg_flags = NLM_F_REQUEST},
		.body = {.sdiag_family = AF_UNIX,
			.udiag_states = ~0u,
			.udiag_ino = inode,
			.udiag_show = UDIAG_SHOW_VFS | UDIAG_SHOW_PEER | UDIAG_SHOW_ICONS |
				      UDIAG_SHOW_RQLEN,
			.udiag_cookie = {~0u, ~0u}},
	};
	cleanup_fd int nl = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	cleanup_free char *answer = xmalloc(ANSWER_SIZE);
	const struct unix_diag_msg *m;
	const struct rtattr *a;
	size_t rest;

	memset(out, 0, sizeof(*out));
	m = ask_sock_diag(nl, &question, sizeof(question), answer, sizeof(*m), &rest);
	if (!m && errno == EMSGSIZE)
		m = ask_of_all(nl, &question, answer, &rest);
	if (!m)
		return err_set(e, errno, "the kernel does not report it (UNIX_DIAG)");
	out->state = m->udiag_state;
	for (a = (const void *)(m + 1); RTA_OK(a, rest); a = RTA_NEXT(a, rest))
		take_unix(out, a);
	return 0;
}

static void set_end(
	const struct sockaddr_storage *a, uint32_t address[4], uint16_t *port, bool v6)
{
	const struct sockaddr_in *a4 = (const void *)a;
	const struct sockaddr_in6 *a6 = (const void *)a;

	*port = a4->sin_port; /* at the same place in both */
	if (a->ss_family == AF_INET6) {
		memcpy(address, &a6->sin6_addr, sizeof(a6->sin6_addr));
		return;
	}
	address[0] = a4->sin_addr.s_addr;
	if (!v6)
		return;
	address[3] = address[0];
	address[0] = address[1] = 0;
	address[2] = htonl(0xffff);
}

int socket_diag_tcp(const struct sockaddr_storage *local, const struct sockaddr_storage *remote,
	struct tcp_facts *out, struct err *e)
{
	bool v6 = local->ss_family == AF_INET6 || remote->ss_family == AF_INET6;
	struct {
		struct nlmsghdr head;
		struct inet_diag_req_v2 body;
	} question = {
		.head = {.nlmsg_len = sizeof(question),
			.nlmsg_type = SOCK_DIAG_BY_FAMILY,
			.nlmsg_flags = NLM_F_REQUEST},
		.body = {.sdiag_family = v6 ? AF_INET6 : AF_INET,
			.sdiag_protocol = IPPROTO_TCP,
			.idiag_states = ~0u},
	};
	cleanup_fd int nl = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	struct inet_diag_sockid *id = &question.body.id;
	cleanup_free char *answer = xmalloc(ANSWER_SIZE);
	const struct inet_diag_msg *m;
	size_t rest;

	memset(out, 0, sizeof(*out));
	set_end(local, id->idiag_src, &id->idiag_sport, v6);
	set_end(remote, id->idiag_dst, &id->idiag_dport, v6);
	id->idiag_cookie[0] = id->idiag_cookie[1] = INET_DIAG_NOCOOKIE;
	m = ask_sock_diag(nl, &question, sizeof(question), answer, sizeof(*m), &rest);
	if (!m && errno == ENOENT)
		return 0;
	if (!m)
		return err_set(e, errno, "the kernel does not report it (INET_DIAG)");
	/* A listening one is found where there is no connection. */
	out->found = m->idiag_state != TCP_LISTEN;
	out->inode = m->idiag_inode;
	/* A connection that waits to be accepted is nobody's, too: it is in a state before these. */
	out->orphan = !m->idiag_inode && m->idiag_state != TCP_ESTABLISHED &&
		      m->idiag_state != TCP_CLOSE_WAIT && m->idiag_state != TCP_SYN_RECV;
	out->unread = m->idiag_rqueue;
	out->unsent = m->idiag_wqueue;
	return 0;
}

static void take_packet(struct packet_facts *out, const struct rtattr *a)
{
	const struct packet_diag_ring *ring = RTA_DATA(a);

	if (a->rta_type == PACKET_DIAG_MCLIST)
		buf_add(&out->memberships, RTA_DATA(a), RTA_PAYLOAD(a));
	if ((a->rta_type == PACKET_DIAG_RX_RING || a->rta_type == PACKET_DIAG_TX_RING) &&
		ring->pdr_block_nr)
		out->has_ring = true;
}

/* 1: one of @h is about socket @inode; 0: none is; -1: and there is nothing more. */
static int take_packets(
	const struct nlmsghdr *h, size_t size, uint32_t inode, struct packet_facts *out)
{
	for (; NLMSG_OK(h, size); h = NLMSG_NEXT(h, size)) {
		const struct packet_diag_msg *m = NLMSG_DATA(h);
		size_t rest = h->nlmsg_len - NLMSG_LENGTH(sizeof(*m));

		if (h->nlmsg_type == NLMSG_DONE || h->nlmsg_type == NLMSG_ERROR)
			return -1;
		if (h->nlmsg_len < NLMSG_LENGTH(sizeof(*m)) || m->pdiag_ino != inode)
			continue;
		for (const struct rtattr *a = (const void *)(m + 1); RTA_OK(a, rest);
			a = RTA_NEXT(a, rest))
			take_packet(out, a);
		return 1;
	}
	return 0;
}

int socket_diag_packet(uint32_t inode, struct packet_facts *out, struct err *e)
{
	struct {
		struct nlmsghdr head;
		struct packet_diag_req body;
	} question = {
		.head = {.nlmsg_len = sizeof(question),
			.nlmsg_type = SOCK_DIAG_BY_FAMILY,
			.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
		.body = {.sdiag_family = AF_PACKET,
			.pdiag_show = PACKET_SHOW_MCLIST | PACKET_SHOW_RING_CFG},
	};
	cleanup_fd int nl = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	cleanup_free char *answer = xmalloc(ANSWER_SIZE);
	int found = 0;

	memset(out, 0, sizeof(*out));
	if (nl < 0 || send(nl, &question, sizeof(question), 0) != sizeof(question))
		return err_set(e, errno, "cannot query the kernel about it");
	while (!found) {
		ssize_t n = recv(nl, answer, ANSWER_SIZE, 0);

		if (n < 0)
			return err_set(e, errno, "cannot query the kernel about it");
		found = take_packets((const void *)answer, n, inode, out);
	}
	return found < 0
		       ? err_set(e, 0, "the kernel does not report it (PACKET_DIAG, a module)")
		       : 0;
}
