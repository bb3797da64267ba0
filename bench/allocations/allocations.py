#!/usr/bin/env python3
"""What does it cost to sample allocations?

  allocations.py SOURCES BUILD

A malloc and its free of 64 bytes, with each allocator that is installed; SQLite in memory, beside other tools on the same program; and the
memory that follows live blocks. Medians of interleaved turns. `strobe, off` is a program that links strobe_allocations_dep and samples nothing.
"""
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

TURNS = 7
ALLOCATORS = {"glibc": "", "tcmalloc": "libtcmalloc_minimal.so.4", "jemalloc": "libjemalloc.so.2", "mimalloc": "libmimalloc.so.2"}
JEMALLOC_SAMPLING = {"MALLOC_CONF": "prof:true,prof_active:true,lg_prof_sample:19,prof_final:false"}
TCMALLOC = "libtcmalloc.so.4"
TCMALLOC_SAMPLING = {"TCMALLOC_SAMPLE_PARAMETER": str(512 << 10)}
BLOCKS = (1_000, 10_000, 30_000, 40_000)


def report(case, contender, metric, value, unit):
    print(json.dumps({"question": "allocations", "case": case, "contender": contender, "metric": metric, "value": round(value, 3), "unit": unit}),
          flush=True)


def skip(what, reason):
    print(f"skipped: {what} ({reason})", file=sys.stderr)


def run(command, library="", extra=None):
    """The program's first number; None if it fails, or if the loader or the allocator complains."""
    environment = os.environ | (extra or {}) | ({"LD_PRELOAD": library} if library else {})
    done = subprocess.run([str(part) for part in command], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line[:1].isdigit()]
    complains = "cannot be preloaded" in done.stderr or "<jemalloc>" in done.stderr
    return float(lines[-1].split()[0]) if done.returncode == 0 and lines and not complains else None


def medians(contenders):
    """The median of each contender's turns; those that do not run are left out, by name."""
    values = {name: [] for name in contenders}
    for _ in range(TURNS):
        for name, arguments in contenders.items():
            values[name].append(run(*arguments))
    for name, turns in values.items():
        if None in turns:
            skip(name, "not installed, or built without it")
    return {name: statistics.median(turns) for name, turns in values.items() if None not in turns}


def pairs(tools):
    bare, sampled = tools / "bench_allocations_bare", tools / "bench_allocations"
    for name, library in ALLOCATORS.items():
        contenders = {f"{name} alone": ([bare], library), "strobe": ([sampled, "on"], library), "strobe, without live heap": ([sampled, "space"], library),
                      "strobe, off": ([sampled, "off"], library)}
        if name == "jemalloc":
            contenders["jemalloc's own sampling"] = ([bare], library, JEMALLOC_SAMPLING)
        if name == "tcmalloc":
            contenders["tcmalloc with sampling, off"] = ([bare], TCMALLOC, {"TCMALLOC_SAMPLE_PARAMETER": "0"})
            contenders["tcmalloc's own sampling"] = ([bare], TCMALLOC, TCMALLOC_SAMPLING)
        for contender, value in medians(contenders).items():
            report(f"malloc and free of 64 bytes, {name}", contender, "time", value, "ns")


def sqlite(tools, directory):
    bare, sampled = tools / "bench_allocations_sqlite_bare", tools / "bench_allocations_sqlite"
    if not bare.exists():
        return skip("SQLite", "libsqlite3-dev is not installed")
    contenders = {"alone": ([bare],), "alone, with a second thread": ([bare, "threaded"],), "strobe": ([sampled, "on"],), "strobe, off": ([sampled, "off"],),
                  "jemalloc": ([bare], "libjemalloc.so.2"), "jemalloc's own sampling": ([bare], "libjemalloc.so.2", JEMALLOC_SAMPLING),
                  "strobe, jemalloc": ([sampled, "on"], "libjemalloc.so.2"),
                  "tcmalloc": ([bare], TCMALLOC, {"TCMALLOC_SAMPLE_PARAMETER": "0"}), "tcmalloc's own sampling": ([bare], TCMALLOC, TCMALLOC_SAMPLING),
                  "strobe, tcmalloc": ([sampled, "on"], TCMALLOC)}
    if shutil.which("heaptrack"):
        contenders["heaptrack"] = (["heaptrack", "-o", directory / "heaptrack", bare],)
    else:
        skip("heaptrack", "not installed")
    for contender, value in medians(contenders).items():
        report("SQLite in memory", contender, "CPU time", value / 1e9, "s")


def memory(tools):
    for blocks in BLOCKS:
        grown = medians({mode: ([tools / "bench_allocations_memory", mode, blocks],) for mode in ("on", "space")})
        if len(grown) == 2:
            report(f"{blocks} sampled live blocks", "strobe", "memory of a block", (grown["on"] - grown["space"]) / blocks, "B")


def main():
    build = pathlib.Path(sys.argv[2])
    programs = ("bare", "memory", "sqlite", "sqlite_bare")
    subprocess.run(["ninja", "-C", build, "-k0", *(f"bench/allocations/bench_allocations_{name}" for name in programs)], stdout=subprocess.DEVNULL)
    tools = build / "bench/allocations"
    pairs(tools)
    memory(tools)
    with tempfile.TemporaryDirectory() as directory:
        sqlite(tools, pathlib.Path(directory))


if __name__ == "__main__":
    main()
