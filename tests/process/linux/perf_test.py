#!/usr/bin/env python3
"""Records a program by perf, and compares what `strobe script` makes of it with what `perf script` does.

  perf_test.py STROBE PROGRAM

What need not be sampled, such as a deep stack, is recorded again until it has been seen.

Skips, with the reason, where there is no perf or no right to use it.
"""
import collections
import functools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

for folder in ("readers", "support"):
    sys.path.insert(0, str(pathlib.Path(__file__).parent.parent.parent / folder))
from checks import check, failures  # noqa: E402
import pprof_file  # noqa: E402
from until_seen import work_until  # noqa: E402

SKIPPED = 77
TIMEOUT_S = 120
# Of a thread, and of a program: a stack up to there is whole.
OUTERMOST = {"_start", "clone", "clone3", "__clone", "__clone3"}
PSEUDO = {"[truncated]", "[broken stack]", "[no unwind info]", "[lost]", "[kernel]"}

# Runs a loop that it has generated, and lists it as JIT compilers do.
GENERATED = """
import ctypes, mmap, os, time
page = mmap.mmap(-1, 4096, prot=7)
page.write(bytes.fromhex("b9 00 00 01 00 ff c9 75 fc c3"))  # mov ecx, 65536; dec ecx; jnz; ret
address = ctypes.addressof(ctypes.c_char.from_buffer(page))
open("/tmp/perf-%d.map" % os.getpid(), "w").write("%x 10 generated loop\\n" % address)
open("generated.pid", "w").write(str(os.getpid()))
loop = ctypes.CFUNCTYPE(None)(address)
while time.process_time() < 0.4: loop()
"""


def run(command, **options):
    return subprocess.run(list(map(str, command)), capture_output=True, timeout=TIMEOUT_S, **options)


def find_perf():
    """Debian's /usr/bin/perf looks for the perf of the running kernel."""
    candidates = [shutil.which("perf")] + sorted(map(str, pathlib.Path("/usr/bin").glob("perf_*")))
    for perf in filter(None, candidates):
        if run([perf, "version"]).returncode == 0:
            return perf
    return None


class Test:
    def __init__(self, perf, strobe, program, directory):
        self.perf, self.strobe_command, self.program, self.directory = perf, os.path.abspath(strobe), os.path.abspath(program), directory

    def record(self, name, flags, command):
        result = run([self.perf, "record", "-q", "-o", name, *flags, "--", *command], cwd=self.directory)
        return result.returncode == 0, result.stderr.decode(errors="replace")

    def strobe(self, *arguments, status=0, **options):
        result = run([self.strobe_command, *arguments], cwd=self.directory, **options)
        errors = result.stderr.decode(errors="replace")
        check(result.returncode == status, "strobe %s: exit status %d: %s" % (" ".join(map(str, arguments)), result.returncode, errors[:300]))
        return errors

    def profile(self, name):
        self.strobe("script", name, "-o", name + ".pb.gz")
        return pprof_file.read(self.directory / (name + ".pb.gz"))

    def perf_samples(self, name, *flags):
        """(event, period, thread, [(offset in the file or address, symbol, file)]) of each sample."""
        result = run([self.perf, "script", "-i", name, "--no-inline", "-F",
                      "comm,tid,time,event,period,ip,sym,dso", *flags], cwd=self.directory)
        check(result.returncode == 0, "perf script: " + result.stderr.decode(errors="replace")[:300])
        for block in result.stdout.decode(errors="replace").split("\n\n"):
            head, frames = None, []
            for line in block.splitlines():
                begin = re.match(r"^(.*?) +(\d+) +[\d.]+: +(\d+) +(\S+?): *$", line)
                frame = re.match(r"^\s+([0-9a-f]+) (.*) \((.*)\)$", line)
                if begin:
                    head, frames = begin, []
                elif frame and head:
                    frames.append((int(frame[1], 16), frame[2], frame[3]))
            if head:
                yield head[4], int(head[3]), int(head[2]), frames


