#!/usr/bin/env python3
"""How much of the suite runs on another system too: share.py TARGET_FILE LINUX_BUILD TARGET_BUILD.

After tests/run.sh has run both, say `python3 tests/share.py tests/windows.ini build-tests/gcc build-tests/windows`. Counts the cases of
GoogleTest. What TARGET_FILE says "is not there" tests what the target does not have, and is no part of the common suite. Prints what is
of the common suite, and passed on Linux alone.
"""
import fnmatch
import pathlib
import re
import sys

from summarize import cases_of


def cases_passed(build):
    """(program, case) of each case that passed there."""
    return {(report.stem, name) for report in pathlib.Path(build).glob("*.xml") for name, result, _ in cases_of(report) if result == "passed"}


def main():
    target_file, linux, target = sys.argv[1:]
    absent = re.findall(r"^# not there: (\S+)", pathlib.Path(target_file).read_text(), re.MULTILINE)
    on_linux = cases_passed(linux)
    on_both = on_linux & cases_passed(target)
    common = {case for case in on_linux if case in on_both or not any(fnmatch.fnmatchcase(case[1], pattern) for pattern in absent)}
    if not common:
        sys.exit("no reports there")
    for program, name in sorted(common - on_both):
        print(f"on Linux alone: {program} {name}")
    print(f"{len(on_both)} of the {len(common)} cases of the common suite, {100 * len(on_both) / len(common):.1f} %; "
          f"of all {len(on_linux)} that run on Linux, {100 * len(on_both) / len(on_linux):.1f} %")


if __name__ == "__main__":
    main()
