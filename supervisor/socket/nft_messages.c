#include "supervisor/socket/nft_messages.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>

/* Of an answer, which quotes the message that it is about. */
#define ANSWER_SIZE 16384

/* ---- a batch ---- */

static void end_message(struct nft_batch *b)
{
	uint32_t size = b->out.len - b->message;

	if (b->count)
		memcpy((char *)b->out.data + b->message, &size, sizeof(size));
}

static void begin_message(
	struct nft_batch *b, int type, int flags, int family, uint16_t resource)
{
	struct nlmsghdr head = {.nlmsg_type = type, .nlmsg_flags = NLM_F_REQUEST | flags};
	struct nfgenmsg body = {.nfgen_family = family, .res_id = htons(resource)};

	end_message(b);
	b->message = b->out.len;
	head.nlmsg_seq = ++b->count;
	buf_add(&b->out, &head, sizeof(head));
	buf_add(&b->out, &body, sizeof(body));
}

void nft_message(struct nft_batch *b, int type, int flags)
{
	if (!b->count)
		begin_message(b, NFNL_MSG_BATCH_BEGIN, 0, AF_UNSPEC, NFNL_SUBSYS_NFTABLES);
	begin_message(b, NFNL_SUBSYS_NFTABLES << 8 | type, flags, NFPROTO_INET, 0);
}

size_t nft_open(struct nft_batch *b, int type)
{
	struct nlattr a = {.nla_type = type | NLA_F_NESTED};
	size_t at = b->out.len;

	buf_add(&b->out, &a, sizeof(a));
	return at;
}

/* The length is without what fills it up. */
void nft_close(struct nft_batch *b, size_t at)
{
	uint16_t size = b->out.len - at;

	memcpy((char *)b->out.data + at, &size, sizeof(size));
	buf_grow(&b->out, NLA_ALIGN(b->out.len) - b->out.len);
}

void nft_put(struct nft_batch *b, int type, const void *data, size_t size)
{
	struct nlattr a = {.nla_type = type};
	size_t at = b->out.len;

	buf_add(&b->out, &a, sizeof(a));
	buf_add(&b->out, data, size);
	nft_close(b, at);
}

void nft_put_number(struct nft_batch *b, int type, uint32_t value)
{
	value = htonl(value);
	nft_put(b, type, &value, sizeof(value));
}

void nft_put_text(struct nft_batch *b, int type, const char *text)
{
	nft_put(b, type, text, strlen(text) + 1);
}

/* ---- the kernel ---- */

int nft_socket(uint32_t *port)
{
	struct sockaddr_nl a = {.nl_family = AF_NETLINK};
	socklen_t size = sizeof(a);
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER), code;

	if (fd < 0)
		return -1;
	if (!bind(fd, (struct sockaddr *)&a, size) &&
		!getsockname(fd, (struct sockaddr *)&a, &size)) {
		if (port)
			*port = a.nl_pid;
		return fd;
	}
	code = errno;
	close(fd);
	errno = code;
	return -1;
}

/* The answers are there when send(2) returns: the kernel does what it is told meanwhile. Errors
 * come before the answer to the last message, which is asked for. */
static int read_answers(int netlink, uint32_t last)
{
	cleanup_free char *answer = xmalloc(ANSWER_SIZE);

	for (;;) {
		ssize_t n = recv(netlink, answer, ANSWER_SIZE, MSG_DONTWAIT);
		const struct nlmsghdr *h = (const void *)answer;

		if (n <= 0)
			return n && errno != EAGAIN ? errno : EPROTO;
		for (; NLMSG_OK(h, (size_t)n); h = NLMSG_NEXT(h, n)) {
			const struct nlmsgerr *result = NLMSG_DATA(h);

			if (h->nlmsg_type == NLMSG_ERROR &&
				(result->error || h->nlmsg_seq == last))
				return -result->error;
		}
	}
}

int nft_commit(int netlink, struct nft_batch *b)
{
	struct nlmsghdr *h = (void *)((char *)b->out.data + b->message);
	uint32_t last = b->count;

	h->nlmsg_flags |= NLM_F_ACK;
	begin_message(b, NFNL_MSG_BATCH_END, 0, AF_UNSPEC, NFNL_SUBSYS_NFTABLES);
	end_message(b);
	if (send(netlink, b->out.data, b->out.len, 0) != (ssize_t)b->out.len)
		return errno;
	return read_answers(netlink, last);
}
