#!/usr/bin/env python3
"""Runs an example as a newcomer does, and holds what it prints to what it promises.

usage: examples_test.py minimal|global|reference|own_parts|formats|labels|zones|trace|events|other_processes|quickstart COMMAND...

The command is the example, after what runs it where the system does not. What a run need not show, such as a sample in one function, the
examples are run for until it has been seen; all else is checked in each run.
"""

import gzip
import json
import math
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "support"))
import chance  # noqa: E402
from until_seen import work_until  # noqa: E402


def run(arguments, directory, status=0):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("STROBE_")}
    result = subprocess.run(arguments, cwd=directory, env=environment, capture_output=True, text=True, timeout=100)
    if result.returncode != status:
        sys.exit(f"{arguments}: exit status {result.returncode}, not {status}\n{result.stdout}{result.stderr}")
    return result


def strings_of(path):
    """The bytes of a profile, which hold its names as they are."""
    return gzip.decompress(pathlib.Path(path).read_bytes())


def check(condition, message, output=""):
    if not condition:
        sys.exit(f"{message}\n{output}")


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 0x80:
            return value, at


def fields(message):
    """A protobuf message's fields: number -> values, each an int or bytes."""
    result, at = {}, 0
    while at < len(message):
        key, at = varint(message, at)
        value, at = varint(message, at)
        if key & 7 == 2:
            value, at = message[at:at + value], at + value
        else:
            check(key & 7 == 0, f"wire type {key & 7}")
        result.setdefault(key >> 3, []).append(value)
    return result


def packed(values):
    for value in values:
        at = 0
        while isinstance(value, bytes) and at < len(value):
            number, at = varint(value, at)
            yield number - (1 << 64) if number >> 63 else number
        if isinstance(value, int):
            yield value


def stacks_of(path):
    """(thread's name, CPU nanoseconds, functions' names from the leaf on) of each sample of a profile whose second column is CPU time."""
    profile = fields(strings_of(path))
    strings = [text.decode() for text in profile[6]]
    functions = {function[1][0]: strings[function[2][0]] for function in map(fields, profile[5])}
    names = {}
    for location in map(fields, profile[4]):
        names[location[1][0]] = [functions[fields(line)[1][0]] for line in location.get(4, [])]
    for sample in map(fields, profile[2]):
        labels = {strings[label[1][0]]: strings[label[2][0]] for label in map(fields, sample[3]) if 2 in label}
        yield labels["thread_name"], list(packed(sample[2]))[1], [name for id in packed(sample[1]) for name in names[id]]


def not_in(profile, names):
    """Those of the names that the bytes of a profile do not have."""
    return {name for name in names if name.encode() not in profile}


def check_stacks(path, output):
    """Stacks lead through libraries without frame pointers to the thread's first function. Returns what is not seen of that."""
    library = {"database": ("sqlite3", "RunDatabase"), "compression": ("libz|deflate|inflate|crc32|adler", "RunCompression")}
    unseen = {f"a stack of {thread} in its library" for thread in library}
    # Of a sample that found no room, the amount may be in [lost].
    drops = sum(map(int, re.findall(r"^  dropped, .*? (\d+)$", output, re.M)))
    for thread, cpu_ns, stack in stacks_of(path):
        if stack[-1] == "[residual]" or (stack[-1] == "[lost]" and drops > 0):
            continue
        check(not stack[-1].startswith("["), f"{thread}: {cpu_ns} ns are in a stack that does not end at its start: {stack}", output)
        function, caller = library.get(thread, ("$.", ""))
        if any(re.search(function, name) for name in stack):
            check(any(name.startswith(caller) for name in stack), f"{thread}: its library without its caller: {stack}", output)
            unseen.discard(f"a stack of {thread} in its library")
    return unseen


def waiting(command, thread):
    """The names that a profile has of a thread that uses next to no CPU time. Clocks of threads on Windows may count whole ticks alone."""
    return set() if command[-1].endswith(".exe") else {thread}


def run_for_one_profile(program, command, directory, threads):
    """Runs an example that leaves one profile; returns its bytes."""
    run(command, directory)
    profiles = list((directory / "strobe-profiles").iterdir())
    check(len(profiles) == 1, f"expected one profile, found {profiles}")
    check(re.fullmatch(program + r"\.\d+\.0\.pb\.gz", profiles[0].name), f"unexpected name {profiles[0].name}")
    profile = strings_of(profiles[0])
    unseen = not_in(profile, threads | {"cpu", "nanoseconds"})
    check(not unseen, f"the profile has not: {unseen}")
    return profile


def test_minimal(command, directory):
    run_for_one_profile("minimal", command, directory, {"main"})
    (profile,) = (directory / "strobe-profiles").iterdir()
    return set() if any(not stack[-1].startswith("[") for _, _, stack in stacks_of(profile)) else {"a whole stack"}


def test_global(command, directory):
    profile = run_for_one_profile("global", command, directory, {"worker"} | waiting(command, "main"))
    return not_in(profile, ["RunWorker"])


