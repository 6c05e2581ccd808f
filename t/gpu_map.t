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
	refused "GPUs in another order" \
		"the program's GPUs are here in another order: each is as it was with --gpu-map=0:$a,1:$b$"
	returns "as that says" --gpu-map="0:$a,1:$b"
	like "$(cat out)" "devices st" "each is as it was"
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

done_testing
