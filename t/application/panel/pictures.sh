#!/bin/bash
# Packages: imagemagick graphviz. Needs: convert neato
# Threads that share the work on a picture (OpenMP), and the layout of a graph.
export HOME=$PWD
echo ready
convert -size 700x500 -seed 42 gradient:tomato-steelblue -wave 20x60 -resize 900x700! -swirl 200 -blur 0x9 -paint 3 -charcoal 2 a.ppm
echo "status $?"
convert a.ppm -distort Barrel '0.2 0.1 0.0 1.0' -morphology Dilate Disk:4 -statistic Median 5x5 b.ppm
echo "status $?"
cksum a.ppm b.ppm
{
	echo 'graph {'
	for ((k = 1; k < 260; k++)); do echo "$k -- $((k / 2)); $k -- $((k * 7919 % 260));"; done
	echo '}'
} | neato -Gstart=7 -Tplain | cksum
