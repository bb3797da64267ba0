#!/usr/bin/env python3
"""A pair of programs in one file: check.py FILE COMPILER...

With -DREFUSED the compiler must refuse FILE with a message that holds the text of its comment `// refused: TEXT` (or one of several,
separated by " | "); without, it must accept it. So a refusal is known to be for the reason that is meant. A comment `// refused by: FLAG`
names a flag instead of -DREFUSED, and `// errors: N` says how many errors there must be.
"""
import pathlib
import re
import subprocess
import sys


def main():
    path, compiler = pathlib.Path(sys.argv[1]), sys.argv[2:]
    def comments(what):
        return re.findall(rf"^// {what}: (.+)$", path.read_text(), re.MULTILINE)

    expected, flags, errors = comments("refused"), comments("refused by") or ["-DREFUSED"], comments("errors")
    if not expected or (flags == ["-DREFUSED"] and "REFUSED" not in path.read_text()):
        sys.exit(f"{path.name}: says no `// refused: TEXT` or has no part for REFUSED")

    def compile_it(*options):
        result = subprocess.run([*compiler, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", *options, path], text=True, capture_output=True)
        return result.returncode == 0, result.stderr

    accepted, output = compile_it()
    if not accepted:
        sys.exit(f"the twin that should be accepted was refused:\n{output}")
    accepted, output = compile_it(*flags)
    if accepted:
        sys.exit("was accepted, and should be refused")
    for text in expected:
        if not any(choice.strip() in output for choice in text.split(" | ")):
            sys.exit(f"was refused, but not because of `{text}`:\n{output}")
    found = len(re.findall(r"\berror: ", output))
    if errors and found != int(errors[0]):
        sys.exit(f"was refused with {found} errors instead of {errors[0]}:\n{output}")


if __name__ == "__main__":
    main()
