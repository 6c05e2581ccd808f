#include "supervisor/socket_restore.h"
int socket_inet_make(struct socket_restore *q, size_t number, struct err *e)
{
	return err_set(e, 0, "no inet");
}
int socket_inet_sender(struct socket_restore *q, const struct image_socket *to,
	const struct image_message *m, struct err *e)
{
	return err_set(e, 0, "no inet");
}
int socket_inet_connect(
	struct socket_restore *q, int fd, const uint8_t *name, uint32_t size, struct err *e)
{
	return err_set(e, 0, "no inet");
}