def test_reference(command, directory):
    profile = run_for_one_profile("reference", command, directory, {"renderer 0", "renderer 1"} | waiting(command, "main"))
    return not_in(profile, ["RunThread"])


def test_own_parts(command, directory):
    output = run(command, directory).stdout
    check(re.search(r"^exported: \d+ bytes, [1-9]\d* stacks of [1-9]\d* threads$", output, re.M), "the exporter printed nothing", output)
    queued = re.search(r"^  queued +(\d+) job-nanoseconds$", output, re.M)
    samples = re.search(r"; (\d+) samples; OK$", output, re.M)
    check(queued and samples, "the provider printed nothing", output)
    check(not list(directory.iterdir()), "a file was written in spite of the own exporter")
    return {what for what, count in (("a job that waits", queued), ("a sample", samples)) if int(count[1]) == 0}


def test_formats(command, directory):
    run(command, directory)
    suffixes = {file.name.split(".", 3)[3]: file for file in (directory / "strobe-profiles").iterdir()}
    check(set(suffixes) == {"pb.gz", "firefox.json.gz", "folded"}, f"unexpected files {suffixes}")
    folded = suffixes["folded"].read_text()
    check(re.match(r"[^;]+(;[^;]+)* \d+\n", folded), "no folded stacks", folded)
    cpu_ns = sum(int(line.rsplit(" ", 1)[1]) for line in folded.splitlines())
    check(cpu_ns == sum(value for _, value, _ in stacks_of(suffixes["pb.gz"])), "the formats differ in CPU time", folded)
    firefox = json.loads(gzip.decompress(suffixes["firefox.json.gz"].read_bytes()))
    weight_ms = sum(weight for thread in firefox["threads"] for weight in thread["samples"]["weight"])
    check(round(weight_ms * 1e6) == cpu_ns, "the formats differ in CPU time", folded)


def not_in_the_profile(directory, names):
    (profile,) = (directory / "strobe-profiles").iterdir()
    return not_in(strings_of(profile), names)


def test_labels(command, directory):
    output = run(command, directory).stdout
    check(output == "labels left on main: 0\n", "labels are left behind", output)
    check(not not_in_the_profile(directory, ["helper", "second"]), "the threads are not in the profile")
    return not_in_the_profile(directory, ["endpoint", "/pay", "/list", "shard", "step", "charge"])


def test_zones(command, directory):
    output = run(command, directory).stdout
    check(output == "labels of main: 1\n", "other labels than the zone's", output)
    unseen = not_in_the_profile(directory, ["zone_path", "request;parse", "slow", "true"])
    (path,) = (directory / "strobe-profiles").iterdir()
    roots = {tuple(reversed(stack)) for _, _, stack in stacks_of(path)}
    for zones in (("request", "parse"), ("request",), ("reply",)):
        inside = [stack for stack in roots if stack[:len(zones)] == zones and stack[len(zones):][:1] != ("parse",)]
        check(all("main" in stack for stack in inside), f"a stack begins with {zones} and does not lead to main", str(roots))
        unseen |= set() if inside else {zones}
    return unseen


def test_trace(command, directory):
    output = run(command, directory).stdout
    check(output == "trace left on main: 0\n", "a trace is left behind", output)
    return not_in_the_profile(directory, ["span_id", "00000000000000a1", "00000000000000b2", "trace_id", "local_root_span_id"])


def sums_by_function(path, column):
    """The column's sum for each function on the stacks, and for all samples, which has the key None."""
    profile = fields(strings_of(path))
    strings = [text.decode() for text in profile[6]]
    index = [strings[fields(value_type)[1][0]] for value_type in profile[1]].index(column)
    functions = {function[1][0]: strings[function[2][0]] for function in map(fields, profile[5])}
    names = {}
    for location in map(fields, profile[4]):
        names[location[1][0]] = [functions[fields(line)[1][0]] for line in location.get(4, [])]
    sums = {None: 0}
    for sample in map(fields, profile[2]):
        value = list(packed(sample[2]))[index]
        for name in {None, *(name for id in packed(sample[1]) for name in names[id])}:
            sums[name] = sums.get(name, 0) + value
    return sums


def test_events(command, directory):
    output = run(command, directory).stdout
    check(output == "bytes in no profile: 0\n", "an event is in no profile", output)
    (path,) = (directory / "strobe-profiles").iterdir()
    sums = sums_by_function(path, "sent")
    # The profile counts a message as one of the bytes that its probability to be sampled makes of it.
    interval, messages = 256 << 10, {"SendAnswer": (50_000, 4_000), "SendPage": (50_000, 16_000)}
    of_a_sample = {name: size / -math.expm1(-size / interval) for name, (_, size) in messages.items()}
    variance = sum(count * size * (of_a_sample[name] - size) for name, (count, size) in messages.items())
    truth = sum(count * size for count, size in messages.values())
    chance.within(sums[None], chance.sum_bounds(truth, variance, max(of_a_sample.values())), "bytes of sampled messages, from a seed of the clock")
    of_each = {name: sum(value for function, value in sums.items() if function and name in function) for name in messages}
    check(sum(of_each.values()) == sums[None], f"{of_each} are not the {sums[None]} bytes: a stack has no function that sends", output)
    return {name for name, value in of_each.items() if value == 0}


