#!/usr/bin/env python3
"""How do time and memory grow with size?

  scale.py SOURCES BUILD

An axis has points of several sizes, each a process of its own. Turns of all sizes follow each other; a cost is the median of TURNS turns, or
of one, if it takes longer than LONG_S. Time is CPU time. The exponent of a cost is the slope of its logarithm over that of the size (least
squares): once over all sizes, where the constant part of a cost makes it small, and once over the last two. 1 is linear; n log n is 1.05 to
1.1 here. `beyond the limit` has each exponent that is above MOST_EXPONENT, and each point that takes more memory than the bound that the
documentation states. Ends with status 1 if an answer is wrong, or if an exponent over all sizes, or a memory, is beyond its limit.
"""
import json
import math
import os
import pathlib
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time

TURNS = 3
LONG_S = 5  # a point that takes longer is measured once
MOST_EXPONENT = 1.1
IMPOSSIBLE = 3  # the exit status of a point that the machine cannot have
# Axes of the library: what bench_scale calls them, what the table calls them, and their sizes.
AXES = [("stacks", "distinct stacks a period", [10**3, 10**4, 10**5, 10**6]),
        ("limited_stacks", "distinct stacks beyond the memory limit", [10**6]),
        ("threads", "threads that wait", [1, 10, 100, 1000, 5000, 20000]),
        ("leaf_changes", "depth of stacks, another leaf each", [10, 50, 250, 1000, 2000]),
        ("whole_changes", "depth of stacks, other frames each", [10, 50, 250, 1000, 2000]),
        ("modules", "shared libraries", [10, 50, 250, 1000]),
        ("text", "functions of a module, 1 KiB of text each", [10**3, 10**4, 10**5, 10**6]),
        ("labels", "label sets a period", [10, 100, 1000, 10000])]
PROFILE_MB = [1, 4, 16, 64, 256]  # before compression
STACKS_OF_MB = 10500             # of a profile of bench_scale
FLEET = [10, 100, 1000, 10000]
FLEET_FILES = 8      # different ones; the others are links to them
FLEET_STACKS = 200   # of each
# The memory that reading a file may take: src/cli/readers/memory_limit.h.
MEMORY_OF_FILE_BYTE = 64
LEAST_PROFILE_MEMORY = 256 << 20
MOST_PROFILE_MEMORY = 4 << 30

beyond = []


def report(case, contender, metric, value, unit):
    print(json.dumps({"question": "scale", "case": case, "contender": contender, "metric": metric, "value": value, "unit": unit}), flush=True)


def slope(points):
    """Of the logarithms of (size, cost), by least squares."""
    x, y = ([math.log(value) for value in values] for values in zip(*points))
    mean_x, mean_y = statistics.mean(x), statistics.mean(y)
    return sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y)) / sum((a - mean_x) ** 2 for a in x)


def report_axis(case, costs, name=lambda size: f"{size:,}"):
    """`costs` has, by size, a list of turns: each is {metric: (value, unit)}."""
    metrics = {metric: unit for turns in costs.values() for turn in turns for metric, (_, unit) in turn.items()}
    for metric, unit in metrics.items():
        points = [(size, statistics.median(turn[metric][0] for turn in turns)) for size, turns in costs.items()]
        for size, cost in points:
            report(case, f"strobe, {name(size)}", metric, cost, unit)
            if metric == "memory of its bound" and cost > 1:
                beyond.append((f"{case}, {name(size)}", metric, cost))
        points = [(size, cost) for size, cost in points if cost > 0 and unit]
        if len(points) < 2:
            continue
        for kind, part in (("all sizes", points), ("last two", points[-2:])):
            exponent = slope(part)
            report(case, f"strobe, {kind}", metric + ", exponent", exponent, "")
            if exponent > MOST_EXPONENT:
                beyond.append((f"{case}: {metric}, {kind}", "exponent", exponent))


def in_turns(sizes, measure):
    """The turns of each size; sizes that cannot be had are left out."""
    costs = {}
    again = list(sizes)
    for _ in range(TURNS):
        for size in list(again):
            begin = time.monotonic()
            cost = measure(size)
            if cost is not None:
                costs.setdefault(size, []).append(cost)
            if cost is None or time.monotonic() - begin > LONG_S:
                again.remove(size)
    return costs


