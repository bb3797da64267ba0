#!/usr/bin/env python3
"""Holds a plug-in that has linked Strobe to what it may export.

  exported_symbols.py none|public PLUGIN

none: no symbol of Strobe, which is what a plug-in that is built with hidden visibility exports. public: none of strobe::internal, and no
symbol that the loader merges across plug-ins, whatever it is built with; but for what is made of the standard library's templates.
"""
import re
import subprocess
import sys


def main():
    what, path = sys.argv[1:]
    wrong = []
    for line in subprocess.run(["nm", "-DC", "--defined-only", path], text=True, capture_output=True, check=True).stdout.splitlines():
        _, kind, name = line.split(" ", 2)
        if "strobe::" not in name or "strobe::testing::" in name:
            continue
        is_internal = re.match(r"(\w+ )*(guard variable for |vtable for |typeinfo (name )?for )?strobe::internal::[^(]*\(", name)
        if what == "none" or is_internal and "std::" not in name.split("(")[0] or kind == "u" and "::k" not in name:
            wrong.append(f"{kind} {name}")
    print("\n".join(wrong) if wrong else "no symbol that it must not export")
    sys.exit(1 if wrong else 0)


main()
