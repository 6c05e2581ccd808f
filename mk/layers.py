#!/usr/bin/env python3
"""Holds the sources' #include lines against mk/layers, and draws it in doc/architecture.md.

    layers.py check     what differs, on standard error; status 1 if anything does
    layers.py draw      writes the picture into the document
"""

import os
import re
import sys

RULES = "mk/layers"
DOCUMENT = "doc/architecture.md"
BEGIN, END = "<!-- mk/layers, drawn by mk/layers.py -->\n", "<!-- end of mk/layers -->\n"
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
SOURCES = re.compile(r"\.([chS]|inc|cu)$")


def rules():
    """Folders in order: what each may include from, and its column."""
    down, column = {}, {}
    for number, line in enumerate(open(RULES), 1):
        line = line.split("#")[0].strip()
        if line.startswith("["):
            title = line.strip("[]")
        elif line:
            folder, _, below = line.partition(":")
            if folder in down:
                sys.exit(f"{RULES}:{number}: {folder} is listed twice")
            down[folder], column[folder] = below.split(), title
    return down, column


def sources():
    for top, folders, names in os.walk("."):
        folders[:] = [f for f in folders if not f.startswith((".", "build"))]
        for name in names:
            if SOURCES.search(name):
                yield os.path.normpath(os.path.join(top, name))


def included():
    """One (source, folder of it, folder it includes from) for each #include that leaves its folder."""
    for source in sorted(sources()):
        folder = os.path.dirname(source)
        for header in INCLUDE.findall(open(source, encoding="utf-8").read()):
            other = os.path.dirname(header)
            if other and other != folder:
                yield source, folder, other


def check():
    down, _ = rules()
    found = []
    order = list(down)
    for folder, below in down.items():
        for other in below:
            if other not in down:
                found.append(f"{RULES}: {other}, which {folder} may include from, is not listed")
            elif order.index(other) <= order.index(folder):
                found.append(f"{RULES}: {other} stands above {folder}, which may include from it")
    allowed = {(f, o) for f, below in down.items() for o in below}
    used = set()
    for source, folder, other in included():
        used.add((folder, other))
        if (folder, other) not in allowed:
            found.append(f"{source}: {folder} may not include from {other} ({RULES})")
    for folder, other in sorted(allowed - used):
        found.append(f"{RULES}: {folder} no longer includes from {other}: remove it there")
    # What has a circle cannot be drawn.
    if not found and replaced(open(DOCUMENT).read()) != open(DOCUMENT).read():
        found.append(f"{DOCUMENT}: the picture differs from {RULES}: run mk/layers.py draw")
    return found


def depth(folder, down, known):
    if folder not in known:
        known[folder] = 1 + max((depth(o, down, known) for o in down[folder]), default=0)
    return known[folder]


def drawn():
    """Folders in rows, each of which includes from rows further down."""
    down, column = rules()
    known, rows = {}, {}
    titles = [t for t in dict.fromkeys(column.values()) if t != "tests"]
    for folder in down:
        cells = rows.setdefault(depth(folder, down, known), {})
        cells.setdefault(column[folder], []).append(folder)
    lines = [titles, [""] * len(titles)]
    for level in sorted(rows, reverse=True):
        cells = [rows[level].get(t, []) for t in titles]
        for i in range(max(map(len, cells))):
            lines.append([c[i] if i < len(c) else "" for c in cells])
        if any(cells):
            lines.append(["-" * len(t) for t in titles])
    text = ["    " + "".join(f"{cell:32}" for cell in line).rstrip() for line in lines[:-1]]
    return "\n".join(text) + "\n"


def replaced(document):
    begin, end = document.index(BEGIN) + len(BEGIN), document.index(END)
    return document[:begin] + "\n" + drawn() + "\n" + document[end:]


def main():
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    if sys.argv[1:] == ["draw"]:
        document = replaced(open(DOCUMENT).read())
        open(DOCUMENT, "w").write(document)
    elif sys.argv[1:] == ["check"]:
        found = check()
        for line in found:
            print(line, file=sys.stderr)
        sys.exit(1 if found else 0)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
