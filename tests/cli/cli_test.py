#!/usr/bin/env python3
"""Runs the command strobe on the sample profiles and on broken files, and compares what it says with what they hold.

  cli_test.py WRITE_SAMPLES STROBE...

STROBE is the command, after what runs it where the system does not. Google's pprof compares its own tables, where it is there.
"""
import gzip
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import urllib.request

for folder in ("readers", "support"):
    sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / folder))
from checks import check, equal, failures  # noqa: E402
import google_pprof  # noqa: E402
import perf_data  # noqa: E402
import pprof_file  # noqa: E402
from until_seen import wait_until, work_until  # noqa: E402

TIMEOUT_S = 60
skips = []


class Strobe:
    def __init__(self, command, directory):
        self.command, self.directory = command, directory

    def run(self, *arguments, status=0, stdin=None):
        result = subprocess.run([*self.command, *map(str, arguments)], input=stdin, capture_output=True, cwd=self.directory, timeout=TIMEOUT_S)
        text = " ".join(map(str, arguments))
        errors = result.stderr.decode(errors="replace")
        check(result.returncode == status, "strobe %s: exit status %d, not %d: %s" % (text, result.returncode, status, errors[:500]))
        if status == 1:
            check(re.fullmatch(r"strobe: [^\n]+\r?\n", errors) is not None, "strobe %s: one line of error: %r" % (text, errors))
        return errors if status else result.stdout.decode()

    def json(self, *arguments, stdin=None):
        return json.loads(self.run(*arguments, "--json", stdin=stdin))

    def functions(self, *arguments):
        return {row["function"]: row for row in self.json("top", "-n", "0", *arguments)["functions"]}


def varint(value):
    value &= 2**64 - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out + bytes([value]))


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def message(**parts):
    return b"".join(field(int(name[1:]), value) for name, value in parts.items())


def small_pprof(strings=(b"", b"cpu", b"nanoseconds", b"Leaf", b"/src/leaf.cc"), location=b""):
    """One sample of 7 ns, in an order in which readers meet ids before what they mean."""
    out = field(1, message(f1=1, f2=2)) + field(2, field(1, b"\5") + field(2, b"\7"))
    out += field(4, location or message(f1=5, f4=message(f1=9, f2=12))) + field(5, message(f1=9, f2=3, f4=4))
    return out + b"".join(field(6, text) for text in strings)


def first_mapping(strobe):
    """The file's first mapping is the program, also if its locations name another one before."""
    strings = (b"", b"cpu", b"nanoseconds", b"/lib/libc.so.6", b"/bin/shop")
    out = field(1, message(f1=1, f2=2)) + field(2, field(1, b"\5\6") + field(2, b"\7"))
    out += field(4, message(f1=5, f2=2, f3=0x7010)) + field(4, message(f1=6, f2=1, f3=0x1010))
    out += field(3, message(f1=1, f2=0x1000, f3=0x2000, f5=4)) + field(3, message(f1=2, f2=0x7000, f3=0x8000, f5=3))
    (strobe.directory / "mappings.pb").write_bytes(out + b"".join(field(6, text) for text in strings))
    top = strobe.run("top", "mappings.pb")
    check(top.startswith("cpu: 7 ns ") and top.splitlines()[0].endswith("of shop"), "the program: " + top)
    modules = strobe.json("info", "mappings.pb")["modules"]
    equal([module["path"] for module in modules], ["/bin/shop", "/lib/libc.so.6"], "the modules")
    check("libc.so.6" in top.splitlines()[2], "the leaf stays in its library: " + top)
    difference = strobe.run("diff", "mappings.pb", "mappings.pb")
    check("do not count their samples" in difference and "\u00B1" not in difference, "changes without an error: " + difference)


