#!/usr/bin/env python3
"""Names reasons for skipping a test that .ci/skips does not list; status 1 if there are any.

Only text is looked at: calls of skip and skip_all in t/*.t and t/*.sh, and of victim_skip() in programs.
What a command or variable adds to a reason stands as "varies". So CI knows each reason that a test
can have, on whichever machine it runs (mk/skips.sh judges what was skipped there).
"""

import glob
import re
import sys

STRING = r'"(?:[^"\\]|\\.)*"'
IN_C = re.compile(r"\bvictim_skip\(\s*(%s)|\bneed\([^;]*?,\s*(%s)\);" % (STRING, STRING))
IN_SHELL = re.compile(r"\b(?:skip_all|skip +(?:%s|\S+)) +(%s)" % (STRING, STRING))
IN_PYTHON = re.compile(r"print\(['\"]skip ([^'\"]*)['\"]")
NOT_IN_CHECK = ("t/gpu/", "t/application/")


def reasons():
    for path in sorted(glob.glob("t/**/*", recursive=True)):
        if path.startswith(NOT_IN_CHECK) or not path.endswith((".c", ".h", ".t", ".sh")):
            continue
        with open(path, encoding="utf-8") as f:
            text = f.read().replace("\\\n", " ")
        for pattern in (IN_C,) if path.endswith((".c", ".h")) else (IN_SHELL, IN_PYTHON):
            for match in pattern.finditer(text):
                reason = next(filter(None, match.groups())).strip('"')
                reason = re.sub(r"\$\([^()]*\)|\$\{[^}]*\}|\$\w+", "varies", reason)
                line = text.count("\n", 0, match.start()) + 1
                if reason.replace("varies", "").strip():
                    yield path, line, reason


def rows():
    with open(".ci/skips", encoding="utf-8") as f:
        for line in f:
            fields = re.split(r"\t+", line.rstrip("\n"))
            if not line.startswith("#") and len(fields) >= 3:
                yield fields[1], re.compile("(%s)" % fields[2])


def main():
    known, found = list(rows()), False
    for path, line, reason in reasons():
        # A program's reason shows in the test that runs it.
        tests = "t/" + path[len("t/"):] if path.endswith(".t") else None
        if not any(row.search("name # SKIP " + reason) and (not tests or re.match(files, tests))
                   for files, row in known):
            print("%s:%d: .ci/skips does not list: %s" % (path, line, reason))
            found = True
    return found


sys.exit(main())