@functools.cache
def symbols_of(path):
    """The addresses of each name in an ELF file, and in its separate debug information."""
    addresses = {}
    notes = run(["readelf", "-n", path]).stdout.decode(errors="replace")
    build_id = re.search(r"Build ID: ([0-9a-f]{2})([0-9a-f]+)", notes)
    debug = "/usr/lib/debug/.build-id/%s/%s.debug" % build_id.groups() if build_id else ""
    for file in filter(os.path.exists, (path, debug)):
        for line in run(["readelf", "-sW", file]).stdout.decode(errors="replace").splitlines():
            fields = line.split()
            if len(fields) == 8 and fields[3] in ("FUNC", "IFUNC", "NOTYPE"):
                addresses.setdefault(fields[7].split("@")[0], set()).add(int(fields[1], 16))
    return addresses


def may_be_aliases(mine, symbol, path):
    """Whether both names are those of one address, as far as the file's symbols tell. Without one, ours is that of the file."""
    mine, symbol = (symbols_of(path).get(name.split("@")[0]) for name in (mine, symbol))
    return mine is None or symbol is None or bool(mine & symbol)


def user_part(frames):
    return tuple(frame for frame in frames if not frame[2].startswith("[kernel") and frame[2] != "[vdso]" and frame[0] < 1 << 63)


def bare(symbol):
    """Without a version, parameters and template arguments, and without what makes a function's part or a local alias of it another name."""
    symbol, before = symbol.replace("(anonymous namespace)", "anonymous"), None
    while symbol != before:
        symbol, before = re.sub(r"<[^<>]*>", "", symbol), symbol
    return re.sub(r"@@.*|\(.*\)$|\.(part|isra|constprop|cold).*|^_+(GI_)?_*", "", symbol)


def ours(profile):
    """How many samples have each stack, as perf shows it."""
    whole, cut = collections.Counter(), collections.Counter()
    for locations, values, _ in profile.rows:
        names = {location.function[0] for location in locations}
        stack = tuple((location.offset, location.function[0], location.mapping[2]) for location in locations if location.mapping
                      and location.mapping[2] not in ("[kernel]", "[vdso]"))
        (cut if names & PSEUDO - {"[kernel]"} else whole)[stack] += values[0]
    return whole, cut


def compare_stacks(test):
    """Frames are equal wherever perf's are whole; a stack that is too deep is marked. Returns what was not seen of that."""
    ok, errors = test.record("dwarf.data", ["-F", "1999", "--call-graph", "dwarf", "-e", "task-clock"], [test.program, "400"])
    check(ok, "perf record: " + errors)
    profile = test.profile("dwarf.data")
    whole, cut = ours(profile)
    places = collections.Counter()
    names = {}
    # ld.so's _start has no frame information: where perf ends a stack there, ours says so.
    for stack, count in (whole + cut).items():
        places[tuple(frame[0] for frame in stack)] += count
        names.update({(frame[2], frame[0]): frame[1] for frame in stack})
    theirs, samples, same, differ = collections.Counter(), 0, 0, collections.Counter()
    for _, _, _, frames in test.perf_samples("dwarf.data"):
        samples += 1
        stack = user_part(frames)
        # In clone3, behind its system call, perf knows no caller: in the thread that starts another one it ends there, too.
        if stack and stack[-1][1] in OUTERMOST and (len(stack) > 1 or stack[0][1] == "_start"):
            theirs[tuple(frame[0] for frame in stack)] += 1
            for offset, symbol, file in stack:
                mine = names.get((file, offset))
                if mine is None or symbol == "[unknown]" or symbol.startswith("@"):
                    continue
                if bare(mine) == bare(symbol):
                    same += 1
                else:
                    differ[mine, symbol, file] += 1
    missing = {stack: count - places[stack] for stack, count in theirs.items() if places[stack] < count}
    for stack, count in list(missing.items())[:3]:
        print("%d x only perf has: %s" % (count, " ".join(map(hex, stack))))
        for ours_too, others in (whole + cut).items():
            if ours_too[0][0] == stack[0]:
                print("%d x ours: %s" % (others, " ".join("%s+%#x" % (frame[1], frame[0]) for frame in ours_too)))
    check(not missing, "%d of perf's %d whole stacks are not ours" % (sum(missing.values()), sum(theirs.values())))
    total = sum(values[0] for _, values, _ in profile.rows)
    print("%d frames have perf's name; other names: %s" % (same, sorted(differ.items())))
    check(not [name for name in differ if os.path.basename(name[2]) == os.path.basename(test.program)], "names of the program's functions")
    # In a library one address has several names, of which each takes its own.
    for mine, symbol, file in differ:
        check(may_be_aliases(mine, symbol, file), "names of a library's function: %s, not %s in %s" % (mine, symbol, file))
    check(total == samples, "%d samples, perf has %d" % (total, samples))
    deep = [row for row in profile.rows if row[0][-1].function[0] == "[truncated]"]
    print("%d samples: %d whole, %d of perf's whole; %d too deep" %
          (total, sum(whole.values()), sum(theirs.values()), sum(row[1][0] for row in deep)))
    check(all(sum("Descend" in location.function[0] for location in row[0]) > 60 for row in deep),
          "stacks that are deeper than what perf copies end in [truncated]")
    threads = {labels.get("thread_id") for _, _, labels in profile.rows}
    check(len(threads) <= 2, "two threads: %r" % threads)
    functions = {name for _, name in profile.functions.values()}
    return not_shown({"a whole stack": theirs, "a name": same, "a stack that is too deep": deep, "two threads": len(threads) == 2,
                      "a function of the program": any("Descend" in name for name in functions),
                      "a function of the C library": any("qsort" in name for name in functions)})


