#!/usr/bin/env python3
"""Names the programs of t/victim and t/split that no test (t/*.t, t/gpu/*.t) starts; status 1 then.

A test starts a program by a path that ends in its name, by a function of t/lib.sh, or from a list,
the words of a loop, or of a variable, also in what tests include (t/*.sh).
"""

import glob
import os
import re
import sys

LISTS = re.compile(r'\bfor \w+ in ([^;]*);|\b\w+="([^"]*)"', re.DOTALL)
CALLS = re.compile(r"(?:/|\b(?:cycle|run_on|each_row) |TESTS \+= \S*/)([\w-]+)")


def started(test):
    lines = [line for line in open(test, encoding="utf-8") if not line.lstrip().startswith("#")]
    text = "".join(lines)
    names = set(CALLS.findall(text))
    for words in LISTS.findall(text):
        names.update(re.findall(r"\w[\w-]*", " ".join(words)))
    return names


def main():
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    names = set().union(*map(started, glob.glob("t/*.t") + glob.glob("t/*.sh") + glob.glob("t/gpu/*.t") + ["t/split/rules.mk"]))
    status = 0
    for source in sorted(glob.glob("t/victim/*.c") + glob.glob("t/split/*.c")):
        if os.path.basename(source)[:-2] not in names:
            print(f"{source}: no test starts it", file=sys.stderr)
            status = 1
    sys.exit(status)


main()
