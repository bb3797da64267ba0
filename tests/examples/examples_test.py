#!/usr/bin/env python3
"""Runs an example as a newcomer does, and holds what it prints to what it promises.

usage: examples_test.py minimal|global|reference|own_parts|formats|labels|zones|trace|events|quickstart COMMAND...

The command is the example, after what runs it where the system does not.
"""

import gzip
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile


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


def check_stacks(path, output):
    """Stacks lead through libraries without frame pointers to the thread's first function."""
    used, cut, through = {}, {}, {}
    library = {"database": ("sqlite3", "RunDatabase"), "compression": ("libz|deflate|inflate|crc32|adler", "RunCompression")}
    for thread, cpu_ns, stack in stacks_of(path):
        if stack[-1] == "[residual]":
            continue
        used[thread] = used.get(thread, 0) + cpu_ns
        cut[thread] = cut.get(thread, 0) + (cpu_ns if stack[-1].startswith("[") else 0)
        function, caller = library.get(thread, ("", ""))
        is_through = any(re.search(function, name) for name in stack) and any(name.startswith(caller) for name in stack)
        through[thread] = through.get(thread, 0) + (cpu_ns if is_through else 0)
    for thread, cpu_ns in used.items():
        check(cut[thread] <= 0.02 * cpu_ns, f"{thread}: {cut[thread]} of {cpu_ns} ns are in stacks that do not end at its start", output)
    for thread in library:
        check(through[thread] >= 0.5 * used[thread], f"{thread}: only {through[thread]} of {used[thread]} ns are in its library", output)


def check_one_profile(program, command, directory, names):
    """Runs an example that leaves one profile, and looks for `names` there."""
    run(command, directory)
    profiles = list((directory / "strobe-profiles").iterdir())
    check(len(profiles) == 1, f"expected one profile, found {profiles}")
    check(re.fullmatch(program + r"\.\d+\.0\.pb\.gz", profiles[0].name), f"unexpected name {profiles[0].name}")
    bytes_of_profile = strings_of(profiles[0])
    for name in (*names, "cpu", "nanoseconds"):
        check(name.encode() in bytes_of_profile, f"{name} is not in the profile")


def test_minimal(command, directory):
    check_one_profile("minimal", command, directory, ["main"])


def test_global(command, directory):
    check_one_profile("global", command, directory, ["worker", "RunWorker"])


def test_reference(command, directory):
    check_one_profile("reference", command, directory, ["renderer 0", "renderer 1", "RunThread"])


def test_own_parts(command, directory):
    output = run(command, directory).stdout
    check(re.search(r"^exported: \d+ bytes, [1-9]\d* stacks of [1-9]\d* threads$", output, re.M), "the exporter printed nothing", output)
    check(re.search(r"^  queued +[1-9]\d* job-nanoseconds$", output, re.M), "the provider measured nothing", output)
    check(not list(directory.iterdir()), "a file was written in spite of the own exporter")


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


def check_one_profile_has(directory, names):
    (profile,) = (directory / "strobe-profiles").iterdir()
    bytes_of_profile = strings_of(profile)
    for name in names:
        check(name.encode() in bytes_of_profile, f"{name} is not in the profile")


def test_labels(command, directory):
    output = run(command, directory).stdout
    check(output == "labels left on main: 0\n", "labels are left behind", output)
    check_one_profile_has(directory, ["endpoint", "/pay", "/list", "shard", "step", "charge", "helper", "second"])


def test_zones(command, directory):
    output = run(command, directory).stdout
    check(output == "labels of main: 1\n", "other labels than the zone's", output)
    check_one_profile_has(directory, ["zone_path", "request;parse", "slow", "true"])
    (path,) = (directory / "strobe-profiles").iterdir()
    roots = {tuple(reversed(stack)) for _, _, stack in stacks_of(path)}
    for zones in (("request", "parse"), ("request",), ("reply",)):
        inside = [stack for stack in roots if stack[:len(zones)] == zones and stack[len(zones):][:1] != ("parse",)]
        check(any("main" in stack for stack in inside), f"no stack begins with {zones} and leads to main", str(roots))


def test_trace(command, directory):
    output = run(command, directory).stdout
    check(output == "trace left on main: 0\n", "a trace is left behind", output)
    check_one_profile_has(directory, ["span_id", "00000000000000a1", "00000000000000b2", "trace_id", "local_root_span_id"])


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
    # Nearly four thousand samples: a standard error of 1.6 %. The first samples take their stacks along, and where there is no room for that, the
    # next one's stack has the bytes.
    check(abs(sums[None] / 1e9 - 1) < 0.1, f"the profile has {sums[None]} bytes", output)
    answers, pages = (sum(value for name, value in sums.items() if name and function in name) for function in ("SendAnswer", "SendPage"))
    check(0 < answers < pages <= sums[None], f"{answers} bytes of answers, {pages} of pages", output)


def test_quickstart(command, directory):
    output = run([*command, "--seconds", "3", "--directory", "out"], directory).stdout
    path = output.splitlines()[-1]
    check(path == "out/profile.pb.gz", f"the last line is {path}", output)
    check([file.name for file in (directory / "out").iterdir()] == ["profile.pb.gz"], "more than the profile is left in its directory")
    bytes_of_profile = strings_of(directory / path)
    for name in ("main", "database", "compression", "words", "bookkeeping", "wall", "RunWordCount"):
        check(name.encode() in bytes_of_profile, f"{name} is not in the profile", output)
    threads = re.findall(r"^  (\w+) +([\d.]+) s +([\d.]+) s +[-+]", output, re.M)
    check({name for name, _, _ in threads} == {"main", "database", "compression", "words", "bookkeeping"}, "threads are missing", output)
    for name, sampled, clock in threads:
        # What a thread does between its registration and its own look at the clock is in the one
        # and not in the other: up to 5 ms.
        difference = abs(float(sampled) - float(clock))
        check(difference <= 0.001 * float(clock) + 0.005, f"{name}: sampled {sampled} s, the clock says {clock} s", output)
    check_stacks(directory / path, output)
    check(re.search(r"^  samples +[1-9]", output, re.M), "no samples", output)
    waits = re.search(r"Wall time.*?of ([\d.]+) s", output)
    cpu = re.search(r"CPU time, flat.*?of ([\d.]+) s\n +[\d.]+ s +[\d.]+ % \u00B1 [\d.]+  ", output)
    check(waits and cpu and float(waits[1]) > float(cpu[1]), "wall time shows no more than CPU time", output)


def test_arguments(command, directory):
    for arguments in (["--seconds"], ["--seconds", "0"], ["--seconds", "nan"], ["--seconds", "1x"], ["--sconds", "1"]):
        check("usage:" in run([*command, *arguments], directory, status=2).stderr, f"no usage for {arguments}")


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    name, command = sys.argv[1], [*sys.argv[2:-1], os.path.abspath(sys.argv[-1])]
    tests = {"minimal": [test_minimal], "global": [test_global], "reference": [test_reference], "own_parts": [test_own_parts], "formats": [test_formats], "labels": [test_labels], "zones": [test_zones], "trace": [test_trace], "events": [test_events],
             "quickstart": [test_quickstart, test_arguments]}[name]
    for test in tests:
        with tempfile.TemporaryDirectory() as directory:
            test(command, pathlib.Path(directory))
            print(f"{test.__name__}: passed")


main()