def not_shown(shown):
    return {what for what, is_shown in shown.items() if not is_shown}


def compare_events(test):
    """Two events: each has its own amounts."""
    ok, errors = test.record("events.data", ["-F", "999", "--call-graph", "dwarf", "-e", "task-clock,page-faults"], [test.program, "20"])
    if not ok:
        print("skipped: two events (%s)" % errors.strip())
        return set()
    profile = test.profile("events.data")
    check(profile.types == ["samples", "cpu", "page-faults_samples", "page-faults"], "value types: %r" % profile.types)
    sums = [sum(row[1][column] for row in profile.rows) for column in range(4)]
    theirs, counts = collections.Counter(), collections.Counter()
    for event, period, _, _ in test.perf_samples("events.data"):
        theirs[event.split(":")[0]] += period
        counts[event.split(":")[0]] += 1
    check(sums == [count for event in ("task-clock", "page-faults") for count in (counts[event], theirs[event])],
          "samples and sums of periods: %r, perf: %r and %r" % (sums, counts, theirs))
    return not_shown({"two events": all(sums)})


def compare_processes(test):
    """Processes that a shell starts: one file is one module, whatever its address."""
    ok, errors = test.record("shell.data", ["-F", "999", "--call-graph", "dwarf", "-e", "task-clock"],
                             ["sh", "-c", "'%s' 400 & '%s' 400; wait" % (test.program, test.program)])
    check(ok, "perf record of a shell: " + errors)
    profile = test.profile("shell.data")
    mappings = [path for _, _, path in profile.mappings.values() if path == test.program]
    check(len(mappings) == 1, "one module of the program: %r" % mappings)
    processes = {labels.get("process_id") for locations, _, labels in profile.rows
                 if any("Descend" in location.function[1] for location in locations)}
    check(len(processes) <= 2, "two processes of the program: %r" % processes)
    return not_shown({"two processes": len(processes) == 2})


def compare_chains(test):
    """perf's own call chains."""
    ok, errors = test.record("chains.data", ["-F", "999", "--call-graph", "fp", "-e", "task-clock"], [test.program, "400"])
    check(ok, "perf record by frame pointers: " + errors)
    return not_shown({"a leaf": any("Spin" in location[0].function[1] for location, _, _ in test.profile("chains.data").rows)})


def compare_pipe(test):
    piped = run([test.perf, "record", "-q", "-F", "999", "--call-graph", "dwarf", "-e", "task-clock", "-o", "-", "--", test.program, "400"])
    if piped.returncode != 0:
        return set()
    test.strobe("script", "-", "-o", "piped.pb.gz", input=piped.stdout)
    profile = pprof_file.read(test.directory / "piped.pb.gz")
    check(profile.types == ["samples", "cpu"], "a pipe's types: %r" % profile.types)
    return not_shown({"a deep stack": any(len(row[0]) > 20 for row in profile.rows)})


