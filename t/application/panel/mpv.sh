#!/bin/bash
# Packages: mpv. Needs: mpv
# Plays a film to nobody, in time, with threads that decode, draw and wait for each other.
export HOME=$PWD
echo ready
mpv --no-config --vo=null --ao=null --no-terminal --log-file=mpv.log --length=6 av://lavfi:testsrc=size=320x240:rate=25 </dev/null
echo "status $?"
grep -o 'finished playback.*' mpv.log
