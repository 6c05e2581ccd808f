#!/usr/bin/env python3
"""Names source files of one program that have the same name; status 1 then.

A backtrace, a profile and an archive (ar r) show the last part of a path only, and people name headers so, too.
"""

import collections
import os
import subprocess
import sys

PROGRAMS = {
    "the tools": ["lib", "ckpt", "supervisor", "tools"],
    "the loader": ["loader"],
    "the opener": ["opener"],
    "trecr-lower": ["lower", "devmem", "shared"],
    "trecr-lower-core": ["bringup"],
    "libtrecr-crossing.so": ["stubs/crossing", "bringup"],
    "libcuda.so.1": ["stubs/cuda", "devmem", "shared", "stubs/function_versions.c"],
    "libnvidia-ml.so.1": ["stubs/nvml"],
    "libmpich.so.12": ["stubs/mpi"],
    "libtrecr-audit.so": ["stubs/audit"],
    "a process with two halves": ["stubs/audit", "stubs/crossing", "stubs/cuda", "stubs/mpi", "stubs/nvml",
                                  "stubs/function_versions.c", "lower", "bringup", "devmem", "shared"],
    "the generator": ["stubs/gen", "lib"],
}


def main():
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    files = [f for f in subprocess.check_output(["git", "ls-files"], text=True).split()
             if f.endswith((".c", ".h", ".S")) and os.path.exists(f)]
    status = 0
    for program, folders in PROGRAMS.items():
        names = collections.defaultdict(list)
        for path in files:
            if any(path == f or path.startswith(f + "/") for f in folders):
                names[os.path.basename(path)].append(path)
        for paths in names.values():
            if len(paths) > 1:
                print(f"{program}: {' and '.join(paths)} have the same name", file=sys.stderr)
                status = 1
    left = {f.split("/")[0] for f in files} - {"t", "bench", "demo"}
    for folder in left - {g.split("/")[0] for f in PROGRAMS.values() for g in f}:
        print(f"mk/unique_names.py: no program has {folder}/", file=sys.stderr)
        status = 1
    sys.exit(status)


main()
