#!/usr/bin/env python3
"""What does it cost a program to be run by `strobe record`?

  record.py SOURCES BUILD

Rounds of runs, one after the other: bare, by `strobe record`, with its `--worker`, `--perf` and `--alloc`, and by `perf record -g` and
`--call-graph dwarf` at the same rate. `slower` is
the CPU time of the program's main, with all that is done in the program meanwhile, against that of the bare run of the same round: the mean
and its standard error. `start_and_end` is the CPU time of a program that does nothing, with that of what records it.
`allocate` has one thread, `allocate_locking` one more, which waits: glibc's allocator takes locks as soon as there are two.
"""
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

ROUNDS = 10
HZ = "100"


def report(case, contender, metric, value, unit):
    print(json.dumps({"question": "record", "case": case, "contender": contender, "metric": metric, "value": value, "unit": unit}), flush=True)


def main():
    _, build = map(pathlib.Path, sys.argv[1:])
    program = str(build / "bench/record/bench_record")
    strobe = str(build / "src/cli/strobe")
    with tempfile.TemporaryDirectory() as directory:
        contenders = {"bare": [], "strobe": [strobe, "record", "--no-top", "-F", HZ, "-o", directory + "/out.pb.gz", "--"],
                      "strobe, worker": [strobe, "record", "--worker", "--no-top", "-F", HZ, "-o", directory + "/out.pb.gz", "--"],
                      "strobe, perf events": [strobe, "record", "--perf", "--no-top", "-F", HZ, "-o", directory + "/out.pb.gz", "--"],
                      "strobe, allocations": [strobe, "record", "--no-top", "-F", HZ, "--alloc", "-o", directory + "/out.pb.gz", "--"]}
        if shutil.which("perf"):
            contenders["perf"] = ["perf", "record", "-q", "-g", "-F", HZ, "-o", directory + "/perf.data", "--"]
            contenders["perf, dwarf"] = ["perf", "record", "-q", "--call-graph", "dwarf", "-F", HZ, "-o", directory + "/perf.data", "--"]
        else:
            print("skipped: perf (not installed)", file=sys.stderr)

        def run(contender, *arguments):
            """What the program says, and the CPU time of all."""
            child = subprocess.Popen([*contenders[contender], program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            text = child.stdout.read()
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
            if child.returncode != 0:
                sys.exit("%s: exit status %d" % (contender, child.returncode))
            return float(text), usage.ru_utime + usage.ru_stime

        for mode in ("compute", "allocate_locking", "threads", "allocate"):
            ratios = {contender: [] for contender in contenders}
            for _ in range(ROUNDS):
                seconds = {contender: run(contender, mode)[0] for contender in contenders}
                for contender in contenders:
                    ratios[contender].append(seconds[contender] / seconds["bare"] - 1)
            for contender in contenders:
                if contender != "bare":
                    report(mode, contender, "slower", 100 * statistics.mean(ratios[contender]), "%")
                    report(mode, contender, "slower_error", 100 * statistics.stdev(ratios[contender]) / ROUNDS**0.5, "%")
        for contender in contenders:
            times = sorted(run(contender)[1] for _ in range(ROUNDS))
            report("nothing", contender, "start_and_end", 1000 * statistics.median(times), "ms")


if __name__ == "__main__":
    main()
