#!/usr/bin/env python3
"""Names functions that only their own file uses, and that are not static.

    own_functions.py FOLDER...      prints them; status 1 if there are any

Only text is looked at, so that nothing has to be built. What a linker script, assembly or a test
names counts as used. Entry points that are looked up by name when a program runs are listed here.
"""

import os
import re
import sys

BY_NAME = re.compile(r"main|_start|cu[A-Z]\w*|nvml[A-Z]\w*|la_\w+|(body|real|record|lower|inner)_\w+"
    r"|\w+_refused|fd_\w+_(match|dump|check|restore|show|needs_threads|open_remotely|provoke|calm)|[A-Z_]+")
DEFINITION = re.compile(
    r"^(?!static\b|typedef\b|struct \w+ \{|enum\b|union\b|extern\b)"
    r"[A-Za-z_][\w\s*()]*?\b(\w+)\((?:[^;{}]|\n)*?\)\s*\{", re.MULTILINE)
WORD = re.compile(r"\b[A-Za-z_]\w+\b")
DECLARATION = re.compile(r"^(?!#|static\b)\S.*$", re.MULTILINE)


def sources():
    for folder, folders, names in os.walk("."):
        folders[:] = [f for f in folders if not f.startswith((".", "build"))]
        for name in names:
            if name.endswith((".c", ".h", ".S", ".lds", ".py", ".mk", ".cu", ".inc")) or name == "Makefile":
                path = os.path.join(folder, name)[2:]
                yield path, open(path, errors="replace").read()


def used_words(path, text):
    """Declarations in headers are not uses."""
    if path.endswith(".h"):
        text = DECLARATION.sub("", text)
    return set(WORD.findall(text))


def main(folders):
    texts = dict(sources())
    used = {path: used_words(path, text) for path, text in texts.items()}
    found = False
    for path, text in sorted(texts.items()):
        if not path.endswith(".c") or path.split("/")[0] not in folders:
            continue
        for name in DEFINITION.findall(text):
            if BY_NAME.fullmatch(name) or any(name in u for p, u in used.items() if p != path):
                continue
            print(f"{path}: {name}() is used in this file only: make it static", file=sys.stderr)
            found = True
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
