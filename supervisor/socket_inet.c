#include "supervisor/socket_dump.h"
int socket_inet_look(struct fd_dump *d, struct socket_dump *k, struct err *e)
{
	return err_set(e, 0, "TCP and UDP are not supported");
}
int socket_inet_relate(struct fd_dump *d, struct socket_dump *k, struct err *e)
{
	return 0;
}