def tables(strobe):
    top = strobe.json("top", "-n", "0", "detailed.pb.gz")
    equal((top["type"], top["sum"]), ("cpu", 1053000000), "the sum of top")
    functions = strobe.functions("detailed.pb.gz")
    equal([functions["sample::Step"][key] for key in ("self", "total")], [810000000, 1010000000], "sample::Step")
    equal([functions["sample::Loop"][key] for key in ("self", "total")], [0, 1010000000], "an inlined function")
    equal(functions["sample::Step"]["file"], "/src/sample/step.h", "the file of sample::Step")
    check(abs(functions["sample::Step"]["self_error"] - 0.041) < 0.001, "the error of a share of 105 samples")
    check("sample::Loop<int>(int)" in strobe.functions("--full-names", "detailed.pb.gz"), "full names")
    equal(strobe.functions("--type", "wall", "detailed.pb.gz")["sample::Step"]["self"], 300000000, "another type")
    first = strobe.run("top", "-n", "1", "detailed.pb.gz").splitlines()
    equal(first[0], "cpu: 1.053 s in 105 samples of sample_program", "the heading")
    check(re.search(r"810\.000 ms +76\.9 % \u00B1 4\.1 +1\.010 s +95\.9 % \u00B1 2\.0  sample::Step$", first[2]) is not None, "a row: " + first[2])

    calls = strobe.json("tree", "--min", "0", "detailed.pb.gz")["calls"]
    main = next(call for call in calls if call["function"] == "main")
    equal((main["total"], main["calls"][0]["function"], main["calls"][0]["total"]), (980000000, "sample::Busy", 950000000), "the tree")
    tree = strobe.run("tree", "detailed.pb.gz").splitlines()
    check(tree[2].endswith("0 ns  main") and tree[3].endswith("0 ns   sample::Busy"), "the printed tree: %r" % tree[2:4])

    peek = strobe.json("peek", "^sample::Busy$", "detailed.pb.gz")["functions"][0]
    equal(peek["callers"][0], {"function": "main", "total": 950000000}, "the first caller")
    equal(peek["callees"], [{"function": "sample::Loop", "total": 1010000000}], "the callees")
    check("no function matches" in strobe.run("peek", "Nothing", "detailed.pb.gz", status=1), "peek of nothing")

    info = strobe.json("info", "detailed.pb.gz")
    equal([kind["sum"] for kind in info["types"]], [105, 1053000000, 300000000], "sums of info")
    check(any(comment.startswith("strobe: program sample_program") for comment in info["comments"]), "the account in info")
    check("label       request: check;out" in strobe.run("info", "detailed.pb.gz"), "labels in info")


def filters(strobe):
    def total(*arguments):
        return strobe.json("top", *arguments)["sum"]

    equal(total("--thread", "main", "detailed.pb.gz"), 963000000, "--thread by name")
    equal(total("--thread", "4243", "detailed.pb.gz"), 70000000, "--thread by id")
    equal(total("--label", "request=check;out", "detailed.pb.gz"), 200000000, "--label")
    equal(total("--label", "request=other", "detailed.pb.gz"), 0, "--label of no sample")
    equal(total("--focus", "sample_wr", "detailed.pb.gz"), 200000000, "--focus")
    equal(total("--ignore", "Busy", "detailed.pb.gz"), 43000000, "--ignore")
    equal(total("datadog.pb.gz"), 1053000000, "moments and the rest")
    equal(total("--from", "0.015", "--to", "0.035", "datadog.pb.gz"), 20000000, "two of the moments")
    check("need the times" in strobe.run("top", "--from", "1", "small.pb.gz", status=1), "times of a profile without")
    strobe.run("top", "--label", "request", "small.pb.gz", status=2)
    check("regular expression" in strobe.run("top", "--focus", "(", "small.pb.gz", status=1), "a bad pattern")
    check("it has: samples cpu wall" in strobe.run("top", "--type", "heap", "small.pb.gz", status=1), "an unknown type")


def formats(strobe):
    """Each format that is written, and what reads it back."""
    expected = strobe.functions("detailed.pb.gz")
    for name in ("out.pb.gz", "out.folded", "out.speedscope.json", "out.firefox.json.gz", "out.otlp", "out.html", "out.svg"):
        strobe.run("convert", "detailed.pb.gz", "-o", name)
        check((strobe.directory / name).stat().st_size > 0, name + " is written")
    equal(strobe.functions("out.pb.gz"), expected, "pprof, read and written")
    equal(strobe.json("info", "out.pb.gz")["comments"], strobe.json("info", "detailed.pb.gz")["comments"], "comments stay")
    strobe.run("convert", "out.pb.gz", "-o", "again.pb.gz")
    equal((strobe.directory / "again.pb.gz").read_bytes(), (strobe.directory / "out.pb.gz").read_bytes(), "pprof, written again")
    strobe.run("convert", "datadog.pb.gz", "-o", "moments.pb.gz")
    equal(strobe.json("info", "moments.pb.gz")["moments"], 6, "moments stay")
    strobe.run("convert", "--type", "samples", "detailed.pb.gz", "-o", "samples.folded")
    equal(sorted((strobe.directory / "samples.folded").read_text().splitlines()),
          sorted((strobe.directory / "detailed.folded").read_text().replace("batch size", "batch_size").splitlines()), "folded stacks of a profile that was read")
    equal(sum(int(line.rsplit(" ", 1)[1]) for line in (strobe.directory / "out.folded").read_text().splitlines()), 1053000000, "folded stacks have the type of top")
    equal(json.loads((strobe.directory / "out.speedscope.json").read_text())["activeProfileIndex"],
          json.loads((strobe.directory / "detailed.speedscope.json").read_text())["activeProfileIndex"], "speedscope")
    raw = gzip.decompress((strobe.directory / "detailed.pb.gz").read_bytes())
    equal(strobe.json("top", "-", stdin=raw)["sum"], 1053000000, "not gzipped, from standard input")
    halves = gzip.compress(raw[:100]) + gzip.compress(raw[100:])
    equal(strobe.json("top", "-", stdin=halves)["sum"], 1053000000, "gzip of two members")
    equal(strobe.json("top", "-", stdin=small_pprof())["functions"][0]["file"], "/src/leaf.cc", "ids before their meaning")
    check("which format" in strobe.run("convert", "small.pb.gz", "-o", "out.xyz", status=1), "an unknown end of a name")
    strobe.run("convert", "small.pb.gz", "-o", "missing/out.folded", status=1)
    page = strobe.run("html", "detailed.pb.gz", "--base", "small.pb.gz")
    check(page.startswith("<!doctype html>") or page.startswith("<!DOCTYPE html>"), "a comparison's page: " + page[:40])


