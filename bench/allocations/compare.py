#!/usr/bin/env python3
"""What a malloc and its free of 64 bytes cost with Strobe's functions in front: compare.py BARE WITH.

Interleaved runs; the medians, in nanoseconds a pair, for each allocator that is installed. Beside them jemalloc's and tcmalloc's own
sampling, where the installed library has it.
"""
import os
import statistics
import subprocess
import sys

RUNS = 9
ALLOCATORS = {"glibc": "", "tcmalloc": "libtcmalloc_minimal.so.4", "jemalloc": "libjemalloc.so.2", "mimalloc": "libmimalloc.so.2"}


def run(command, library, extra=None):
    environment = {**os.environ, **(extra or {})}
    if library:
        environment["LD_PRELOAD"] = library
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    return float(done.stdout) if done.returncode == 0 and not done.stderr else None


bare, sampled = sys.argv[1:3]
for name, library in ALLOCATORS.items():
    contenders = {"bare": ([bare], {}), "off": ([sampled, "off"], {}), "on, without live heap": ([sampled, "space"], {}),
                  "on": ([sampled, "on"], {})}
    if name == "jemalloc":
        contenders["its own sampling"] = ([bare], {"MALLOC_CONF": "prof:true,lg_prof_sample:19"})
    times = {contender: [] for contender in contenders}
    for _ in range(RUNS):
        for contender, (command, extra) in contenders.items():
            times[contender].append(run(command, library, extra))
    for contender, values in times.items():
        if None in values:
            print(f"{name:9} {contender:22} skipped: not installed, or built without it")
            continue
        median, base = statistics.median(values), statistics.median(times["bare"])
        print(f"{name:9} {contender:22} {median:6.2f} ns a pair, {median - base:+5.2f} ns")
