/*
 * tables - print the names of trecr's tables of the packet filter (nf_tables) in this network
 * namespace, one a line. Exit status 2 and why, where there is no such filter.
 */
#include <errno.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static void fail_with(int code)
{
	fprintf(stderr, "no nf_tables: %s\n", strerror(code));
	exit(2);
}

static void print_name(const struct nlmsghdr *h)
{
	const char *end = (const char *)h + h->nlmsg_len;
	const char *at = (const char *)NLMSG_DATA(h) + NLMSG_ALIGN(sizeof(struct nfgenmsg));

	while (at + NLA_HDRLEN <= end) {
		const struct nlattr *a = (const void *)at;
		const char *value = at + NLA_HDRLEN;

		if (a->nla_type == NFTA_TABLE_NAME && !strncmp(value, "trecr-", 6))
			puts(value);
		if (a->nla_len < NLA_HDRLEN)
			return;
		at += NLA_ALIGN(a->nla_len);
	}
}

/* Whether more is to come. */
static int print_names(const void *answer, size_t n)
{
	const struct nlmsghdr *h;

	for (h = answer; NLMSG_OK(h, n); h = NLMSG_NEXT(h, n)) {
		const struct nlmsgerr *error = NLMSG_DATA(h);

		if (h->nlmsg_type == NLMSG_DONE)
			return 0;
		if (h->nlmsg_type == NLMSG_ERROR)
			fail_with(-error->error);
		print_name(h);
	}
	return 1;
}

int main(void)
{
	const struct {
		struct nlmsghdr head;
		struct nfgenmsg body;
	} question = {
		.head = {.nlmsg_len = sizeof(question),
			.nlmsg_type = NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETTABLE,
			.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
	};
	static _Alignas(struct nlmsghdr) char answer[65536];
	int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER);
	ssize_t n;

	if (fd < 0 || send(fd, &question, sizeof(question), 0) < 0)
		fail_with(errno);
	do {
		n = recv(fd, answer, sizeof(answer), 0);
		if (n < 0)
			fail_with(errno);
	} while (print_names(answer, n));
	return 0;
}
