#!/usr/bin/env python3
"""Names functions that a header declares and another folder defines; status 1 if there are any.

A reader of a header finds its functions beside it, and a folder that may not include another one
(mk/layers) cannot call it through a declaration of its own. Only text is looked at.
"""

import os
import re
import subprocess
import sys

# What a runtime asks of the API that it is there for.
ASKED = ("lower/runtime.h",)
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
FUNCTION = (r"^(?!static\b|typedef\b|struct \w+ \{|enum\b|union\b|extern\b|#)"
    r"[A-Za-z_][\w\s*]*?[\s*](\w+)\((?:[^;{}])*?\)")
DECLARATION = re.compile(FUNCTION + r"\s*;", re.MULTILINE)
DEFINITION = re.compile(FUNCTION + r"\s*\{", re.MULTILINE)


def text_of(path):
    return COMMENT.sub("", open(path, errors="replace").read())


def main(folders):
    files = subprocess.check_output(["git", "ls-files", "-co", "--exclude-standard", *folders],
        text=True).split()
    files = [f for f in files if os.path.exists(f)]
    homes = {}
    for path in files:
        if path.endswith(".c"):
            for name in DEFINITION.findall(text_of(path)):
                homes.setdefault(name, set()).add(os.path.dirname(path))
    found = False
    for path in files:
        if not path.endswith(".h") or path in ASKED:
            continue
        for name in DECLARATION.findall(text_of(path)):
            if name in homes and os.path.dirname(path) not in homes[name]:
                print(f"{path}: {name}() is defined in {', '.join(sorted(homes[name]))}",
                    file=sys.stderr)
                found = True
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
