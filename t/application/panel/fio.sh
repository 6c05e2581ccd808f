#!/bin/bash
# Packages: fio. Needs: fio
# Jobs that write by the kernel's asynchronous I/O, by io_uring and by mappings, and check what they read.
for engine in libaio io_uring mmap; do
	printf '[%s]\nioengine=%s\nrw=randwrite\nbs=8k\nsize=24m\nfilename=%s.data\niodepth=8\nverify=crc32c\nverify_fatal=1\nrate=6m\nrandseed=7\n' $engine $engine $engine
done >jobs.fio
echo ready
fio --output=report jobs.fio
echo "status $?"
grep -o 'err= *[0-9]*' report
