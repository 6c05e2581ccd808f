#!/bin/bash
# fetch_samples.sh DIR: NVIDIA's samples for samples.t, of the release that the toolkit here is of.
set -e
release=$(nvcc --version | sed -n 's/.*release \([0-9.]*\),.*/\1/p')
git clone --depth 1 --branch "v$release" https://github.com/NVIDIA/cuda-samples "$1"
