#!/bin/bash
# Programs on several GPUs come back on others, by --gpu-map, on simulated devices: what they know by a number stays
# what it was.
. "${0%/*}/lib.sh"
. "$top/t/elsewhere_lib.sh"

split=$build/t/split

arena devices
driver plain
machine "devices 2"
a=GPU-73696d75 b=GPU-74696d75 c=GPU-75696d75 # simulated, tim..., uim...
if started "$split/elsewhere" 2 1 && ok "a checkpoint" freeze_away; then
	machine "devices 2" "order 10"
	returns "equal GPUs in another order"
	like "$(tail -n 2 out)" "devices ts" "each is the other one"
	like "$(told_of_restart)" \
		"another order, and it goes on with equal ones in their places: each is as it was with --gpu-map=0:$a,1:$b$" \
		"and that is told"
	is "$(told_of_restart | wc -l)" 1 "in one line"
	machine "devices 2" "order 10" "memory_mib 16384"
	refused "others in another order" \
		"the program's GPUs are here in another order: each is as it was with --gpu-map=0:$a,1:$b$" --gpu-other
	machine "devices 2" "order 10"
	returns "as that says" --gpu-map="0:$a,1:$b"
	like "$(tail -n 2 out)" "devices st" "each is as it was"
	is "$(told_of_restart)" "" "and nothing is told"
	returns "by numbers" --gpu-map=1:0,0:1
	like "$(tail -n 2 out)" "devices st" "likewise"
	returns "in the order that is here, if that is wanted" --gpu-map=0:0,1:1
	like "$(tail -n 2 out)" "devices ts" "each is the other one"
	like "$(told_of_restart)" "GPU 0 is not the one of the checkpoint: it is $b-[0-9a-f-]* instead of $a-[0-9a-f-]*, at PCI 0000:11:00 instead of 0000:10:00; " \
		"and that is told"
	machine "devices 1"
	refused "fewer GPUs" "the program had 2 GPUs, here there are 1$"
	refused "fewer GPUs than in the map" "the program had 2 GPUs, here there are 1$" --gpu-map=0:0,1:1
	machine "devices 4"
	refused "more GPUs" "the program had 2 GPUs, here there are 4 \(--gpu-map says which to use\)"
	returns "two of them" --gpu-map=0:2,1:1
	like "$(tail -n 2 out)" "devices ut" "those that were wanted"
	CUDA_VISIBLE_DEVICES=3,$c returns "two of those that the environment shows" --gpu-map=0:1,1:0
	like "$(tail -n 2 out)" "devices uv" "in its order"
	returns "by the identifiers that they had" --gpu-map="$b-6c61-7465-6420-646576696365:1,${a%75}:3"
	like "$(tail -n 2 out)" "devices vt" "those that were wanted"
	refused "a map without all" "--gpu-map does not say what GPU 1 of the program is to be: the program has 2 GPUs" --gpu-map=0:1
	refused "a map with others" "--gpu-map: the program has no GPU 2, but 2: 0 to 1" --gpu-map=0:1,2:0
	refused "one for two" "--gpu-map gives GPU 1 to two of the program's GPUs, 0 and 1" --gpu-map=0:1,1:1
	refused "one twice" "--gpu-map has GPU 0 of the program twice" --gpu-map=0:1,0:0
	CUDA_VISIBLE_DEVICES=3 refused "more than the environment shows" \
		"--gpu-map: CUDA_VISIBLE_DEVICES=3 shows no GPU 1" --gpu-map=0:0,1:1
	for map in 0 "0:1," 0:1,,1:0 x:1 0:GPU- 0:1:2; do
		: >restart.err
		not_ok "the map $map: refused" quiet restart_detached --gpu-map="$map"
		like "$(cat restart.err)" "must be pairs OLD:NEW" "and why"
	done
	returns "the program is unharmed" --gpu-map=0:0,1:1
fi
sweep 2 >/dev/null

# The choice stays for the next checkpoint.
arena stays
driver plain
machine "devices 4"
if started env CUDA_VISIBLE_DEVICES=0,1 "$split/elsewhere" 2 2 && ok "a checkpoint" freeze_away; then
	next_round "on other devices" 1 --gpu-map=0:3,1:2
	like "$(tail -n 2 out)" "devices vu" "those that were wanted"
	ok "a checkpoint there" freeze_away
	returns "a restart without the option"
	like "$(tail -n 2 out)" "devices vu" "is on the same"
	is "$(told_of_restart)" "" "and nothing is told"
fi
sweep 2 >/dev/null

# Processes that see a GPU each, and one that has not asked yet.
arena workers
driver plain
machine "devices 4"
said() { grep '^devices' out | sort | tr '\n' ' '; }
if started env CUDA_VISIBLE_DEVICES=0 "$split/visible" 0 1 && ok "a checkpoint" freeze_away; then
	returns "processes with different GPUs" --gpu-map="$a:2,$b:3"
	is "$(said)" "devices main u devices worker u devices worker v " "each is on its own, also what asks afterwards"
	refused "numbers" "processes of the program have different GPUs: say which by identifiers" --gpu-map=0:2
	refused "one that none has" "no process of the program has a GPU $c" --gpu-map="$a:2,$b:3,$c:0"
	refused "what may be several" "more than one GPU of the program begins with GPU-7" --gpu-map=GPU-7:2
fi
sweep 2 >/dev/null
arena later
driver plain
machine "devices 4"
if started env CUDA_VISIBLE_DEVICES=2 "$split/visible" 0 && ok "a checkpoint" freeze_away; then
	returns "one that sees what no other does" --gpu-map="$a:1"
	is "$(said)" "devices main u devices worker t " "goes on seeing it"
	like "$(told_of_restart)" "it has not asked for GPUs yet, and --gpu-map does not change" "and that is told"
fi
sweep 2 >/dev/null

done_testing
