#!/usr/bin/env python3
"""Are the stacks of programs that others have written right?

  truth_in_the_wild.py SOURCES BUILD [PROGRAM...]

Records each program by `perf record --call-graph dwarf`, and has the same recording unwound by `strobe script` and by `perf script`.
Of each program's samples:
  whole     per cent of stacks that reach the outermost frame; of perf's stacks, those that end in the same frame as Strobe's, or at an
            outermost function by name
  marked    per cent of Strobe's stacks that say that they are not whole
  unlike    stacks of Strobe's that are said to be whole, and have other frames than perf's. Where perf's ends early, or leads out of the
            code of files, its frames up to there are compared. The first ones are shown on standard error: single steps tell which is
            wrong (tests/truth)
A program that is not installed is skipped by name.
"""
import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HZ = "499"
STACK_BYTES = "65528"  # the most
SECONDS = 60  # the most for one program
SHOWN = 3
# The functions that no other function calls.
OUTERMOST = {"_start", "clone", "__clone", "clone3", "__clone3", "__GI___clone", "__GI___clone3", "_dl_start_user"}

# Name: the Debian package, and a command for sh in an empty directory that has `numbers`, `text`, `source.c` and `picture.ppm`.
PROGRAMS = {
    "openssl aes-128-gcm": ("openssl", "openssl speed -seconds 1 -evp aes-128-gcm"),
    "openssl aes-256-cbc": ("openssl", "openssl speed -seconds 1 -evp aes-256-cbc"),
    "openssl chacha20-poly1305": ("openssl", "openssl speed -seconds 1 -evp chacha20-poly1305"),
    "openssl sha256": ("openssl", "openssl speed -seconds 1 -evp sha256"),
    "openssl sha3-256": ("openssl", "openssl speed -seconds 1 -evp sha3-256"),
    "openssl md5": ("openssl", "openssl speed -seconds 1 -evp md5"),
    "openssl rsa2048": ("openssl", "openssl speed -seconds 1 rsa2048"),
    "openssl ecdsap256": ("openssl", "openssl speed -seconds 1 ecdsap256"),
    "openssl ed25519": ("openssl", "openssl speed -seconds 1 ed25519"),
    "gzip": ("gzip", "gzip -9 -c text"),
    "bzip2": ("bzip2", "bzip2 -c text"),
    "xz": ("xz-utils", "xz -T1 -c text"),
    "zstd": ("zstd", "zstd -T2 -12 -c text"),
    "lz4": ("lz4", "lz4 -9 -c text"),
    "brotli": ("brotli", "brotli -c text"),
    "python3": ("python3", "python3 -c 'import json,re; t=open(\"text\").read(); [re.findall(\"[a-z]+ing\", json.loads(json.dumps(t))) for _ in range(8)]'"),
    "perl": ("perl", "perl -ne '$n{$_}++ for split; END { print scalar keys %n }' text text"),
    "ruby": ("ruby", "ruby -e 'h=Hash.new(0); 4.times { File.read(\"text\").split.each { |w| h[w]+=1 } }'"),
    "node": ("nodejs", "node -e 'let n=0; for (let i=0;i<3e7;i++) n+=Math.sqrt(i)|0; console.log(n, JSON.stringify(Array.from({length:2e5},(_, i)=>({i}))).length)'"),
    "lua": ("lua5.4", "lua5.4 -e 't={} for i=1,3e6 do t[#t+1]=i%97 end table.sort(t)'"),
    "awk": ("mawk", "awk '{ for (i = 1; i <= NF; i++) n[$i]++ } END { print length(n) }' text text"),
    "sort": ("coreutils", "sort numbers"),
    "sha512sum": ("coreutils", "sha512sum numbers numbers numbers text text text"),
    "grep": ("grep", "grep -cE '(a|p).*(c|k)s{1,3}[a-z]+' text numbers"),
    "git": ("git", "git init -q . && git add text numbers && git -c user.name=a -c user.email=a@b commit -qm one && git repack -adfq && git grep -c a"),
    "gcc": ("gcc", "gcc -O2 -c source.c -o source.o"),
    "g++": ("g++", "g++ -O2 -std=c++17 -c -x c++ source.cc -o source.o"),
    "clang": ("clang-14", "clang-14 -O2 -c source.c -o source.o"),
    "sqlite3": ("sqlite3", "sqlite3 :memory: 'create table t(a,b); with recursive n(i) as (select 1 union all select i+1 from n where i<600000) "
                           "insert into t select i, i*7919%10007 from n; create index x on t(b); select sum(a) from t group by b%50;'"),
    "x264": ("x264", "x264 --quiet --threads 2 --input-res 352x288 --demuxer raw -o out.264 video.yuv"),
    "ffmpeg": ("ffmpeg", "ffmpeg -loglevel error -f lavfi -i testsrc=duration=4:size=640x360 -c:v mpeg4 -y out.avi"),
    "dav1d": ("dav1d ffmpeg", "ffmpeg -loglevel error -f lavfi -i testsrc=duration=1:size=320x180 -c:v libaom-av1 -cpu-used 8 -y out.ivf && "
                              "for i in $(seq 20); do dav1d -q -i out.ivf -o /dev/null --muxer null; done"),
    "convert": ("imagemagick", "convert picture.ppm -resize 300% -blur 0x8 -rotate 30 out.png"),
    "djpeg": ("libjpeg-turbo-progs", "cjpeg picture.ppm > out.jpg; for i in $(seq 30); do djpeg out.jpg > out.ppm; done"),
    "gnuplot": ("gnuplot-nox", "gnuplot -e 'set term pngcairo; set output \"out.png\"; set isosamples 300; splot sin(x)*cos(y) with pm3d'"),
    "bc": ("bc", "echo 'scale=3000; 4*a(1)' | bc -l"),
    "gs": ("ghostscript", "gs -q -dBATCH -dNOPAUSE -sDEVICE=ppmraw -r300 -sOutputFile=/dev/null page.ps"),
    "busybox": ("busybox-static", "busybox sha3sum text numbers text numbers text"),
    "go": ("golang-go", "go vet fmt"),
}