def run_point(program, axis, size, path=""):
    """What a point costs; None if the machine cannot have it."""
    child = subprocess.run([program, axis, str(size), path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if child.returncode == IMPOSSIBLE:
        print(f"skipped: {axis} {size} ({child.stderr.strip()})", file=sys.stderr)
        return None
    if child.returncode != 0:
        sys.exit(f"{axis} {size}: exit status {child.returncode}: the answer is wrong: {child.stderr}")
    rows = [json.loads(line) for line in child.stdout.splitlines()]
    # Milliseconds are easier to read.
    return {row["metric"]: (row["value"] * 1000, "ms") if row["unit"] == "s" else (row["value"], row["unit"]) for row in rows}


def run_command(command, files):
    """What a run of the command costs; its bound is that of reading `files`."""
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    errors = child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        sys.exit(f"{command[:6]}: exit status {child.returncode}: {errors}")
    memory = usage.ru_maxrss * 1024
    bound = max(LEAST_PROFILE_MEMORY, min(MEMORY_OF_FILE_BYTE * sum(map(os.path.getsize, files)), MOST_PROFILE_MEMORY))
    return {"CPU": ((usage.ru_utime + usage.ru_stime) * 1000, "ms"), "memory": (memory, "B"), "memory of its bound": (memory / bound, "")}


def total(strobe, file):
    output = subprocess.run([strobe, "top", "--json", "-n", "1", file], stdout=subprocess.PIPE, check=True).stdout
    return json.loads(output)["sum"]


def uncompressed_bytes(file):
    """What a gzip file of one member says at its end (RFC 1952)."""
    with open(file, "rb") as content:
        content.seek(-4, os.SEEK_END)
        return struct.unpack("<I", content.read())[0]


def measure_library(program, scratch, module):
    for axis, case, sizes in AXES:
        if axis == "modules":
            for i in range(max(sizes) + 1):
                shutil.copyfile(module, f"{scratch}/{i}.so")
        report_axis(case, in_turns(sizes, lambda size: run_point(program, axis, size, scratch)))


def measure_profiles(program, strobe, scratch):
    files = {}
    for megabytes in PROFILE_MB:
        pair = [f"{scratch}/{megabytes}.{part}.pb.gz" for part in "ab"]
        for part, file in enumerate(pair):
            subprocess.run([program, "profile", str(megabytes * STACKS_OF_MB + part), file], check=True)
        files[uncompressed_bytes(pair[0])] = pair
    output = f"{scratch}/sum.pb.gz"
    for name, arguments, count in (("top", [], 1), ("diff", [], 2), ("merge", ["-o", output], 2)):
        costs = in_turns(files, lambda size: run_command([strobe, name, *arguments, *files[size][:count]], files[size][:count]))
        report_axis(f"strobe {name} of a profile", costs, lambda size: f"{size / 1e6:.1f} MB")
    # What was merged last is the largest.
    last = files[max(files)]
    if total(strobe, output) != sum(total(strobe, file) for file in last):
        sys.exit("strobe merge: the sum is wrong")
    for pair in files.values():
        for file in pair:
            os.unlink(file)


def measure_fleet(program, strobe, scratch):
    for i in range(FLEET_FILES):
        subprocess.run([program, "profile", str(FLEET_STACKS + i), f"{scratch}/fleet{i}.pb.gz"], check=True)
    for i in range(FLEET_FILES, max(FLEET)):
        os.link(f"{scratch}/fleet{i % FLEET_FILES}.pb.gz", f"{scratch}/fleet{i}.pb.gz")
    files = [f"{scratch}/fleet{i}.pb.gz" for i in range(max(FLEET))]
    output = f"{scratch}/sum.pb.gz"
    costs = in_turns(FLEET, lambda size: run_command([strobe, "merge", "-o", output, *files[:size]], files[:size]))
    report_axis("strobe merge of a fleet's profiles", costs)
    totals = [total(strobe, file) for file in files[:FLEET_FILES]]
    if total(strobe, output) != sum(totals[i % FLEET_FILES] for i in range(max(FLEET))):
        sys.exit("strobe merge of a fleet: the sum is wrong")


def main():
    _, build = map(pathlib.Path, sys.argv[1:3])
    program, strobe = build / "bench/scale/bench_scale", build / "src/cli/strobe"
    with tempfile.TemporaryDirectory() as scratch:
        measure_library(program, scratch, build / "bench/scale/bench_scale_module.so")
        if strobe.exists():
            measure_profiles(program, strobe, scratch)
            measure_fleet(program, strobe, scratch)
        else:
            print("skipped: strobe (it is not built: libcli11-dev)", file=sys.stderr)
    for name, metric, value in beyond:
        report("beyond the limit", name, metric, value, "")
    report("beyond the limit", "strobe", "count", len(beyond), "")
    for name, metric, value in beyond:
        if metric != "exponent" or name.endswith("all sizes"):
            sys.exit(f"{name}: {metric} {value:.2f} is beyond its limit")


if __name__ == "__main__":
    main()
