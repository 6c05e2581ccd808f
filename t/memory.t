#!/bin/bash
# Memory of every kind is restored, and behaves as its kind does.
. "$(dirname "$0")/lib.sh"

for v in anon file_private file_shared private_object memfd shared_anon stack prot_none sparse mlock mlockall "mlockall onfault" \
	advice thp "thp disable" "thp unless-advised" brk vdso zeroed_file relro bss unlinked_map no_aslr \
	regions anon_name guard; do
	# shellcheck disable=SC2086
	cycle $v
done

# Which matter with several nodes.
export TRECR_TEST_NUMA=1
cycle mempolicy
unset TRECR_TEST_NUMA

# 64 GiB with 64 pages in it must not make an image of more than the pages.
arena sparse
launch "$victim/sparse" && checkpoint
ok "a sparse mapping is checkpointed" [ -d "$path" ] || explain
ok "an image of a sparse mapping is small" [ "$(du -sk "$path" | cut -f1)" -lt 20000 ]
finish
# The kernel lets root have such memory itself. Others see of it what is mapped.
hidden_memory() {
	cycle hidden_pages
	cycle page_order
	for page in 0 4 7; do
		cycle page_order $page
	done
}

# What cannot be mapped a second time can only be opened.
limited_memory() {
	arena limited
	launch "$victim/hidden_limited"
	ok "shared memory that a limit keeps from being mapped once more" checkpoint || explain
	like "$(cat ckpt.err)" "memfd:limited .*cannot be mapped a second time .Cannot allocate memory.* mapped nowhere" \
		"is saved as far as it is mapped, which is said"
	finish && said_ok
	result $? "and the program runs on" || explain
	sweep >/dev/null
	arena limited-private
	launch "$victim/hidden_limited" private
	not_ok "with a private mapping of it, too, it is refused" quiet checkpoint
	like "$(cat ckpt.err)" "also mapped privately, .*Cannot allocate memory.*raise that, or run trecr as root" \
		"for that reason"
	finish && said_ok
	result $? "and the program runs on" || explain
	sweep >/dev/null
}

hidden_memory
if am_root && have setpriv; then
	cycle hidden_limited private
	cd "$scratch" && drop_memory_capabilities
	hidden_memory
	limited_memory
elif ! am_root; then
	limited_memory
fi
done_testing
