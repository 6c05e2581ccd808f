#!/bin/bash
# Packages: godot3-server. Needs: godot3-server
export HOME=$PWD XDG_DATA_HOME=$PWD/data XDG_CONFIG_HOME=$PWD/data XDG_CACHE_HOME=$PWD/data
mkdir data
cat >main.gd <<'END'
extends SceneTree

var turn = 0
var sum = 0
var thread = Thread.new()

func count(n):
	var s = 0
	for k in range(n):
		s = (s * 31 + k) % 1000003
	return s

func _init():
	thread.start(self, "count", 3000000)

func _iteration(delta):
	return false

func _idle(delta):
	turn += 1
	sum = (sum * 31 + count(2000)) % 1000003
	if turn == 5:
		print("begun")
	if turn != 400:
		return false
	print(sum, " ", thread.wait_to_finish())
	quit()
	return false
END
godot3-server -s main.gd >godot.log 2>&1 &
child=$!
until grep -q begun godot.log; do kill -0 $child || exit 1; sleep 0.05; done
echo ready
wait $child
echo "status $?"
tail -n 1 godot.log
