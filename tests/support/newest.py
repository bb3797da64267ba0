#!/usr/bin/env python3
"""Prints the installed program with the highest version in its name: `newest.py clang++` prints clang++-19 where there is one, else clang++.
Prints the name itself if there is none."""
import os
import re
import sys


def newest(name):
    versions = [-1]
    for folder in os.get_exec_path():
        try:
            entries = os.listdir(folder)
        except OSError:
            continue
        for entry in entries:
            match = re.fullmatch(re.escape(name) + r"-(\d+)", entry)
            if match and os.access(os.path.join(folder, entry), os.X_OK):
                versions.append(int(match.group(1)))
    return name if max(versions) < 0 else f"{name}-{max(versions)}"


if __name__ == "__main__":
    print(newest(sys.argv[1]))
