#!/bin/bash
# What a checkpoint does with each byte, and a restart with each name, takes no more instructions than it did. valgrind counts
# them, of trecr's own code only: what libc and the compressors take differs with their versions
# and with the processor. Of the hash, each variant is counted by itself where the processor
# has it, and none in the loops that call it: which one they take is the processor's choice.
# (The one for AVX-512 is never counted: valgrind knows no AVX-512.)
. "$(dirname "$0")/lib.sh"

have valgrind || skip_all "no valgrind"
loops=$tool/hot-loops
[ -x "$loops" ] || { ok "the loops are built" [ -x "$loops" ]; done_testing; exit; }
valgrind -q --tool=none "$loops" optimized 2>valgrind.err
case $? in
0) ;;
1) skip_all "this build is not optimized, or sanitized" ;;
*) skip_all "valgrind does not run what this compiler makes" ;;
esac

# Loop, and instructions for each block of 4 KiB as counted with gcc 12 and -O2. One copy of a
# block is 4096 bytes through registers of 32: 256 instructions. A test of a block and the way
# of a block through the writer are to be less than that, and they are. Of names: for each of as
# many objects, as a restart asks for them.
recorded='
zero 27
hash_sse2 4173
hash_avx2 1468
names 219
write 67
compare 164
lz4 81
zstd 81
'
blocks=2048
zero_blocks=512
hash='^(XXH3?_|variant_hash)'

# Of one file of callgrind's: instructions in the program itself, but for functions that match.
count() { # FILE PATTERN
	awk -v pattern="$2" '
		/^ob=/ { own = /\/hot-loops$/ }
		/^fn=/ { left_out = pattern != "" && substr($0, 4) ~ pattern }
		/^calls=/ { called = 1; next }
		/^[0-9]/ { if (!called && own && !left_out) sum += $2; called = 0 }
		END { print sum + 0 }' "$1"
}

# How often the hash is called.
count_hashes() { # FILE
	awk '/^cfn=/ { hash = /^cfn=variant_hash128/ }
		/^calls=/ && hash { split($1, n, "="); sum += n[2] }
		END { print sum + 0 }' "$1"
}

mkdir image
options=
for name in $(awk '{ print $1 }' <<<"$recorded"); do
	options+=" --dump-after=measured_$name"
done
# shellcheck disable=SC2086
ok "the loops run under valgrind" valgrind -q --tool=callgrind --callgrind-out-file=out \
	--toggle-collect='measured_*' $options --compress-strings=no --compress-pos=no \
	"$loops" image || { diag "$(ls)"; done_testing; exit; }

while read -r name limit; do
	[ -n "$name" ] || continue
	file=$(grep -lx "desc: Trigger: --dump-after=measured_$name" out.*)
	if [ -z "$file" ] && [ $name = hash_avx2 ]; then
		skip "$name" "this processor has no AVX2"
		continue
	fi
	case $name in
	hash_*) got=$(count "$file" "") ;;
	*) got=$(count "$file" "$hash") ;;
	esac
	got=$(((got + blocks - 1) / blocks))
	ok "$name: $got instructions a block, and $limit were counted once" \
		[ $got -gt 0 -a $((got * 100)) -le $((limit * 120)) ]
done <<<"$recorded"
is "$(count_hashes "$(grep -lx "desc: Trigger: --dump-after=measured_write" out.*)")" \
	$((blocks - zero_blocks)) "a block is hashed once, and not at all when it is zero"
done_testing