def kept(strobe):
    """What a file of another tool has is in the file that is made of it."""
    strings = [b"", b"cpu", b"nanoseconds", b"f", b"bytes", b"malloc|free", b"g", b"v1", b"v2", b"long" * 500]
    keys = {i: len(strings) + i for i in range(20)}
    strings += [b"k%02d" % i for i in range(20)]
    labels = b"".join(field(3, message(f1=keys[i], f2=6)) for i in range(20))
    labels += field(3, message(f1=keys[0], f2=7)) + field(3, message(f1=keys[0], f2=8)) + field(3, message(f1=keys[1], f3=4096, f4=4)) + field(3, message(f1=keys[2], f2=9))
    made = field(1, message(f1=1, f2=2)) + field(2, field(1, b"\5") + field(2, b"\7") + labels) + field(4, message(f1=5, f4=message(f1=9)))
    made += field(5, message(f1=9, f2=3)) + field(7, 5) + field(8, 6) + b"".join(field(6, text) for text in strings)
    (strobe.directory / "more.pb").write_bytes(made)

    def content(name):
        groups = pprof_file.grouped(gzip.decompress((strobe.directory / name).read_bytes()) if name.endswith(".gz") else (strobe.directory / name).read_bytes())
        texts = groups[6]
        parts = [pprof_file.grouped(label) for label in pprof_file.grouped(groups[2][0]).get(3, [])]
        return (sorted((texts[part[1][0]], texts[part.get(2, [0])[0]], part.get(3, [0])[0], texts[part.get(4, [0])[0]]) for part in parts),
                texts[groups[7][0]], texts[groups[8][0]])

    strobe.run("convert", "more.pb", "-o", "kept.pb.gz")
    equal(content("kept.pb.gz"), content("more.pb"), "labels, units, and patterns of frames")
    equal(len(content("kept.pb.gz")[0]), 24, "the number of labels")
    strobe.run("merge", "more.pb", "kept.pb.gz", "-o", "both.pb.gz")
    equal(content("both.pb.gz"), content("more.pb"), "the same of a sum")
    strobe.run("convert", "--type", "wall", "detailed.pb.gz", "-o", "wall.pb.gz")
    equal(strobe.json("top", "wall.pb.gz")["type"], "wall", "--type is the default of what is written")
    strobe.run("convert", "--type", "wall", "detailed.pb.gz", "-o", "wall.folded")
    equal(sum(int(line.rsplit(" ", 1)[1]) for line in (strobe.directory / "wall.folded").read_text().splitlines()), 300000000, "folded stacks of --type")


