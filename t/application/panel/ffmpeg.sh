#!/bin/bash
# Packages: ffmpeg. Needs: ffmpeg
echo ready
ffmpeg -y -v error -f lavfi -i "testsrc2=size=640x360:rate=25:duration=${SECONDS_OF_FILM:-30}" \
	-c:v mpeg4 -threads 4 -flags +bitexact -f avi film.avi </dev/null
echo "status $?"
cksum <film.avi
