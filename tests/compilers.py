#!/usr/bin/env python3
"""Shows the sources to every compiler, standard library and standard that this system has, with warnings as errors:

  compilers.py ROOT BUILD [COMPILER...]      (no name: each g++ from 12 and each clang++ from 14 that is installed)

BUILD is configured, and has made its generated sources: what is compiled comes from its compile_commands.json, best of a unity build. The
syntax and the types of all of it are checked, but no code is made. By compiler and standard library: the library and the tests in C++20; the
library in C++23 and C++26 where the compiler knows them; each public header alone in C++20, and all of them together in the others.

Prints "PASS ..." or "FAIL ..." with the first errors for each, then "N passed, N failed, N skipped". Exit status 1 if anything failed.
"""
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

STANDARDS = {"c++20": "c++20", "c++23": "c++2b", "c++26": "c++2c"}
OLDEST = {"g++": 12, "clang++": 14}
WARNINGS = ["-Wall", "-Wextra", "-Werror"]
# As in meson.build: g++ 12 and 13 see trouble there that is none.
SPARED = {"g++": ["-Wno-restrict", "-Wno-maybe-uninitialized"], "clang++": []}
# A library's headers tell which it is. libc++ lacks what Strobe needs before version 16.
LIBCXX_PROBE = "#include <memory_resource>\n#include <ranges>\nstatic_assert(_LIBCPP_VERSION >= 16000);\n"
# GCC 12's std::stable_sort calls a function that this library has deprecated. Clang 22 warns of that in the caller. meson.build has the same probe.
DEPRECATION_PROBE = "#include <algorithm>\nvoid Sort(int* numbers) { std::stable_sort(numbers, numbers + 2); }\n"
SHOWN_ERRORS = 12


def compilers():
    """The installed ones, by name: "g++-14"; "clang++" without a number where there is no other."""
    found = {}
    for name, oldest in OLDEST.items():
        for command in [f"{name}-{version}" for version in range(oldest, 40)] + [name]:
            path = shutil.which(command)
            if path and os.path.realpath(path) not in found.values():
                found[command] = os.path.realpath(path)
    return list(found)


def run(command, directory):
    result = subprocess.run(command, cwd=directory, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    return result.returncode == 0, [line for line in result.stderr.splitlines() if re.search(r"\b(error|warning)\b", line)]


class Check:
    def __init__(self, root, build, work):
        self.root, self.build, self.work = root, build, work
        self.commands = json.loads((build / "compile_commands.json").read_text())
        self.headers = sorted(path.relative_to(root / "include") for path in (root / "include/strobe").rglob("*.h"))
        self.passed = self.failed = self.skipped = 0
        self.pool = concurrent.futures.ThreadPoolExecutor(os.cpu_count())

    def report(self, what, results):
        errors = [error for is_ok, lines in results if not is_ok for error in lines or ["no message"]]
        if not errors:
            print(f"PASS {what}: {len(results)}", flush=True)
            self.passed += 1
            return
        print(f"FAIL {what}:\n  " + "\n  ".join(errors[:SHOWN_ERRORS]), flush=True)
        self.failed += 1

    def arguments(self, entry, compiler, flags):
        """The compile command of the build, for another compiler and without an object."""
        words = entry["command"].split()
        words = words[next(i for i, word in enumerate(words) if word.startswith("-")):]
        spared = {"-c", "-Werror", *SPARED["g++"]} | ({"-fdevirtualize-at-ltrans"} if "clang" in compiler else set())
        kept, skip = [], False
        for word in words:
            if skip or word in ("-o", "-MQ", "-MF"):
                skip = not skip
            elif word not in spared and not word.startswith(("-std=", "-MD", "-fdiagnostics", "-O")):
                kept.append(word.replace('\\"', '"').replace("'", ""))
        kind = "clang++" if "clang" in compiler else "g++"
        # Uses of uninitialised memory and overflows are seen only where code is optimised.
        return [compiler, *kept, *flags, *SPARED[kind], "-Werror", "-fsyntax-only"]

    def sources(self, compiler, flags, prefix):
        entries = [entry for entry in self.commands if entry["output"].startswith(prefix) and not entry["output"].endswith(".c.o")]
        jobs = [(self.arguments(entry, compiler, flags), entry["directory"]) for entry in entries]
        return list(self.pool.map(lambda job: run(*job), jobs))

    def source_of(self, name, headers):
        path = self.work / name
        # Twice, so that a header that may be included only once is found as well.
        path.write_text(2 * "".join(f"#include <{header.as_posix()}>\n" for header in headers))
        return path

    def spared_by_library(self, compiler, library_flags):
        """What our own sources are spared: public headers, which others include, are not."""
        probe = self.work / "deprecation.cc"
        probe.write_text(DEPRECATION_PROBE)
        is_quiet = "clang" not in compiler or run([compiler, "-std=c++20", *library_flags, *WARNINGS, "-fsyntax-only", str(probe)], self.work)[0]
        return [] if is_quiet else ["-Wno-deprecated-declarations"]

    def public_headers(self, compiler, flags, alone):
        groups = [[header] for header in self.headers] if alone else [self.headers]
        include = [f"-I{self.root}/include", *subprocess.run(["pkg-config", "--cflags", "gtest", "absl_status"], capture_output=True, text=True).stdout.split()]
        jobs = [[compiler, *flags, *WARNINGS, *include, "-fsyntax-only", str(self.source_of(f"header{i}.cc", group))] for i, group in enumerate(groups)]
        return list(self.pool.map(lambda job: run(job, self.work), jobs))

    def compiler(self, compiler, library_flags, library):
        spared = self.spared_by_library(compiler, library_flags)
        for standard, spelling in STANDARDS.items():
            flags = [f"-std={spelling}", *library_flags]
            what = f"{compiler} {library} {standard}"
            if not run([compiler, *flags, "-fsyntax-only", str(self.source_of("empty.cc", []))], self.work)[0]:
                print(f"SKIP {what}: the compiler does not know it")
                self.skipped += 1
                continue
            self.report(f"{what} library", self.sources(compiler, flags + spared, "src/"))
            self.report(f"{what} headers", self.public_headers(compiler, flags, alone=standard == "c++20"))
            if standard == "c++20":
                self.report(f"{what} tests", self.sources(compiler, flags + spared, "tests/"))


def main():
    root, build = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
    with tempfile.TemporaryDirectory() as work:
        check = Check(root, build, pathlib.Path(work))
        probe = check.work / "probe.cc"
        probe.write_text(LIBCXX_PROBE)
        for compiler in sys.argv[3:] or compilers():
            check.compiler(compiler, [], "libstdc++")
            if "clang" in compiler and run([compiler, "-std=c++20", "-stdlib=libc++", "-fsyntax-only", str(probe)], check.work)[0]:
                check.compiler(compiler, ["-stdlib=libc++"], "libc++")
        print(f"{check.passed} passed, {check.failed} failed, {check.skipped} skipped")
        return check.failed > 0


if __name__ == "__main__":
    sys.exit(main())