MARK = re.compile(r"^\[(no unwind info|broken|truncated|lost|unknown)")
Stack = collections.namedtuple("Stack", "frames names is_marked")


def report(case, contender, metric, value, unit):
    print(json.dumps({"question": "truth_in_the_wild", "case": case, "contender": contender, "metric": metric, "value": value, "unit": unit}), flush=True)


def write_inputs(directory):
    """What the commands read: the same on each machine."""
    words = ["%s%s" % (first, second) for first in "sampling profile stack frame unwind thread signal clock ring".split()
             for second in ("", "s", "ing", "er", "er's", "ed")]
    state = 1
    lines = []
    for _ in range(60_000):
        line = []
        for _ in range(12):
            state = state * 6364136223846793005 + 1442695040888963407 & (1 << 64) - 1
            line.append(words[(state >> 33) % len(words)])
        lines.append(" ".join(line))
    (directory / "text").write_text("\n".join(lines))
    (directory / "numbers").write_text("\n".join(str(i * 7919 % 1_000_003) for i in range(600_000)))
    functions = ["int f%d(int a, int b) { int s = %d; for (int i = 0; i < a; ++i) { s += b * i %% %d; if (s & %d) s ^= a; } return s; }\n" %
                 (i, i, i + 3, i % 64 + 1) for i in range(1200)]
    (directory / "source.c").write_text("".join(functions))
    (directory / "source.cc").write_text("#include <algorithm>\n#include <map>\n#include <regex>\n#include <string>\n#include <vector>\n"
                                         "int main() { std::map<std::string, std::vector<int>> m; m[\"a\"] = {3, 1, 2}; "
                                         "std::sort(m[\"a\"].begin(), m[\"a\"].end()); return std::regex_match(\"aab\", std::regex(\"a*b\")); }\n")
    (directory / "picture.ppm").write_bytes(b"P6 640 480 255\n" + bytes((x * y >> 3) & 255 for y in range(480) for x in range(640 * 3)))
    (directory / "video.yuv").write_bytes(bytes((i * 7 + (i >> 9) * frame) & 255 for frame in range(30) for i in range(352 * 288 * 3 // 2)))
    (directory / "page.ps").write_text("%!PS\n1 1 400 { /i exch def i 2 mod 0 eq { 1 0 0 } { 0 0 1 } ifelse setrgbcolor newpath 300 400 i 0 360 arc stroke } for\n"
                                       "/Times-Roman findfont 20 scalefont setfont 1 1 60 { 10 mul 72 exch moveto (Stacks of programs) show } for showpage\n")


def samples_of_strobe(strobe, recording, directory):
    """The stacks by (thread, microsecond)."""
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests/readers"))
    import pprof_file  # pylint: disable=import-outside-toplevel
    path = os.path.join(directory, "out.pb.gz")
    subprocess.run([strobe, "script", recording, "-o", path], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=300)
    stacks = {}
    for locations, _, labels in pprof_file.read(path).rows:
        if "end_timestamp_ns" not in labels:
            continue
        frames = [(os.path.basename(location.mapping[2]), location.offset) if location.mapping else (location.function[0], location.address)
                  for location in locations]
        names = [location.function[0] for location in locations]
        is_marked = bool(names) and bool(MARK.match(names[-1])) and not locations[-1].mapping and locations[-1].address == 0
        if is_marked:
            frames.pop()
        stacks[labels["thread_id"], labels["end_timestamp_ns"] // 1000] = Stack(frames, names, is_marked)
    return stacks


def samples_of_perf(recording):
    text = subprocess.run(["perf", "script", "-i", recording, "--no-inline", "-F", "pid,tid,time,ip,sym,dso"], check=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, timeout=600).stdout.decode(errors="replace")
    stacks = {}
    for block in text.split("\n\n"):
        lines = [line for line in block.split("\n") if line.strip()]
        head = re.match(r"\s*\d+/(\d+)\s+(\d+)\.(\d+):", lines[0]) if lines else None
        if head is None:
            continue
        frames, names = [], []
        for line in lines[1:]:
            frame = re.match(r"\s*([0-9a-f]+) (.*) \((.*)\)$", line)
            if frame is None:
                continue
            frames.append((os.path.basename(frame[3].removesuffix(" (deleted)")), int(frame[1], 16)))
            names.append(frame[2].split("@")[0])
        in_files = [not file.startswith(("[unknown]", "[stack]", "[heap]", "anon", "//anon")) for file, _ in frames]
        end = in_files.index(False) if False in in_files else len(frames)
        del frames[end:], names[end:]
        stacks[head[1], int(head[2]) * 1_000_000 + int(head[3])] = Stack(frames, names, False)
    return stacks


def measure(name, command, strobe, inputs):
    with tempfile.TemporaryDirectory() as directory:
        for path in inputs.iterdir():
            os.link(path, os.path.join(directory, path.name))
        recording = os.path.join(directory, "perf.data")
        recorded = subprocess.run(["perf", "record", "-q", "-e", "cpu-clock:u", "-F", HZ, "--call-graph", "dwarf," + STACK_BYTES, "-o", recording, "--",
                                   "timeout", str(SECONDS), "sh", "-c", command], cwd=directory, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
        if recorded.returncode != 0:
            print("skipped: %s (status %d: %s)" % (name, recorded.returncode, recorded.stderr.decode(errors="replace").strip()[-200:]), file=sys.stderr)
            return
        ours, theirs = samples_of_strobe(strobe, recording, directory), samples_of_perf(recording)
    both = ours.keys() & theirs.keys()
    counts = collections.Counter()
    for key in both:
        our, their = ours[key], theirs[key]
        counts["marked"] += our.is_marked
        counts["perf"] += bool(their.frames) and (their.names[-1] in OUTERMOST or not our.is_marked and their.frames[-1] == our.frames[-1])
        if our.is_marked or their.frames == our.frames[:len(their.frames)]:
            continue
        counts["unlike"] += 1
        if counts["unlike"] <= SHOWN:
            print("%s: unlike\n  strobe %s\n  perf   %s" % (name, describe(our), describe(their)), file=sys.stderr)
    if not both:
        print("skipped: %s (no samples)" % name, file=sys.stderr)
        return
    report(name, "strobe", "samples", len(both), "")
    report(name, "strobe", "whole", 100 * (len(both) - counts["marked"]) / len(both), "%")
    report(name, "perf", "whole", 100 * counts["perf"] / len(both), "%")
    report(name, "strobe", "marked", 100 * counts["marked"] / len(both), "%")
    report(name, "strobe", "unlike", counts["unlike"], "stacks")


def describe(stack):
    return " < ".join("%s+0x%x %s" % (file, offset, name) for (file, offset), name in zip(stack.frames, stack.names))


def main():
    _, build = map(pathlib.Path, sys.argv[1:3])
    if not shutil.which("perf"):
        print("skipped: perf (not installed)", file=sys.stderr)
        return
    with tempfile.TemporaryDirectory() as inputs:
        write_inputs(pathlib.Path(inputs))
        for name, (package, command) in PROGRAMS.items():
            if len(sys.argv) > 3 and name not in sys.argv[3:]:
                continue
            if not shutil.which(command.split()[0]) and command.split()[0] not in ("for", "echo"):
                print("skipped: %s (the package %s is not installed)" % (name, package), file=sys.stderr)
                continue
            measure(name, command, str(build / "src/cli/strobe"), pathlib.Path(inputs))


if __name__ == "__main__":
    main()
