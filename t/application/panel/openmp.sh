#!/bin/bash
# Packages: gcc libgomp1. Needs: gcc
gcc -std=gnu11 -O2 -fopenmp -o openmp "${0%/*}/../openmp.c"
exec ./openmp # waits for go
