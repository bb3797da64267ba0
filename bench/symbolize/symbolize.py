#!/usr/bin/env python3
"""How long do names and source lines take?

  symbolize.py SOURCES BUILD

Names: see names.cc. Lines: 10,000 addresses of a program with more than 500 MB of debug information (Debian's ceph-osd-dbg, which apt
downloads into BUILD), against llvm-symbolizer, addr2line and libdw, fed the same list. Time is CPU time, the median of ROUNDS turns; memory
is the largest resident set. `equal` is the share of addresses for which all functions, files, lines and columns (of addr2line and libdw: the
names of files, and lines) are those of Strobe.
"""
import importlib.util
import json
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys

ROUNDS = 3
ADDRESSES = 10_000
LIBRARIES = 100
FUNCTIONS = 500
PACKAGE = "ceph-osd-dbg"
LEAST_DEBUG_BYTES = 500_000_000


def report(case, contender, metric, value, unit):
    print(json.dumps({"question": "symbolize", "case": case, "contender": contender, "metric": metric, "value": value, "unit": unit}), flush=True)


def skip(what, reason):
    print(f"skipped: {what} ({reason})", file=sys.stderr)


def libraries(directory):
    """Copies of a library without a build id: by its path each is another module."""
    directory.mkdir(parents=True, exist_ok=True)
    source = directory / "library.cc"
    source.write_text("".join(f'extern "C" int function_{i}(int x) {{ int y = x * {i}; while (y > 7) y -= x ^ {i}; return y; }}\n'
                              f"static __attribute__((used)) int hidden_{i}(int x) {{ return x + {i}; }}\n" for i in range(FUNCTIONS)))
    first = directory / "library.so"
    subprocess.run(["g++", "-O1", "-shared", "-fPIC", "-Wl,--build-id=none", source, "-o", first], check=True)
    paths = []
    for i in range(LIBRARIES):
        paths.append(directory / f"library_{i}.so")
        shutil.copyfile(first, paths[-1])
    return paths


def large_program(directory):
    """A file with a large program's debug information, not compressed."""
    program = directory / "large.debug"
    if program.exists():
        return program
    directory.mkdir(parents=True, exist_ok=True)
    if subprocess.run(["apt-get", "download", "-q", PACKAGE], cwd=directory, capture_output=True).returncode != 0:
        return None
    package = next(directory.glob(f"{PACKAGE}_*.deb"))
    subprocess.run(["dpkg-deb", "-x", package, directory / "unpacked"], check=True)
    package.unlink()
    largest = max(directory.glob("unpacked/**/*.debug"), key=lambda path: path.stat().st_size)
    subprocess.run(["objcopy", "--decompress-debug-sections", largest, program], check=True)
    shutil.rmtree(directory / "unpacked")
    return program if program.stat().st_size >= LEAST_DEBUG_BYTES else None


def addresses_of(program):
    """Bytes of code, each as likely as the others."""
    for line in subprocess.run(["readelf", "-SW", program], capture_output=True, text=True).stdout.splitlines():
        fields = line.replace("[ ", "[").split()
        if len(fields) > 5 and fields[1] == ".text":
            start, size = int(fields[3], 16), int(fields[5], 16)
    draw = random.Random(7)
    return [start + draw.randrange(size) for _ in range(ADDRESSES)]


def measure(command, listed):
    """Its output, its CPU time in seconds, and its largest resident set in MiB."""
    process = subprocess.Popen([str(part) for part in command], stdin=open(listed), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    output = process.stdout.read().decode(errors="replace")
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = status
    return output, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def inlined(frames):
    """The names that debug information gives; the outermost function's is the symbol's, which may have several."""
    return [frame[0] for frame in frames[:-1]]


def lines(sources, build):
    spec = importlib.util.spec_from_file_location("source_lines_test", sources / "tests/truth/source_lines_test.py")
    readers = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(readers)
    directory = build / "symbolize"
    program = large_program(directory)
    if program is None:
        return skip("lines", f"apt has no {PACKAGE} here")
    listed = directory / "addresses"
    listed.write_text("".join(f"0x{address:x}\n" for address in addresses_of(program)))
    tools = build / "bench/symbolize"
    for name in ("lines", "libdw"):  # the second is not there without libdw-dev
        subprocess.run(["ninja", "-C", build, f"bench/symbolize/bench_symbolize_{name}"], capture_output=True)
    contenders = {"strobe": ([tools / "bench_symbolize_lines", program], readers.answers, True)}
    if readers.LLVM:
        contenders[readers.LLVM] = ([readers.LLVM, "--no-demangle", f"--obj={program}"], readers.answers, True)
    else:
        skip("llvm-symbolizer", "not installed")
    if readers.ADDR2LINE:
        contenders["addr2line"] = (["addr2line", "-a", "-i", "-f", "-e", program], readers.addr2line_answers, False)
    else:
        skip("addr2line", "not installed")
    if (tools / "bench_symbolize_libdw").exists():
        contenders["libdw, file mapped"] = ([tools / "bench_symbolize_libdw", "--map", program], readers.answers, False)
        contenders["libdw, sections read"] = ([tools / "bench_symbolize_libdw", program], readers.answers, False)
    else:
        skip("libdw", "libdw-dev is not installed")
    results = {name: [] for name in contenders}
    for _ in range(ROUNDS):
        for name, (command, _, _) in contenders.items():
            results[name].append(measure(command, listed))
    own = readers.answers(results["strobe"][0][0])
    for name, (_, read, is_exact) in contenders.items():
        case = f"lines of {ADDRESSES} addresses"
        report(case, name, "CPU time", statistics.median(result[1] for result in results[name]), "s")
        report(case, name, "memory", statistics.median(result[2] for result in results[name]), "MiB")
        if name == "strobe":
            continue
        # What has no debug information is named by the symbol alone.
        pairs = list(zip(own, read(results[name][0][0])))
        equal = sum(readers.places(a, is_exact) == readers.places(b, is_exact) and (not is_exact or inlined(a) == inlined(b)) for a, b in pairs)
        report(case, name, "equal", equal / len(pairs), "share")


def main():
    sources, build = map(pathlib.Path, sys.argv[1:3])
    names = build / "bench/symbolize/bench_symbolize"
    paths = libraries(build / "symbolize/libraries")
    subprocess.run([names, *paths], check=True)
    lines(sources, build)


if __name__ == "__main__":
    main()
