#!/usr/bin/env python3
"""Names what documents and comments mention and that is not there; status 1 then.

Files: a mention is a name with one of our endings. With folders, the path must end so; a word
before it that is none of our folders (kernel/exit.c) means somebody else's file.
In documents also functions (`name()`), paths that begin with one of our folders (`t/victim/`),
and the targets of links, with the heading behind a #.
"""

import os
import re
import subprocess
import sys

MENTION = re.compile(r"(?<![\w/.<$}*-])((?:[\w.-]+/)*)([\w-]+\.(?:c|h|S|t|md|api|inc|mk|py|sh))(?![\w(/*]|\.\w|-\w)")
PLACEHOLDER = re.compile(r"(?<![A-Za-z0-9])([A-Z]{2,}|X)(?![A-Za-z0-9])|^([A-Z]{2,}|X)_|_[A-Z]{2,}\\.")
FOREIGN = {"xxh_x86dispatch.h", "nv-caps.c", "mpif.h"}  # of libraries and the driver
FUNCTION = re.compile(r"`(\w+)\(\)`")
FOREIGN_FUNCTIONS = {  # of the kernel
    "yama_ptrace_access_check", "task_is_descendant", "__ptrace_may_access", "do_tcp_setsockopt",
    "tcp_set_rcvlowat", "io_uring_get_unmapped_area", "de_thread", "exit_notify"}
PATH = re.compile(r"`([\w.-]+(?:/[\w.-]+)*)/?`")
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")
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


def anchors(text):
    """The names by which the headings of a document can be linked to."""
    headings = re.findall(r"^#+ +(.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", h.lower()).strip().replace(" ", "-") for h in headings}


def missing_of_document(path, text, files, code):
    """What the document @text at @path mentions besides files with our endings."""
    for name in FUNCTION.findall(text):
        if name not in code and name not in FOREIGN_FUNCTIONS:
            yield f"function {name}()"
    for name in PATH.findall(text):
        top = name.split("/")[0]
        known = any(f.startswith(top + "/") for f in files)
        if "/" in name and known and not PLACEHOLDER.search(name):
            # What make builds in a folder has the name of its source.
            if not any(f == name or f.startswith((name + "/", name + ".")) for f in files):
                yield f"path {name}"
    for target, heading in LINK.findall(text):
        to = os.path.normpath(os.path.join(os.path.dirname(path), target)) if target else path
        if not os.path.exists(to):
            yield f"target {target} of a link"
        elif heading and heading not in anchors(open(to, encoding="utf-8").read()):
            yield f"heading #{heading} in {to}"


def main():
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    files = tracked()
    folders = {part for path in files for part in os.path.dirname(path).split("/")}
    ends = {"/".join(path.split("/")[i:]) for path in files for i in range(path.count("/") + 1)}
    code = set()
    for path in files:
        if path.endswith((".c", ".h", ".S", ".sh", ".py", ".t")) and os.path.exists(path):
            text = open(path, encoding="utf-8", errors="replace").read()
            if path.endswith((".c", ".h", ".S")):
                text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
            code.update(re.findall(r"(\w+) ?\(", text))
    bad = set()
    for path in files:
        if not path.endswith(READ) or path.startswith("build") or not os.path.exists(path):
            continue
        prose = comments(path, open(path, encoding="utf-8", errors="replace").read())
        if path.endswith(".md"):
            bad.update((path, what) for what in missing_of_document(path, prose, files, code))
        for folder, name in MENTION.findall(prose):
            parts = folder.split("/")[:-1]
            if parts and not all(part in folders for part in parts if part not in (".", "..")):
                continue
            mention = "/".join([p for p in parts if p not in (".", "..")] + [name])
            if mention not in ends and not PLACEHOLDER.search(name) and name not in FOREIGN:
                bad.add((path, f"file {mention}"))
    for path, mention in sorted(bad):
        print(f"{path}: there is no {mention}", file=sys.stderr)
    sys.exit(bool(bad))


main()
