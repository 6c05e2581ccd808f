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

# As after an update of the system: ld.so's cache is larger, and what is found by it lies elsewhere. The
# libraries are where the program has seen them.
if am_root && unshare -m true 2>/dev/null; then
	restart_updated() {
		unshare -m bash -c 'mount --bind larger /etc/ld.so.cache && exec trecr-restart -D ck' \
			</dev/null >restart.out 2>>restart.err && sup=$(cat restart.out)
	}

	arena updated
	cp /etc/ld.so.cache larger && truncate -s +300000 larger
	LD_LIBRARY_PATH=$sim launch "$split/second_library"
	ok "restarted with a larger cache of ld.so" freeze_away && restart_updated
	kill -USR1 "$sup" && await -t 60 -p "$sup" out '^second$' >/dev/null
	ok "another library is used, and the cache is small again" freeze_away && restart_detached
	ok "and large" freeze_away && restart_updated
	ok "and small, and it comes to its end" freeze_away && restart_here && finish
	is "$status $(cat out)$(cat restart.err)" "0 ready
second
ok" "with nothing said"
	[ "$last_result" = 0 ] || explain
	sweep >/dev/null
else
	skip "another cache of ld.so" "needs root and mount namespaces"
fi

done_testing
