#!/usr/bin/env python3
"""Runs strobe ci on the profiles of a small benchmark program, with and without a function that is slower, and on made ones.

  ci_test.py PROGRAM STROBE...

STROBE is the command, after what runs it where the system does not.
"""
import gzip
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "readers"))
from checks import check, equal, failures  # noqa: E402

TIMEOUT_S = 100
STEPS = 1_000_000
SLOWER = 20  # times; no machine is slower by chance by so much
LEAST_PERCENT = 500  # of change that counts: a loaded machine does not make as much
LEAST_LESS_PERCENT = 90  # the same of what is faster


class Ci:
    def __init__(self, command, directory):
        self.command, self.directory = command, directory

    def run(self, *arguments, status):
        result = subprocess.run([*self.command, "ci", *arguments], cwd=self.directory, capture_output=True, timeout=TIMEOUT_S)
        text, errors = result.stdout.decode(), result.stderr.decode()
        check(result.returncode == status, "strobe ci %s: exit status %d, not %d: %s%s" % (" ".join(arguments), result.returncode, status, text, errors))
        if status == 2:
            equal(text, "", "what is printed beside an error")
        return errors if status == 2 else text

    def folded(self, name, **amounts):
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join("main;%s %d\n" % row for row in amounts.items()))


def measured(ci, program):
    """Real profiles: a slow function is found, per iteration, however often it ran."""
    for folder, iterations, steps in (("base", 1, STEPS), ("same", 400, STEPS), ("slow", 1, SLOWER * STEPS)):
        subprocess.run([*program, str(ci.directory / folder), str(iterations), str(steps)], check=True, timeout=TIMEOUT_S)
    least = "--min=%d" % LEAST_PERCENT
    # The same functions, but several times as many iterations.
    text = ci.run(least, "--base", "base", "same", status=0)
    check("### Strobe: no significant change in 2 profiles" in text, "equal programs: " + text)
    check("Amounts of 2 profiles are per iteration" in text, "the iterations are known: " + text)
    text = ci.run(least, "--base", "base", "slow", status=1)
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| `")]
    equal(sorted(row[:2] for row in rows), sorted([["| `Parse`", "**the total**"], ["| `Parse`", "`(anonymous namespace)::Parse`"]]), "what is slower")
    text = ci.run("--min=%d" % LEAST_LESS_PERCENT, "--base", "slow", "base", status=0)
    check("2 improvements in 2 profiles" in text, "what is faster is no regression: " + text)
    # As profiles were before they said how many iterations they have.
    for path in (ci.directory / "base").glob("*.pb.gz"):
        (ci.directory / "bare").mkdir(exist_ok=True)
        (ci.directory / "bare" / path.name).write_bytes(gzip.compress(gzip.decompress(path.read_bytes()).replace(b"iterations", b"repetition")))
    check("only the base says how many iterations" in ci.run("--base", "base", "bare", status=2), "the new side does not say it")
    check("only the new side says" in ci.run("--base", "bare", "base", status=2), "the base does not say it")
    ci.run("--per", "1", "--base", "bare", "base", status=0)


def tables(ci):
    ci.folded("old/BM_A.folded", Parse=1000, Write=1000)
    ci.folded("old/BM_B.folded", Parse=1000)
    ci.folded("old/BM_C.folded", Parse=1000)
    ci.folded("new/BM_A.folded", Parse=2000, Write=1000)
    ci.folded("new/BM_B.folded", Parse=1005)
    ci.folded("new/BM_D.folded", Parse=1000)
    text = ci.run("--base", "old", "new", status=1)
    # By hand: 2000 - 1000 with the error of the square root of their sum.
    check("| `BM_A` | `Parse` | 1000 | 2000 | +1000 \u00B1 54.7905 | +50.0 % |" in text, "the row: " + text)
    check("BM_B" not in text, "what has not changed: " + text)
    check("Only in the base: `BM_C`." in text and "New: `BM_D`." in text, "what is not compared: " + text)
    ci.run("--min", "60", "--base", "old", "new", status=0)
    ci.run("--focus", "Write", "--base", "old", "new", status=0)
    ci.run("--base", "old/BM_A.folded", "new/BM_A.folded", status=1)
    equal(ci.run("-o", "table.md", "--base", "old", "new", status=1), "", "standard output beside a file")
    equal((ci.directory / "table.md").read_text(encoding="utf-8"), text, "the file")


def runs(ci):
    """What varies as much between runs of one side is no change, and what does not is one."""
    for side, parse in (("base", (1000, 1600, 2200, 1100)), ("noise", (2300, 1500, 1700, 2600)), ("slow", (11000, 11500, 12000, 11100))):
        for run, amount in enumerate(parse):
            ci.folded("%s-%d/BM.folded" % (side, run), Parse=amount, Write=100)
    base = [argument for run in range(4) for argument in ("--base", "base-%d" % run)]
    ci.run("--base", "base-0", "noise-0", status=1)
    text = ci.run(*base, *("noise-%d" % run for run in range(4)), status=0)
    check("of the spread between runs" in text, "what a change is held against: " + text)
    text = ci.run(*base, *("slow-%d" % run for run in range(4)), status=1)
    check("Write" not in text, "what is equal in all runs: " + text)


def mistakes(ci):
    check("--base" in ci.run("new", status=2), "a base is needed")
    check("nowhere" in ci.run("--base", "nowhere", "new/BM_A.folded", status=2), "a file that is not there")
    check("same name" in ci.run("--base", "old", "new/BM_A.folded", status=2), "a folder and a file")
    check("some runs are files" in ci.run("--base", "old", "new", "new/BM_A.folded", status=2), "folders and files")
    (ci.directory / "none").mkdir()
    check(".pb.gz" in ci.run("--base", "old", "none", status=2), "an empty folder")
    (ci.directory / "broken").mkdir()
    (ci.directory / "broken" / "BM_A.pb.gz").write_bytes(b"\x1f\x8b broken")
    check("BM_A" in ci.run("--base", "old", "broken", status=2), "a broken file")
    for level in ("0", "1", "x"):
        check("--level" in ci.run("--level", level, "--base", "old", "new", status=2), "a level of " + level)
    shutil.copytree(ci.directory / "old", ci.directory / "copy")
    ci.run("--base", "copy", "old", status=0)


def main():
    program, *command = sys.argv[1:]
    command[-1] = os.path.abspath(command[-1])  # it runs in a directory of its own
    with tempfile.TemporaryDirectory() as directory:
        ci = Ci(command, pathlib.Path(directory))
        tables(ci)
        runs(ci)
        mistakes(ci)
        measured(ci, [*command[:-1], program])
    print("%d failures" % len(failures))
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
