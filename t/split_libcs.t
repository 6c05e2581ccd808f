#!/bin/bash
# Programs whose libc is not the lower half's are checkpointed and restarted, over the simulated
# driver: static ones, and ones on, or over, the libcs of other distributions, whose roots
# (debootstrap makes them) are named in TRECR_TEST_ROOTS, separated by spaces.
. "${0%/*}/lib.sh"

split=$build/t/split
sim=$build/t/sim
RUN_FLAGS=--gpu=on
ldso=lib64/ld-linux-x86-64.so.2
libs=lib/x86_64-linux-gnu

for libc in glibc musl; do
	for program in objects held queued; do
		if [ -x "$split/static-$libc-$program" ]; then
			scenario "$program, static on $libc, is restarted twice" twice \
				env TRECR_LIBDIR="$build/lib/trecr" TRECR_LOWER_LIBRARY_PATH="$sim" \
				"$split/static-$libc-$program"
		else
			skip "$program, static on $libc" "not built"
		fi
	done
done

for root in ${TRECR_TEST_ROOTS:-}; do
	for program in objects held queued; do
		scenario "$program on the libc of ${root##*/} is restarted twice" twice \
			"$root/$ldso" --library-path "$sim:$root/$libs" "$split/$program"
		scenario "$program over the libc of ${root##*/} is restarted twice" twice \
			env TRECR_LOWER_LDSO="$root/$ldso" LD_LIBRARY_PATH="$sim" \
			TRECR_LOWER_LIBRARY_PATH="$sim:$root/$libs" "$split/$program"
	done
done
[ -n "${TRECR_TEST_ROOTS:-}" ] || skip "libcs of other distributions" "TRECR_TEST_ROOTS is not set"

done_testing
