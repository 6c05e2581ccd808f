#!/usr/bin/env python3
"""Names files that documents and comments mention and that are not there; status 1 then.

A mention is a name with one of our endings. With folders, the path must end so; a word before it
that is none of our folders (kernel/exit.c) means somebody else's file.
"""

import os
import re
import subprocess
import sys

MENTION = re.compile(r"(?<![\w/.<$}*-])((?:[\w.-]+/)*)([\w-]+\.(?:c|h|S|t|md|api|inc|mk|py|sh))(?![\w.(/*]|-\w)")
PLACEHOLDER = re.compile(r"(?<![A-Za-z0-9])([A-Z]{2,}|X)(?![A-Za-z0-9])|^([A-Z]{2,}|X)_|_[A-Z]{2,}\\.")
FOREIGN = {"xxh_x86dispatch.h", "nv-caps.c"}  # of libraries and the driver
READ = (".c", ".h", ".S", ".md", ".t", ".sh", ".py", ".mk")


def tracked():
    return subprocess.check_output(["git", "ls-files"], text=True).splitlines()


def comments(path, text):
    """What of @text is prose: all of a document, else what stands in a comment."""
    if path.endswith(".md"):
        return text
    if path.endswith((".c", ".h", ".S")):
        return "\n".join(re.findall(r"/\*.*?\*/", text, re.DOTALL))
    return "\n".join(line for line in text.splitlines() if line.lstrip().startswith("#"))


def main():
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    files = tracked()
    folders = {part for path in files for part in os.path.dirname(path).split("/")}
    ends = {"/".join(path.split("/")[i:]) for path in files for i in range(path.count("/") + 1)}
    bad = set()
    for path in files:
        if not path.endswith(READ) or path.startswith("build") or not os.path.exists(path):
            continue
        prose = comments(path, open(path, encoding="utf-8", errors="replace").read())
        for folder, name in MENTION.findall(prose):
            parts = folder.split("/")[:-1]
            if parts and not all(part in folders for part in parts if part not in (".", "..")):
                continue
            mention = "/".join([p for p in parts if p not in (".", "..")] + [name])
            if mention not in ends and not PLACEHOLDER.search(name) and name not in FOREIGN:
                bad.add((path, mention))
    for path, mention in sorted(bad):
        print(f"{path}: there is no file {mention}", file=sys.stderr)
    sys.exit(bool(bad))


main()
