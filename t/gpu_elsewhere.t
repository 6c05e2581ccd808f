#!/bin/bash
# Programs on a GPU come back on another build of the driver, whose tables and contexts lie elsewhere, and on another
# model, on simulated drivers; and are refused where they could not run there.
. "${0%/*}/lib.sh"
. "$top/t/elsewhere_lib.sh"

split=$build/t/split

# ---- another build of the driver ----

arena build
driver plain
machine "devices 1"
if started "$split/elsewhere" 1 4 && ok "a checkpoint" freeze_away; then
	driver other
	refused "another build" "libraries, unchanged \(--gpu-other allows another build of the driver\)"
	next_round "another build" 1 --gpu-other
	like "$(told_of_restart)" \
		"elsewhere\): the GPU driver is another build than at the checkpoint \(for CUDA 13.1; it was for 13.0\)$" \
		"which is told"
	is "$(told_of_restart | wc -l)" 1 "in one line"
	ok "a checkpoint there" freeze_away
	next_round "the same build again" 2
	is "$(told_of_restart)" "" "which is not told"
	ok "and another one" freeze_away
	driver plain
	refused "the older one again" "the driver here is for CUDA 13.0, the program ran on one for CUDA 13.1$" --gpu-other
	machine "devices 1" "version 13010"
	next_round "the first build again" 3 --gpu-other
	ok "and a checkpoint there" freeze_away
	returns "and again, to the end"
fi
sweep 2 >/dev/null

arena versions
driver plain
machine "devices 1"
if started "$split/elsewhere" 1 1 && ok "a checkpoint" freeze_away; then
	driver other
	machine "devices 1" "version 12080"
	refused "an older version" "the driver here is for CUDA 12.8, the program ran on one for CUDA 13.0$" --gpu-other
	machine "devices 1" "version 14000"
	refused "the next major version" "the driver here is for CUDA 14.0, the program ran on one for CUDA 13.0$" --gpu-other
	machine "devices 1" "functions gone"
	refused "a driver without a table" \
		"the program uses table 6bd5fb6c01[0]{22} of the GPU driver, which does not exist here" --gpu-other
	machine "devices 1" "functions longer"
	refused "a driver with another form of a table" \
		"the program uses table 6bd5fb6c01[0]{22} of the GPU driver, which is of another form here" --gpu-other
	machine "devices 1"
	driver lacking
	refused "a driver without a function" "libcuda.so.1 lacks cuStreamQuery, which the program may use" --gpu-other
	driver other
	returns "otherwise it comes back" --gpu-other
fi
sweep 2 >/dev/null

arena nvml
driver plain
if started "$split/elsewhere" 1 1 nvml && ok "a checkpoint" freeze_away; then
	driver other
	refused "handles of NVML" "the program has initialised NVML, whose handles of GPUs" --gpu-other
	driver plain
	returns "with the driver that it had, it comes back"
fi
sweep 2 >/dev/null

# Larger contexts do not fit where two lie side by side; smaller ones do.
arena contexts
machine "devices 2" "version 13000"
driver plain
if started "$split/elsewhere" 2 1 && ok "a checkpoint" freeze_away; then
	driver other
	refused "two contexts, where they are larger" "a context is at 0x[0-9a-f]+ here, but was at 0x[0-9a-f]+, as the driver is another build" \
		--gpu-other
fi
sweep 2 >/dev/null
arena smaller
driver other
if started "$split/elsewhere" 2 1 && ok "a checkpoint" freeze_away; then
	driver plain
	returns "two contexts, where they are smaller" --gpu-other
fi
sweep 2 >/dev/null

# ---- another model ----

arena model
driver plain
model="devices 1
name Old
attribute75 8
attribute76 6
attribute10 32
attribute1 1024
attribute16 84"
machine "$model"
if started "$split/elsewhere" 1 1 && ok "a checkpoint" freeze_away; then
	machine "${model/Old/New}"
	refused "another model" \
		"GPU 0 here is \"New\" with 8192 MiB, the program ran on \"Old\" with 8192 MiB \(--gpu-other allows it\)"
	machine "${model/75 8/75 7}"
	refused "an older model" "GPU 0 here has compute capability 7.6, the program ran on 8.6" --gpu-other
	machine "${model/1 1024/1 512}"
	refused "a model that does less" \
		"GPU 0 here, \"Old\", has 512 for \"threads per block\", the program was told 1024" --gpu-other
	machine "${model/10 32/10 64}"
	refused "a model with other warps" \
		"GPU 0 here, \"Old\", has 64 for \"warp size\", the program was told 32" --gpu-other
	model=${model/Old/New}
	model=${model/75 8/75 9}
	model=${model/76 6/76 0}
	machine "${model/16 84/16 132}" "memory_mib 16384"
	returns "a newer model" --gpu-other
	like "$(told_of_restart)" "GPU 0 is not the one of the checkpoint: \"New\" instead of \"Old\", compute capability 9.0 instead of 8.6, 16384 MiB of memory instead of 8192, 132 multiprocessors instead of 84; the program may go by what it was told before$" \
		"what differs is told"
	is "$(told_of_restart | wc -l)" 1 "in one line"
fi
sweep 2 >/dev/null

done_testing