def texts(strobe):
    folded = b"# comment\nmain;Parse;Read 3\nmain;Parse 4\r\n\nmain 2\n"
    rows = {row["function"]: (row["self"], row["total"]) for row in strobe.json("top", "-", stdin=folded)["functions"]}
    equal(rows, {"Parse": (4, 7), "Read": (3, 3), "main": (2, 9)}, "folded stacks")
    perf = b"""# captured on: today
my prog 4242/4243 [003] 12.500000:    250000 cpu-clock:u:
\t    55d0c0ffee10 Leaf+0x10 (/opt/my prog)
\t    7f0000001000 [unknown] (/usr/lib/libz.so.1)
\t    55d0c0ffee99 main+0x99 (/opt/my prog)

other 7 13.000000: 1000 cpu-clock:
\tffffffff81000000 schedule ([kernel.kallsyms])

other 7 13.250000: 9 page-faults:
\t    55d0c0ffee10 Leaf (inlined)
"""
    top = strobe.json("top", "-n", "0", "-", stdin=perf)
    equal((top["type"], top["sum"]), ("cpu", 251000), "perf's periods")
    rows = {row["function"]: (row["self"], row["total"]) for row in top["functions"]}
    equal(rows, {"Leaf": (250000, 250000), "main": (0, 250000), "[libz.so.1]": (0, 250000), "schedule": (1000, 1000)}, "perf's functions")
    equal(strobe.json("top", "--from", "0.4", "--type", "samples", "-", stdin=perf)["sum"], 1, "perf's times: samples are those of the first event")
    equal(strobe.json("top", "--thread", "my prog", "-", stdin=perf)["sum"], 250000, "perf's threads")
    check("line 1 is neither" in strobe.run("top", "-", stdin=b"just a text\n", status=1), "another text")
    check("JSON" in strobe.run("top", "detailed.speedscope.json", status=1), "JSON")
    equal(strobe.json("top", "-", stdin=b"<module> (shop.py:3);pay (shop.py:9) 12\n")["sum"], 12, "py-spy's stacks")
    equal(strobe.json("top", "-", stdin=b"{main};pay 12\n")["sum"], 12, "PHP's stacks")
    timed = strobe.json("top", "--unit", "us", "-", stdin=b"main;f 3\n")
    equal((timed["type"], timed["unit"], timed["sum"]), ("time", "nanoseconds", 3000), "folded stacks with a unit")
    strobe.run("top", "--unit", "hours", "-", stdin=b"main;f 3\n", status=2)
    events = strobe.json("info", "-", stdin=b"""app 100 [000] 7.1: sched:sched_switch: prev_comm=app
\t66d0 main+0x20 (/opt/app (deleted))

app 100 [000] 7.2: sched:sched_waking: comm=b pid=7
\t66d0 main+0x20 (/opt/app)
""")
    equal([(kind["type"], kind["sum"]) for kind in events["types"]], [("samples", 1), ("sched:sched_switch", 1), ("sched:sched_waking", 1)], "tracepoints")
    equal([module["path"] for module in events["modules"]], ["/opt/app"], "a deleted file is that file")
    heap = strobe.json("top", "-", stdin=b"heap profile: 1: 80 [9: 900] @ heapprofile\n 1: 80 [9: 900] @ 0x12\n\nMAPPED_LIBRARIES:\n")
    equal((heap["type"], heap["sum"]), ("inuse_space", 80), "a heap profile of gperftools")
    check("goroutines" in strobe.run("top", "-", stdin=b"goroutine profile: total 3\n", status=1), "a text of Go's")


def differences(strobe):
    base = b"main;Parse 400\nmain;Write 500\nmain;Rare 100\n"
    now = b"main;Parse 600\nmain;Write 305\nmain;Rare 95\n"
    (strobe.directory / "base.folded").write_bytes(base)
    (strobe.directory / "now.folded").write_bytes(now)
    diff = strobe.json("diff", "base.folded", "now.folded")
    rows = {row["function"]: row for row in diff["functions"]}
    check(rows["Parse"]["change"] == 200 and rows["Parse"]["significant"], "Parse got slower")
    # By hand: counts have a standard error of their square root, about.
    check(abs(rows["Parse"]["error"] - 1000**0.5) < 0.1, "the error of a change: %r" % rows["Parse"])
    equal((rows["Parse"]["base_share"], rows["Parse"]["share"]), (0.4, 0.6), "the shares of Parse")
    check(not rows["Rare"]["significant"], "half a percent less of 1000 samples is chance")
    text = strobe.run("diff", "base.folded", "now.folded")
    check(re.search(r"400 +600 +\+200 \u00B1 31\.\d+ +40\.0 % +60\.0 %  Parse", text) is not None, "a changed row: " + text)
    check(re.search(r"100 +95 +not significant +10\.0 % +9\.5 %  Rare", text) is not None, "a row that is chance: " + text)
    check("Significant: 2 of 3 functions, not the total." in text, "the count of changes: " + text)
    check("Beyond the limit: Parse" in subprocess.run([*strobe.command, "diff", "--fail-if", "+5%", "base.folded", "now.folded"], cwd=strobe.directory,
                                                      capture_output=True, text=True, timeout=TIMEOUT_S).stdout, "what has failed")
    strobe.run("diff", "--fail-if", "+5%", "base.folded", "now.folded", status=3)
    strobe.run("diff", "--fail-if", "+30%", "base.folded", "now.folded")
    strobe.run("diff", "--fail-if", "more", "base.folded", "now.folded", status=2)
    equal(strobe.json("diff", "--per", "10", "base.folded", "now.folded")["functions"][0]["change"], 20, "amounts per unit")
    strobe.run("merge", "base.folded", "now.folded", "-o", "sum.folded")
    equal(sorted((strobe.directory / "sum.folded").read_text().split("\n")), ["", "main;Parse 1000", "main;Rare 195", "main;Write 805"], "the sum")
    equal(strobe.json("top", "detailed.pb.gz", "small.pb.gz")["sum"], 2 * 1053000000, "two files to one table")
    (strobe.directory / "narrow.pb").write_bytes(small_pprof())
    merged = subprocess.run([*strobe.command, "merge", "--type", "cpu", "detailed.pb.gz", "narrow.pb", "-o", "common.pb.gz"], cwd=strobe.directory,
                            capture_output=True, text=True, timeout=TIMEOUT_S)
    equal((merged.returncode, merged.stderr.strip()), (0, "strobe: left out, because not all files have it: samples, wall"), "what a sum leaves out")
    equal([(kind["type"], kind["sum"]) for kind in strobe.json("info", "common.pb.gz")["types"]], [("cpu", 1053000007)], "the sum of what both have")
    check("no value type in common" in strobe.run("merge", "base.folded", "narrow.pb", status=1), "a sum of different types")
    check("different value types" in strobe.run("diff", "base.folded", "narrow.pb", status=1), "a comparison of different types")