def test_other_processes(command, directory):
    """The functions of an interpreter that knows nothing of it, which has neither debug information nor frame pointers."""
    with subprocess.Popen([sys.executable, "-c", "while True: sum(range(1000))"]) as other:
        try:
            result = subprocess.run([*command, str(other.pid), "1"], cwd=directory, capture_output=True, text=True, timeout=100)
        finally:
            other.kill()
    if "perf events are refused" in result.stderr:
        print("skipped: " + result.stderr.strip())
        sys.exit(77)
    check(result.returncode == 0, f"exit status {result.returncode}", result.stderr)
    lines = result.stdout.splitlines()
    counts = re.fullmatch(r"(\d+) samples, (\d+) of them whole stacks; not unwound: (\d+)", lines[-1])
    check(lines[0].split() == ["self", "total", "function"] and counts, "the table", result.stdout)
    samples, whole, refused = map(int, counts.groups())
    rows = {name: (int(own), int(total)) for own, total, name in (line.split(maxsplit=2) for line in lines[1:-1])}
    check(all(own <= total <= samples for own, total in rows.values()), "a function alone, in all, and all samples", result.stdout)
    check(refused == 0, "code that is not unwound", result.stdout)
    seen = {"a whole stack"} if whole > 0 else set()
    if any(name.startswith("_PyEval_EvalFrame") for name in rows):
        seen.add("the interpreter's loop")
    return {"a whole stack", "the interpreter's loop"} - seen


def test_quickstart(command, directory):
    used_before_s = cpu_time_of_children()
    output = run([*command, "--seconds", "3", "--directory", "out"], directory).stdout
    used_s = cpu_time_of_children() - used_before_s
    path = output.splitlines()[-1]
    check(path == "out/profile.pb.gz", f"the last line is {path}", output)
    check([file.name for file in (directory / "out").iterdir()] == ["profile.pb.gz"], "more than the profile is left in its directory")
    names = {"main", "database", "compression", "words", "bookkeeping"}
    profile = strings_of(directory / path)
    check(not not_in(profile, names | {"wall"}), f"the profile has not: {not_in(profile, names | {'wall'})}", output)
    threads = re.findall(r"^  (\w+) +([\d.]+) s +([\d.]+) s +[-+]", output, re.M)
    check({name for name, _, _ in threads} == names, "threads are missing", output)
    # A thread's own readings of its clock lie inside of what is sampled, and the process has used all of that. Both are rounded.
    for name, sampled, clock in threads:
        check(float(sampled) >= float(clock) - 0.0001, f"{name}: sampled {sampled} s, the clock says {clock} s", output)
    sampled_s = sum(float(sampled) for _, sampled, _ in threads)
    check(sampled_s <= used_s + 0.0001 * len(threads), f"sampled {sampled_s} s, the process has used {used_s} s", output)
    unseen = check_stacks(directory / path, output) | not_in(profile, ["RunWordCount"])
    check(re.search(r"^  samples +\d", output, re.M), "no count of samples", output)
    # Each thread lives for longer than it runs.
    waits = re.search(r"Wall time.*?of ([\d.]+) s", output)
    cpu = re.search(r"CPU time, flat.*?of ([\d.]+) s in \d+ samples\n +[\d.]+ s +[\d.]+ %.*  ", output)
    check(waits and cpu and float(waits[1]) > float(cpu[1]), "wall time shows no more than CPU time", output)
    return unseen


def cpu_time_of_children():
    """Of those that have ended, in seconds."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def test_arguments(command, directory):
    for arguments in (["--seconds"], ["--seconds", "0"], ["--seconds", "nan"], ["--seconds", "1x"], ["--sconds", "1"]):
        check("usage:" in run([*command, *arguments], directory, status=2).stderr, f"no usage for {arguments}")


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    name, command = sys.argv[1], [*sys.argv[2:-1], os.path.abspath(sys.argv[-1])]
    tests = {"minimal": [test_minimal], "global": [test_global], "reference": [test_reference], "own_parts": [test_own_parts], "formats": [test_formats], "labels": [test_labels], "zones": [test_zones], "trace": [test_trace], "events": [test_events], "other_processes": [test_other_processes],
             "quickstart": [test_quickstart, test_arguments]}[name]
    for test in tests:
        run_until_seen(test, command)
        print(f"{test.__name__}: passed")


def run_until_seen(test, command):
    """A test returns what its run has not shown."""
    unseen_by_all = None

    def run_once():
        with tempfile.TemporaryDirectory() as directory:
            return test(command, pathlib.Path(directory)) or set()

    def is_seen(unseen):
        nonlocal unseen_by_all
        unseen_by_all = unseen if unseen_by_all is None else unseen_by_all & unseen
        if unseen_by_all:
            print(f"{test.__name__}: not seen yet: {unseen_by_all}", flush=True)
        return not unseen_by_all

    work_until(is_seen, run_once, "what " + test.__name__ + " needs")


main()
