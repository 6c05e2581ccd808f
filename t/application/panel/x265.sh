#!/bin/bash
# Packages: x265 python3. Needs: x265 python3
python3 -c '
import sys
for n in range(50):
    sys.stdout.buffer.write(bytes((x * y // 16 + n * 3 + (x ^ y)) & 255 for y in range(240) for x in range(320)))
    sys.stdout.buffer.write(bytes((x + n) & 255 for y in range(120) for x in range(160)) * 2)
' >in.yuv
echo ready
x265 --log-level none --input in.yuv --input-res 320x240 --fps 25 --preset slow --pools 3 --frame-threads 2 --no-info -o out.hevc
echo "status $?"
cksum out.hevc