def compare_packed(test):
    """Compressed records, and the directory that several threads of perf write: all samples, with whole stacks."""
    unseen = set()
    for name, flags in (("packed.data", ["-z"]), ("threads.data", ["--threads"]), ("both.data", ["-z", "--threads"])):
        shutil.rmtree(test.directory / name, ignore_errors=True)
        ok, errors = test.record(name, [*flags, "-F", "1999", "--call-graph", "dwarf", "-e", "task-clock"], [test.program, "300"])
        if not ok:
            print("skipped: perf record %s (%s)" % (" ".join(flags), errors.strip()[:200]))
            continue
        profile = test.profile(name)
        samples = list(test.perf_samples(name))
        check(sum(row[1][0] for row in profile.rows) == len(samples), "%s: %d samples, perf has %d" %
              (name, sum(row[1][0] for row in profile.rows), len(samples)))
        check(sum(row[1][1] for row in profile.rows) == sum(period for _, period, _, _ in samples), name + ": the sum of periods")
        check(next(iter(profile.mappings.values()))[2] == test.program, name + ": the program is the first module")
        unseen |= not_shown({"a deep stack in " + name: any(len(row[0]) > 20 for row in profile.rows)})
    return unseen


def refuse_empty(test):
    (test.directory / "empty.data").mkdir()
    check("a directory without a file of perf" in test.strobe("script", "empty.data", "-o", "x.folded", status=1), "an empty directory")


def name_generated(test):
    """Generated code has the names that the process has written for perf, if they are this user's."""
    ok, errors = test.record("generated.data", ["-F", "999", "--call-graph", "dwarf", "-e", "task-clock"], [sys.executable, "-c", GENERATED])
    check(ok, "perf record of generated code: " + errors)
    profile = test.profile("generated.data")
    for path in pathlib.Path("/tmp").glob("perf-%d.map" % int((test.directory / "generated.pid").read_text())):
        path.unlink()
    return not_shown({"generated code": any(locations[0].function[0] == "generated loop" for locations, _, _ in profile.rows)})


def name_dumped(test):
    """Generated code has the names of the time of the sample, of the jitdump file that the process has mapped."""
    ok, errors = test.record("dumped.data", ["-k", "1", "-F", "999", "-e", "task-clock"],
                             ["env", "KEEP=1", sys.executable, pathlib.Path(__file__).parent / "dumped.py", test.directory])
    check(ok, "perf record of a jitdump file: " + errors)
    profile = test.profile("dumped.data")
    threads = {loop: {labels["thread_id"] for locations, _, labels in profile.rows if locations[0].function[0] == loop}
               for loop in ("first loop", "second loop")}
    check(not threads["first loop"] & threads["second loop"], "code that was replaced: %r" % threads)
    return not_shown({loop: len(ids) == 1 for loop, ids in threads.items()})


def break_files(test):
    whole = (test.directory / "dwarf.data").read_bytes()
    for size in list(range(0, 300, 37)) + [len(whole) // 3, len(whole) - 1]:
        (test.directory / "cut.data").write_bytes(whole[:size])
        result = run([test.strobe_command, "script", "cut.data", "-o", "cut.folded"], cwd=test.directory)
        errors = result.stderr.decode(errors="replace")
        check(result.returncode == 1 and re.fullmatch(r"strobe: cut\.data: [^\n]+\n", errors), "the first %d bytes: %r" % (size, errors))


def until_seen(part, test):
    """A part returns what its recording has not shown."""
    runs = []

    def is_seen(unseen):
        runs.append(unseen or set())
        return bool(failures) or not set.intersection(*runs)

    work_until(is_seen, lambda: part(test), part.__name__)


def main():
    perf = find_perf()
    if perf is None:
        print("skipped: no perf that runs: install linux-perf")
        return SKIPPED
    with tempfile.TemporaryDirectory() as scratch:
        test = Test(perf, sys.argv[1], sys.argv[2], pathlib.Path(scratch))
        ok, errors = test.record("first.data", ["-e", "task-clock"], ["true"])
        if not ok:
            print("skipped: perf record is refused here: " + " ".join(errors.split())[:300])
            return SKIPPED
        for part in (compare_stacks, compare_events, compare_processes, compare_chains, compare_pipe, compare_packed, refuse_empty, name_generated,
                     name_dumped, break_files):
            until_seen(part, test)
    print("%d failures" % len(failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