def sources(strobe):
    source = strobe.directory / "sources" / "sample"
    source.mkdir(parents=True)
    (source / "step.h").write_text("".join("line %d of step.h\n" % i for i in range(1, 12)))
    listed = strobe.json("list", "^sample::Step$", "detailed.pb.gz")[0]
    equal(listed["lines"], [{"line": 6, "self": 810000000, "total": 1010000000}], "lines of sample::Step")
    text = strobe.run("list", "^sample::Step$", "--source", "sources", "detailed.pb.gz")
    check(re.search(r"810\.000 ms +1\.010 s +6  line 6 of step\.h", text) is not None and "line 3 of step.h" in text
          and "line 2 of step.h" not in text, "the source: " + text)


def broken(strobe):
    good = (strobe.directory / "detailed.pb.gz").read_bytes()
    raw = gzip.decompress(good)
    (strobe.directory / "empty").write_bytes(b"")
    check("is a directory" in strobe.run("top", ".", status=1), "a directory")
    check("no such file" in strobe.run("top", "missing", status=1), "a missing file")
    check("the file is empty" in strobe.run("top", "empty", status=1), "an empty file")
    check("cut off" in strobe.run("top", "-", stdin=good[:len(good) // 2], status=1), "truncated gzip")
    strobe.run("info", "-", stdin=good[:20] + bytes([good[20] ^ 0xFF]) + good[21:], status=1)
    check("zstd" in strobe.run("top", "-", stdin=b"\x28\xB5\x2F\xFD" + b"\0" * 20, status=1), "zstd")
    for length in range(1, len(raw), 97):
        result = subprocess.run([*strobe.command, "top", "-"], input=raw[:length], capture_output=True, timeout=TIMEOUT_S) if length < 1000 else None
        check(result is None or result.returncode in (0, 1), "the first %d bytes" % length)
    huge = varint(2**62)
    for name, bytes_ in {"a huge string": b"\x32" + huge + b"x", "a huge sample": b"\x12" + huge, "a group": b"\x0b", "a varint without an end": b"\xff" * 11,
                         "a sample with a huge list": field(1, message(f1=1, f2=2)) + field(2, b"\x0a" + huge),
                         "a missing location": field(1, message(f1=1)) + field(2, field(1, b"\5") + field(2, b"\7")) + field(6, b"") + field(6, b"x"),
                         "a missing string": small_pprof(strings=(b"", b"cpu")), "location 0": small_pprof(location=message(f4=message(f1=9))),
                         "too many values": small_pprof() + field(2, field(2, b"\1\2\3")),
                         "a missing function": small_pprof(location=message(f1=5, f4=message(f1=8)))}.items():
        check("pprof" in strobe.run("top", "-", stdin=b"\x48\x01" + bytes_, status=1), name)
    # 2 GB of zeros, in 32 members of 64 MiB, each of them 64 KiB long.
    zeros = gzip.compress(b"\0" * (64 << 20), 1) * 32
    (strobe.directory / "zeros.gz").write_bytes(zeros)
    strobe.run("top", "zeros.gz", status=1)
    (strobe.directory / "lines.gz").write_bytes(gzip.compress(b" " * (64 << 20), 1) * 32)
    check("longer than" in strobe.run("top", "lines.gz", status=1), "a line without an end")
    if os.path.exists("/dev/full"):
        check("cannot write" in strobe.run("convert", "small.pb.gz", "--format", "folded", "-o", "/dev/full", status=1), "a full disk")


def arguments(strobe):
    check("where the time goes" in strobe.run("--help"), "help shows examples")
    for command in ("top", "tree", "peek", "list", "html", "convert", "diff", "ci", "merge", "symbolize", "info", "options", "completion", "script"):
        check("--help" in strobe.run(command, "--help"), command + " has help")
    environment = {key: value for key, value in os.environ.items() if not key.startswith("STROBE_")}
    environment |= {"STROBE_EXPORT_PERIOD_S": "5", "STROBE_MAX_FRAMES": "many", "STROBE_EXPORT_PERIOD": "6"}
    result = subprocess.run([*strobe.command, "options"], capture_output=True, env=environment, text=True, timeout=TIMEOUT_S)
    values = {line.split()[0]: line.split()[1:] for line in result.stdout.splitlines()}
    equal(values["exporter.period_s"], ["5", "STROBE_EXPORT_PERIOD_S"], "options: what the environment sets")
    equal(values["sampling.max_frames"], ["512", "default"], "options: what it does not")
    check("STROBE_MAX_FRAMES=\"many\" is ignored" in result.stderr and "STROBE_EXPORT_PERIOD is not an option" in result.stderr,
          "options: mistakes are said: " + result.stderr)
    check("STROBE_TRIGGER, auto, timers" in strobe.run("options", "--long"), "options: all that a program accepts")
    strobe.run(status=2)
    strobe.run("top", status=2)
    strobe.run("nothing", status=2)
    for shell in ("bash", "zsh", "fish"):
        script = strobe.run("completion", shell)
        check("symbolize" in script and "focus" in script, "completion for " + shell)
        if shutil.which(shell):
            result = subprocess.run([shell, "-n"], input=script.encode(), capture_output=True, timeout=TIMEOUT_S)
            check(result.returncode == 0, "%s reads its completion: %s" % (shell, result.stderr))
    if shutil.which("bash"):
        script = strobe.run("completion", "bash") + "COMP_WORDS=(strobe top --fo) COMP_CWORD=2; _strobe; echo ${COMPREPLY[@]}\n"
        result = subprocess.run(["bash"], input=script.encode(), capture_output=True, timeout=TIMEOUT_S)
        equal(result.stdout, b"--focus\n", "what bash completes")


def symbols(strobe):
    """A profile of addresses only, of a program that is here."""
    if os.name != "posix" or strobe.command[1:] or not all(map(shutil.which, ("c++", "nm", "readelf"))):
        skips.append("symbolize: no ELF files, or no c++, nm and readelf here")
        return
    source = strobe.directory / "program.cc"
    source.write_text("__attribute__((noinline)) int Work(int a) {\n  volatile int b = a;\n  return b;\n}\nint main() {\n  return Work(1);\n}\n")
    program = strobe.directory / "program"
    subprocess.run(["c++", "-g", "-O0", "-Wl,--build-id", "-o", str(program), str(source)], check=True)
    output = {tool: subprocess.run([tool, *flags, str(program)], capture_output=True, text=True, check=True).stdout
              for tool, flags in (("nm", ["-C"]), ("readelf", ["-lnW"]))}
    address = int(re.search(r"^(\w+) T Work\(int\)$", output["nm"], re.M)[1], 16) + 8
    build_id = re.search(r"Build ID: (\w+)", output["readelf"])[1].encode()
    offset, virtual, _, size, _ = re.search(r"LOAD +(\w+) (\w+) (\w+) (\w+) (\w+) R E", output["readelf"]).groups()
    offset, virtual, size = (int(text, 16) for text in (offset, virtual, size))
    profile = addresses_only(virtual, size, offset, address, b"/elsewhere/program", build_id)
    (strobe.directory / "none.pb").write_bytes(profile)
    equal(strobe.json("top", "none.pb")["functions"][0]["function"], "program+0x%x" % (address - virtual + offset), "an address without a name")
    strobe.run("symbolize", "none.pb", "--debug-directory", ".", "-o", "named.pb.gz")
    check_named(strobe, "named.pb.gz", source, "a named address, by its build id")
    check("volatile int b = a;" in strobe.run("list", "Work", "named.pb.gz"), "its source line")
    fetched_symbols(strobe, program, source)


def addresses_only(virtual, size, offset, address, path, build_id):
    """A pprof file of one sample at an address of a module's file."""
    start = 0x7F0000000000
    profile = field(1, message(f1=1, f2=2)) + field(2, field(1, b"\1") + field(2, b"\7"))
    profile += field(3, message(f1=1, f2=start, f3=start + size, f4=offset, f5=3, f6=4))
    profile += field(4, message(f1=1, f2=1, f3=start + address - virtual))
    return profile + b"".join(field(6, text) for text in (b"", b"cpu", b"nanoseconds", path, build_id))


def check_named(strobe, file, source, what):
    named = strobe.json("list", "Work", file)[0]
    equal((named["function"], named["file"], named["lines"][0]["line"]), ("Work", str(source), 2), what)


def fetched_symbols(strobe, program, source):
    """The same from a server of debug information, which alone has the program."""
    if not shutil.which("debuginfod") or "debuginfod" not in subprocess.run(["ldd", strobe.command[0]], capture_output=True, text=True).stdout:
        skips.append("symbolize from a server: no debuginfod here, or built without its client")
        return
    store = strobe.directory / "store"
    store.mkdir()
    program.rename(store / "program")
    environment = {**os.environ, "DEBUGINFOD_CACHE_PATH": str(strobe.directory / "cache"), "DEBUGINFOD_URLS": ""}
    server, port = work_until(lambda begun: begun, lambda: begin_debuginfod(store, environment), "debuginfod serves the program")
    try:
        environment["DEBUGINFOD_URLS"] = "http://127.0.0.1:%d" % port
        os.environ.update(environment)
        strobe.run("symbolize", "none.pb", "-o", "fetched.pb.gz")
        check_named(strobe, "fetched.pb.gz", source, "a named address, from a server")
        # A server that is not there costs names only.
        os.environ.update({"DEBUGINFOD_URLS": "http://127.0.0.1:9", "DEBUGINFOD_CACHE_PATH": str(strobe.directory / "empty")})
        strobe.run("symbolize", "none.pb", "-o", "none_fetched.pb.gz")
    finally:
        os.environ.pop("DEBUGINFOD_URLS", None)
        server.kill()
        server.wait()


def begin_debuginfod(store, environment):
    """The server and its port. It chooses none by itself, so another process may have the port by then: None."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen(["debuginfod", "-d", ":memory:", "-p", str(port), "-F", str(store)], env=environment, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
    wait_until(lambda: server.poll() is not None or is_scanned(port), "debuginfod has found the program")
    return (server, port) if server.poll() is None else None


def is_scanned(port):
    """Whether the server has found a file."""
    try:
        with urllib.request.urlopen("http://127.0.0.1:%d/metrics" % port, timeout=5) as answer:
            return re.search(rb'^found_executable_total(?:\{[^}]*\})? [1-9]', answer.read(), re.M) is not None
    except OSError:
        return False


def windows_symbols(strobe):
    """Those of a program for Windows, which a profile from there names by its path."""
    compiler = next(filter(shutil.which, ("x86_64-w64-mingw32-g++-posix", "x86_64-w64-mingw32-g++")), None)
    if not compiler or strobe.command[1:] or not shutil.which("x86_64-w64-mingw32-objdump"):
        skips.append("symbolize for Windows: no g++ of MinGW here")
        return
    source = strobe.directory / "program.cc"
    program = strobe.directory / "windows_program.exe"
    subprocess.run([compiler, "-g", "-O0", "-o", str(program), str(source)], check=True)
    output = subprocess.run(["x86_64-w64-mingw32-objdump", "-p", "-h", "-t", str(program)], capture_output=True, text=True, check=True).stdout
    size, virtual, offset = re.search(r" \.text +(\w+) +(\w+) +\w+ +(\w+)", output).groups()
    address = int(virtual, 16) + int(re.search(r"\) 0x(\w+) _Z4Worki$", output, re.M)[1], 16) + 12
    header = program.read_bytes()[:4096]
    at = int.from_bytes(header[0x3C:0x40], "little")
    time_stamp, image_bytes = (int.from_bytes(header[at + place:at + place + 4], "little") for place in (8, 80))
    profile = addresses_only(int(virtual, 16), int(size, 16), int(offset, 16), address, b"C:\\elsewhere\\windows_program.exe",
                             b"%08x%x" % (time_stamp, image_bytes))
    (strobe.directory / "windows.pb").write_bytes(profile)
    strobe.run("symbolize", "windows.pb", "--debug-directory", ".", "-o", "windows_named.pb.gz")
    check_named(strobe, "windows_named.pb.gz", source, "an address of a program for Windows")


def perf(strobe):
    """perf.data files made by hand: each record, in both layouts."""
    (strobe.directory / "whole.perf").write_bytes(perf_data.whole())
    check("strobe script" in strobe.run("top", "whole.perf", status=1), "what reads perf.data")
    strobe.run("script", "whole.perf", "-o", "script.pb.gz")
    profile = pprof_file.read(strobe.directory / "script.pb.gz")
    equal(profile.types, ["samples", "cpu", "page-faults_samples", "page-faults"], "value types of perf's events")
    code = 0x7F0000000000
    rows = {(labels.get("thread_name", ""), tuple(values), tuple(location.function[0] or "[kernel]" for location in stack)) for stack, values, labels in profile.rows}

    def at(*offsets, file="missing"):
        return tuple("[%s]" % file for _ in offsets)

    # Of the three samples that a ring of two events has lost, nothing says whose they are.
    expected = {("parent", (1, 1000, 0, 0), at(1, 2, 3)), ("helper", (1, 1000, 0, 0), ("[kernel]",) + at(1)),
                ("parent", (1, 1000, 0, 0), at(1) + ("[no unwind info]",)), ("child", (1, 1000, 0, 0), at(1, file="other")),
                ("child", (0, 0, 1, 7), at(1, file="other")), ("", (2, 2000, 0, 0), ("[lost]",))}
    equal(rows, expected, "rows of a perf.data file")
    addresses = sorted(location.address for stack, _, _ in profile.rows for location in stack if location.address)
    check({code + 0x100, code + 0x200, code + 0x301} <= set(addresses) and code + 0x101 not in addresses, "calls lie before where they return to: %r" % addresses)
    count = "perf.data: 5 samples, 3 lost, stacks deeper than their copy: 0"
    check(count in profile.comments, "the count of samples: %r" % profile.comments)
    for why, count, content in (("32-bit code", 2, perf_data.whole(perf_data.records_of_32_bit())), ("another CPU", 1, perf_data.whole(machine="riscv64"))):
        (strobe.directory / "other.perf").write_bytes(content)
        strobe.run("script", "other.perf", "-o", "other.pb.gz")
        other = pprof_file.read(strobe.directory / "other.pb.gz")
        told = "samples of %s, whose stacks are not unwound: %d" % (why, count)
        check(any(comment.endswith(told) for comment in other.comments), "%s: %r" % (told, other.comments))
        cut = {len(stack) for stack, _, _ in other.rows if stack[-1].function[0] == "[no unwind info]"}
        equal(cut, {2}, "stacks that end at the instruction, of " + why)
    (strobe.directory / "piped.perf").write_bytes(perf_data.piped())
    strobe.run("script", "piped.perf", "-o", "piped.folded", "--type", "cpu")
    strobe.run("script", "whole.perf", "-o", "whole.folded", "--type", "cpu")
    equal((strobe.directory / "piped.folded").read_text(), (strobe.directory / "whole.folded").read_text(), "both layouts")
    strobe.run("script", "-", "-o", "stdin.folded", "--type", "cpu", stdin=perf_data.whole())
    equal((strobe.directory / "stdin.folded").read_text(), (strobe.directory / "whole.folded").read_text(), "standard input")
    broken = {"compressed": perf_data.whole(perf_data.record(81, b"\0" * 8)), "has no size": perf_data.whole(b"\0" * 16),
              "is cut off": perf_data.whole(perf_data.records() + b"\3\0\0\0\0\0\x40\0"), "shorter than it says": perf_data.whole(perf_data.record(9, b"\0" * 16)),
              "another order of bytes": b"2ELIFREP" + bytes(96), "not a perf.data file": b"something else than a file of perf", "too short": b"PERFILE2"}
    for what, content in broken.items():
        (strobe.directory / "broken.perf").write_bytes(content)
        check(what in strobe.run("script", "broken.perf", "-o", "broken.folded", status=1), "a broken perf.data file: " + what)
    check("no such file" in strobe.run("script", "nothing.perf", status=1), "no perf.data file")


def events(strobe):
    """The list of events says of each whether this machine counts it, and the README has the same table."""
    if "events " not in strobe.run("--help"):
        skips.append("strobe events: there are no perf events here")
        return
    rows = [row for line in strobe.run("events").splitlines() if len(row := re.split(r"  +", line)) > 2]
    equal(rows[0], ["event", "here", "also", "counts"], "the heading of strobe events")
    check({row[1] for row in rows[1:]} <= {"yes", "no", "refused"}, "whether events are counted: %r" % rows)
    listed = {row[0]: (row[2] if len(row) == 4 else "", row[-1]) for row in rows[1:]}
    check(listed.get("task-clock") == ("cpu, sCPU", "CPU time of threads"), "strobe events: %r" % listed)
    text = (pathlib.Path(__file__).parents[2] / "src/cli/README.md").read_text()
    table = re.findall(r"^\| `([\w-]+)` \| ([^|]*?) ?\| (.*) \|$", text[text.index("### Events"):text.index("**Tracepoints**")], re.MULTILINE)
    equal({name: (others.replace("`", ""), counts) for name, others, counts in table}, listed, "the table of events in src/cli/README.md")


def google(strobe):
    pprof = google_pprof.Pprof(str(strobe.directory))
    if pprof.command is None:
        skips.append("Google's pprof: " + pprof.missing)
        return
    name = "random_20000x30_shared_26.pb.gz"
    strobe.run("convert", name, "-o", "converted.pb.gz")
    for file in (name, "converted.pb.gz"):
        table = pprof.report(str(strobe.directory / file), "-top", "-unit=ns", "-nodecount=100000", "-nodefraction=0", "-edgefraction=0")
        theirs = {}
        for line in table.splitlines():
            row = re.match(r" *(-?\d+)(?:ns)? +\S+ +\S+ +(-?\d+)(?:ns)? +\S+  (.*)$", line)
            if row:
                theirs[row[3].strip()] = (int(row[1]), int(row[2]))
        ours = {function: (row["self"], row["total"]) for function, row in strobe.functions(file).items()}
        check(len(ours) > 100, "functions of " + file)
        equal({key: ours[key] for key in ours if theirs.get(key) != ours[key]}, {}, "pprof -top and strobe top of " + file)
        equal(len(theirs), len(ours), "the number of functions of " + file)


def main():
    write_samples, *command = sys.argv[1:]
    # It runs in a directory of its own.
    command[-1] = os.path.abspath(command[-1])
    with tempfile.TemporaryDirectory() as scratch:
        directory = pathlib.Path(scratch)
        subprocess.run([*command[:-1], write_samples, str(directory)], check=True, timeout=TIMEOUT_S)
        strobe = Strobe(command, directory)
        for part in (first_mapping, tables, filters, formats, kept, texts, differences, sources, broken, arguments, symbols, windows_symbols, perf, events, google):
            part(strobe)
    print("\n".join("skipped: " + skip for skip in skips))
    print("%d failures" % len(failures))
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
