#!/usr/bin/env python3
"""What several profilers say of one thread: a timer wakes it every 4 ms, it works for 0.6 ms in A and for 1.4 ms in B, and waits again. Eight
phases against the kernel's tick; each profiler at 100 Hz, its own files read back.

  accuracy_peers.py SOURCE BUILD [SECONDS]      as bench/run.sh calls it; SECONDS a phase, 8 by default
"""
import json
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile

PHASES = 8
PERIOD_NS = 4_000_000
RATE_HZ = 100
BUSY_SHARE = 0.5


def report(case, contender, metric, value, unit):
    print(json.dumps({"case": case, "contender": contender, "metric": metric, "value": round(value, 3), "unit": unit}), flush=True)


def skip(name, reason):
    print(f"skipped: {name} ({reason})", file=sys.stderr)


def run(command, **options):
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True, **options).stdout


class Native:
    """A program that prints the true share, and where A and B are."""

    def __init__(self, program, mode):
        self.program, self.mode = program, mode

    def command(self, phase_ns, time_ns, output):
        return [self.program, self.mode, phase_ns, time_ns, output]

    def observe(self, phase_ns, time_ns, output):
        words = run(self.command(phase_ns, time_ns, output)).split()
        bounds = [int(word, 16) for word in words[1:5]]
        return float(words[0]), self.counts(output, bounds)


class Strobe(Native):
    @staticmethod
    def counts(output, _):
        counts = {"A": 0, "B": 0}
        for line in output.read_text().splitlines() if output.exists() else ():
            letter, count = line.split()
            counts[letter] += int(count)
        return counts["A"], counts["B"]


class Gperftools(Native):
    @staticmethod
    def counts(output, bounds):
        """The binary form of its profiles: words; a header of five, then (count, depth, addresses...), the last with the count 0."""
        data = output.read_bytes()
        words = struct.unpack(f"<{len(data) // 8}Q", data[:len(data) // 8 * 8])
        a = b = 0
        at = 2 + words[1]
        while at + 2 < len(words) and words[at] != 0:
            count, depth = words[at], words[at + 1]
            leaf = words[at + 2:at + 2 + depth]
            # Return addresses, and the first an interrupted one.
            a += count if any(bounds[0] <= address < bounds[1] for address in leaf) else 0
            b += count if any(bounds[2] <= address < bounds[3] for address in leaf) else 0
            at += 2 + depth
        return a, b


class Perf(Native):
    def command(self, phase_ns, time_ns, output):
        return ["perf", "record", "-q", "-e", "task-clock", "-F", RATE_HZ, "-o", output, "--", *super().command(phase_ns, time_ns, "/dev/null")]

    @staticmethod
    def counts(output, bounds):
        a = b = 0
        for line in run(["perf", "script", "-i", output, "-F", "ip"]).split():
            address = int(line, 16)
            a += bounds[0] <= address < bounds[1]
            b += bounds[2] <= address < bounds[3]
        return a, b


class Go:
    def __init__(self, program):
        self.program = program

    def observe(self, phase_ns, time_ns, output):
        truth = float(run([self.program, phase_ns, time_ns, output]))
        text = run(["go", "tool", "pprof", "-top", "-cum", "-sample_index=samples", "-nodecount=1000", self.program, output])
        counts = {}
        for name in ("workInA", "workInB"):
            found = re.search(rf"^\s*\d+\s+\S+\s+\S+\s+(\d+)\s+\S+\s+main\.{name}", text, re.MULTILINE)
            counts[name] = int(found.group(1)) if found else 0
        return truth, (counts["workInA"], counts["workInB"])


def contenders(root, build, directory):
    loop = build / "bench" / "accuracy_peers" / "bench_accuracy_loop"
    found = {"strobe": Strobe(loop, "strobe")}
    gperftools = loop.with_name(loop.name + "_gperftools")
    if gperftools.exists():
        found["gperftools"] = Gperftools(gperftools, "gperftools")
    else:
        skip("gperftools", "no libprofiler")
    if shutil.which("go"):
        program = directory / "loop_go"
        try:
            run(["go", "build", "-o", program, root / "bench" / "accuracy_peers" / "loop.go"])
            found["go"] = Go(program)
        except subprocess.CalledProcessError as error:
            skip("go", error.stderr.strip().splitlines()[-1])
    else:
        skip("go", "no Go here")
    try:
        run(["perf", "record", "-q", "-e", "task-clock", "-o", directory / "probe", "--", "true"])
        found["perf"] = Perf(loop, "none")
    except (OSError, subprocess.CalledProcessError):
        skip("perf", "not here, or not allowed")
    return found


def main():
    root, build = map(pathlib.Path, sys.argv[1:3])
    time_ns = int(float(sys.argv[3] if len(sys.argv) > 3 else 8) * 1e9)
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        found = contenders(root, build, directory)
        seen = {contender: [] for contender in found}
        # In turns, so that a slow moment of the machine meets all of them.
        for phase in range(PHASES):
            for contender, profiler in found.items():
                truth, (a, b) = profiler.observe(phase * PERIOD_NS // PHASES, time_ns, directory / f"{contender}.{phase}")
                seen[contender].append((truth, a, b))
                case = f"4 ms loop, phase {phase}/{PHASES}"
                report(case, contender, "share of A, truth 30 %", 100 * a / (a + b) if a + b else 0, "%")
        expected = time_ns / 1e9 * BUSY_SHARE * RATE_HZ
        for contender, outcomes in seen.items():
            case = "4 ms loop, all phases"
            # Of as many samples as were expected: a thread that is not seen is no better than one seen wrongly.
            squares = [(a / (a + b) - truth / 100) ** 2 / (0.21 / (a + b)) if a + b else expected for truth, a, b in outcomes]
            report(case, contender, "mean z²", sum(squares) / PHASES, "")
            report(case, contender, "least samples of those expected", 100 * min(a + b for _, a, b in outcomes) / expected, "%")
            report(case, contender, "most samples of those expected", 100 * max(a + b for _, a, b in outcomes) / expected, "%")


if __name__ == "__main__":
    main()
