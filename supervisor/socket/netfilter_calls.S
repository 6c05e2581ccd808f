/*
 * netfilter_calls.S - the functions of libnftnl and libmnl that are called here: each jumps to
 * where the library has it, once netfilter_load() has been called (netfilter_library.h).
 */
	.macro calls names:vararg
	.irp name, \names
	.text
	.global \name
	.hidden \name
	.type \name, @function
\name:
	jmp *netfilter_addresses + 8 * number(%rip)
	.size \name, . - \name
	.section .rodata
	.asciz "\name"
	.set number, number + 1
	.endr
	.endm

	.set number, 0
	.section .rodata
	.global netfilter_names
	.hidden netfilter_names
netfilter_names: /* one after the other; an empty one ends them */
	calls mnl_cb_run, mnl_nlmsg_batch_current, mnl_nlmsg_batch_head, mnl_nlmsg_batch_next
	calls mnl_nlmsg_batch_size, mnl_nlmsg_batch_start, mnl_nlmsg_batch_stop
	calls mnl_socket_bind, mnl_socket_close, mnl_socket_get_portid, mnl_socket_open2
	calls mnl_socket_recvfrom, mnl_socket_sendto
	calls nftnl_batch_begin, nftnl_batch_end
	calls nftnl_chain_alloc, nftnl_chain_free, nftnl_chain_nlmsg_build_payload
	calls nftnl_chain_set_s32, nftnl_chain_set_str, nftnl_chain_set_u32
	calls nftnl_expr_alloc, nftnl_expr_set_str, nftnl_expr_set_u32, nftnl_expr_set_u8
	calls nftnl_nlmsg_build_hdr
	calls nftnl_rule_add_expr, nftnl_rule_alloc, nftnl_rule_free
	calls nftnl_rule_nlmsg_build_payload, nftnl_rule_set_str
	calls nftnl_set_alloc, nftnl_set_elem_add, nftnl_set_elem_alloc, nftnl_set_elem_set
	calls nftnl_set_elems_nlmsg_build_payload, nftnl_set_free
	calls nftnl_set_nlmsg_build_payload, nftnl_set_set_str, nftnl_set_set_u32
	calls nftnl_table_alloc, nftnl_table_free, nftnl_table_nlmsg_build_payload
	calls nftnl_table_set_str, nftnl_table_set_u32
	.byte 0

	.bss
	.balign 8
	.global netfilter_addresses
	.hidden netfilter_addresses
netfilter_addresses:
	.skip 8 * number

	.section .note.GNU-stack, "", @progbits
