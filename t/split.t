#!/bin/bash
# A program whose libcuda.so.1 is the stub works as it does without, against the simulated
# driver (t/sim): each program of t/split checks itself and is run both ways.
. "${0%/*}/lib.sh"

split=$build/t/split
sim=$build/t/sim
audit=$build/lib/trecr/libtrecr-audit.so

natively() { # FOLDER-OF-DRIVER COMMAND...
	LD_LIBRARY_PATH=$1 "${@:2}" 2>&1
}

split() { # FOLDER-OF-DRIVER COMMAND...
	LD_AUDIT=$audit LD_LIBRARY_PATH=$1 TRECR_TEST_SPLIT=1 "${@:2}" 2>&1
}

for program in exits compute callbacks threads signals steps forks lookup unseen memory; do
	is "$(natively "$sim" "$split/$program")" "done" "$program works natively"
	is "$(split "$sim" "$split/$program" | grep -vE '^trecr: (cuGetExportTable|CUPTI):')" "done" \
		"$program works with a lower half"
done

echo "devices 2" >two
export SIM_MACHINE_FILE=$PWD/two
is "$(natively "$sim" "$split/current")" "done" "current contexts natively"
is "$(split "$sim" "$split/current")" "done" "current contexts with a lower half"
unset SIM_MACHINE_FILE

is "$(natively "$sim/echo" "$split/arguments" | tail -n 1)" "0 of 637 functions wrong" \
	"every function can be told from the others"
is "$(split "$sim/echo" "$split/arguments" split | tail -n 1)" "0 of 637 functions wrong" \
	"every function gets its arguments and gives its result"
like "$(split "$sim/echo" "$split/arguments" split)" \
	'cuGraphicsMapResources: not supported' "what is refused is said by name"

# Ways to load the library.
mkdir versioned
for name in libcuda.so.580.95.05 libcuda-1a2b3c4d.so.1 libcudart-1a2b3c4d.so.1; do
	cp "$sim/libcuda.so.1" versioned/$name
done
for way in libcuda.so.1 "$sim/libcuda.so.1" "$PWD/versioned/libcuda.so.580.95.05" \
	"$PWD/versioned/libcuda-1a2b3c4d.so.1"; do
	is "$(natively "$sim" "$split/load" "$way")" real "natively, ${way##*/} is the driver's"
	is "$(split "$sim" "$split/load" "$way")" stub "${way##*/} is the stub's"
done
if natively /nowhere "$split/load" libcuda.so.1 | grep -q fails; then
	is "$(split /nowhere "$split/load" libcuda.so.1)" fails \
		"without a driver there is no stub either"
else
	skip "without a driver there is no stub either" "this machine has a driver"
fi
is "$(split "$sim" "$split/load" libcuda.so.9)" fails "nor for a name that there is not"
is "$(split "$sim" "$split/load" "$PWD/versioned/libcudart-1a2b3c4d.so.1")" real \
	"nor in place of another library"
is "$(LD_AUDIT=$audit "$split/linked-rpath" 2>&1)" stub "RPATH is no way past the stub"
is "$(LD_AUDIT=$audit "$split/linked-runpath" 2>&1)" stub "nor is RUNPATH"

is "$(natively "$sim" "$split/nvml")" "done" "two libraries work natively"
is "$(split "$sim" "$split/nvml")" "done" "two libraries share one lower half"

is "$(split "$sim" "$split/prints")" "$(natively "$sim" "$split/prints")" \
	"what device code prints keeps its place"
like "$(split "$sim" "$split/lookup")" "table (98){16} is of an unknown form" \
	"a table of functions that cannot be exchanged is refused by name"

is "$(split "$sim" "$split/lookup" | grep CUPTI)" "trecr: CUPTI: profilers see nothing of the GPU in a program \
that can be checkpointed (run it without trecr-run, or with --gpu=off)" "CUPTI is refused its, and that is said once"

# Injected errors arrive.
like "$(SIM_FAIL=cuStreamCreate:3:2 split "$sim" "$split/compute")" 'gave 2, not 0' \
	"an error of the driver's reaches the program"

# The limit on descriptors, however it is set.
for limit in 256:256 1024:1024 1024:4096 20000:20000; do
	is "$(split "$sim" prlimit --nofile="$limit" "$split/unseen")" "done" "with --nofile=$limit"
done

# The driver's libraries for OpenCL and for video are not there, and it is said why; where they are not anyway,
# nothing is said.
mkdir -p past
while read -r name why; do
	cp versioned/libcudart-1a2b3c4d.so.1 "past/$name"
	for way in "$name" "$PWD/past/$name"; do
		is "$(natively past "$split/load" "$way")" real "natively, ${way##*/} is loaded"
		is "$(split "$PWD/past" "$split/load" "$way")" "trecr: $why
fails" "but not under trecr, which says so"
	done
done <<-'END'
	libnvidia-opencl.so.1 OpenCL finds no NVIDIA GPU here: it cannot be checkpointed (trecr-run --gpu=off leaves it alone)
	libnvcuvid.so.1 the engines of the GPU for video and JPEG are not used here: they cannot be checkpointed (trecr-run --gpu=off leaves them alone)
END
if [ "$(natively /nowhere "$split/load" libnvidia-opencl.so.1)" = fails ]; then
	is "$(split /nowhere "$split/load" libnvidia-opencl.so.1)" fails "where there is none, nothing is said"
else
	skip "where there is none, nothing is said" "there is an OpenCL of NVIDIA's here"
fi

# Static programs, which cannot load libraries: the crossing is linked into them.
for libc in glibc musl; do
	for program in compute callbacks threads signals forks; do
		if [ -x "$split/static-$libc-$program" ]; then
			is "$(TRECR_LIBDIR=$build/lib/trecr TRECR_LOWER_LIBRARY_PATH=$sim \
				TRECR_TEST_SPLIT=1 "$split/static-$libc-$program" 2>&1)" "done" \
				"$program in a static program on $libc"
		else
			skip "$program in a static program on $libc" "not built"
		fi
	done
done

# Other versions of glibc, in both halves: roots of other distributions (debootstrap makes
# them) in TRECR_TEST_ROOTS, separated by spaces.
ldso=lib64/ld-linux-x86-64.so.2
libs=lib/x86_64-linux-gnu
for root in ${TRECR_TEST_ROOTS:-}; do
	for program in compute callbacks threads signals forks lookup unseen; do
		is "$(split "$sim" "$root/$ldso" --library-path "$sim:$root/$libs" \
			"$split/$program" | grep -v '^trecr: \(cuGetExportTable\|CUPTI\):')" "done" \
			"$program on the libc of ${root##*/}"
		is "$(TRECR_LOWER_LDSO=$root/$ldso TRECR_LOWER_LIBRARY_PATH=$sim:$root/$libs \
			split "$sim" "$split/$program" | grep -v '^trecr: \(cuGetExportTable\|CUPTI\):')" "done" \
			"$program over the libc of ${root##*/}"
	done
done

done_testing
