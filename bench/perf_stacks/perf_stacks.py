#!/usr/bin/env python3
"""How long does it take to unwind the samples of `perf record --call-graph dwarf`?

  perf_stacks.py SOURCES BUILD

A compile of a header of this project by g++ is recorded: a real program with deep stacks. Its samples are unwound by a ProcessTable, by
elfutils' libdwfl (attached once), and by `perf script -F ip --no-inline`, whose time is that of the whole command, without names. All are CPU
time. `equal` is the share of libdwfl's stacks that ours are, or go on from.
"""
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

ROUNDS = 3


def report(contender, metric, value, unit):
    print(json.dumps({"question": "perf_stacks", "contender": contender, "metric": metric, "value": value, "unit": unit}), flush=True)


def find_perf():
    for perf in filter(None, [shutil.which("perf")] + sorted(map(str, pathlib.Path("/usr/bin").glob("perf_*")))):
        if subprocess.run([perf, "version"], capture_output=True).returncode == 0:
            return perf
    return None


def seconds(command):
    times = []
    for _ in range(ROUNDS):
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode != 0:
            sys.exit("%s: exit status %d" % (command, child.returncode))
        times.append(usage.ru_utime + usage.ru_stime)
    return statistics.median(times)


def main():
    sources, build = map(pathlib.Path, sys.argv[1:3])
    perf = find_perf()
    program = build / "bench/perf_stacks/bench_perf_stacks"
    if perf is None or not program.exists():
        print("skipped: perf_stacks (%s)" % ("install linux-perf" if perf is None else "it is not built: libcli11-dev"), file=sys.stderr)
        return
    with tempfile.TemporaryDirectory() as scratch:
        source = pathlib.Path(scratch) / "program.cc"
        source.write_text("#include <algorithm>\n#include <functional>\n#include <map>\n#include <regex>\n#include <string>\n"
                          "bool Matches(const std::string& text) { return std::regex_match(text, std::regex(\"a+b*\")); }\n")
        data = os.path.join(scratch, "perf.data")
        recorded = subprocess.run([perf, "record", "-q", "-F", "1999", "--call-graph", "dwarf,16384", "-e", "task-clock", "-o", data, "--", "g++",
                                   "-std=c++20", "-O2", "-c", str(source), "-o", "/dev/null"], capture_output=True)
        if recorded.returncode != 0:
            print("skipped: perf_stacks (%s)" % " ".join(recorded.stderr.decode().split())[:200], file=sys.stderr)
            return
        stacks = {}
        for contender, command in (("strobe", program), ("libdwfl", program.with_name("bench_perf_stacks_libdwfl"))):
            if not command.exists():
                print("skipped: %s (install libdw-dev)" % contender, file=sys.stderr)
                continue
            output = os.path.join(scratch, contender)
            print(subprocess.run([command, data, output], check=True, capture_output=True, text=True).stdout, end="", flush=True)
            stacks[contender] = pathlib.Path(output).read_text().splitlines()
        if len(stacks) == 2:
            same = sum(ours.startswith(theirs) for ours, theirs in zip(*(stacks[name] for name in ("strobe", "libdwfl"))))
            report("strobe", "equal", same / len(stacks["strobe"]), "of libdwfl's stacks")
        listing = subprocess.run([perf, "script", "-i", data, "-F", "tid", "--no-inline", "-G"], capture_output=True, text=True).stdout
        samples = len(listing.split())
        theirs = seconds([perf, "script", "-i", data, "-F", "ip", "--no-inline"])
        report("perf script -F ip", "time", theirs / samples * 1e9, "ns/sample")


if __name__ == "__main__":
    main()
