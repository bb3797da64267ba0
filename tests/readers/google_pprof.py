#!/usr/bin/env python3
"""Runs profiles through Google's readers of profile.proto.

  google_pprof.py FILE...             any .pb.gz: every reader that is there must accept it
  google_pprof.py --samples PROGRAM   the sample profiles that PROGRAM (write_samples) writes; what the readers say of them is compared, too

Readers: Google's pprof (a Go distribution's, or `pprof` of the PATH, or $STROBE_PPROF), its package profile with Parse and CheckValid, and
protoc --decode with pprof's own profile.proto. A reader that is not there is skipped by name; exit status 77 when there is none of Google's.
"""
import glob
import gzip
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)  # other tests load this file by its path
from checks import check, failures  # noqa: E402

GOCODE = "/usr/share/gocode"  # Debian's golang-github-google-pprof-dev
PROTO = GOCODE + "/src/github.com/google/pprof/proto/profile.proto"
TIMEOUT_S = 120



def run(command, **options):
    """(ok, stdout) of a command; says what went wrong."""
    result = subprocess.run(command, capture_output=True, timeout=TIMEOUT_S, **options)
    output = result.stdout.decode(errors="replace")
    if result.returncode != 0:
        print("%s: exit status %d\n%s" % (" ".join(command), result.returncode, result.stderr.decode(errors="replace")))
    return result.returncode == 0, output


class Pprof:
    name = "pprof"

    def __init__(self, directory):
        self.environment = dict(os.environ, PPROF_TMPDIR=directory, PPROF_BINARY_PATH=directory, GOTOOLCHAIN="local")
        self.command = None
        candidates = [[os.environ["STROBE_PPROF"]]] if os.environ.get("STROBE_PPROF") else []
        candidates += [[path] for path in sorted(glob.glob("/usr/lib/go*/pkg/tool/*/pprof"))]
        candidates += [["go", "tool", "pprof"]] if shutil.which("go") else []
        candidates += [["pprof"]] if shutil.which("pprof") else []
        for command in candidates:
            try:
                # -h ends with status 2, and with the names of the output formats.
                probe = subprocess.run(command + ["-h"], capture_output=True, timeout=TIMEOUT_S, env=self.environment)
            except (OSError, subprocess.TimeoutExpired):
                continue
            if b"-traces" in probe.stdout + probe.stderr:
                self.command = command
                return
        self.missing = "no pprof found: install golang-go"

    def report(self, file, *flags, symbolize="none"):
        ok, output = run(self.command + ["-symbolize=" + symbolize, *flags, file], env=self.environment)
        check(ok, "pprof %s %s" % (" ".join(flags), os.path.basename(file)))
        return output

    def accept(self, file):
        for flag in ("-raw", "-top", "-traces", "-tags", "-comments"):
            self.report(file, flag)


class CheckValid:
    name = "profile.CheckValid"

    def __init__(self, directory):
        self.command = None
        if not shutil.which("go"):
            self.missing = "no go found: install golang-go"
            return
        environment = dict(os.environ, GO111MODULE="off", GOFLAGS="", GOTOOLCHAIN="local", CGO_ENABLED="0")
        if "HOME" not in os.environ:
            environment.setdefault("GOCACHE", os.path.join(directory, "go-cache"))
        root = subprocess.run(["go", "env", "GOROOT"], capture_output=True, env=environment).stdout.decode().strip()
        # Go's sources carry a copy of pprof, from which a tree can be made that stands in for the
        # package.
        copies = [GOCODE + "/src/github.com/google/pprof"]
        copies += [path + "/src/cmd/vendor/github.com/google/pprof" for path in [root, *sorted(glob.glob("/usr/share/go-*"))]]
        copy = next((path for path in copies if os.path.isdir(path + "/profile")), None)
        if copy is None:
            self.missing = "pprof's package profile not found: install golang-github-google-pprof-dev"
            return
        os.makedirs(os.path.join(directory, "src/github.com/google"))
        os.symlink(copy, os.path.join(directory, "src/github.com/google/pprof"))
        environment["GOPATH"] = directory
        program = os.path.join(directory, "check_valid")
        ok, _ = run(["go", "build", "-p", "1", "-o", program, os.path.join(HERE, "check_valid.go")], env=environment, cwd=directory)
        if ok:
            self.command = [program]
        else:
            self.missing = "check_valid.go could not be built, see above"

    def sums(self, file):
        ok, output = run(self.command + [file])
        check(ok, "CheckValid " + os.path.basename(file))
        return {kind: int(value) for kind, value in (line.rsplit(" ", 1) for line in output.splitlines())}

    def accept(self, file):
        print("  sums: %s" % self.sums(file))


class Protoc:
    name = "protoc --decode"

    def __init__(self, _):
        self.command = None
        if not shutil.which("protoc"):
            self.missing = "install protobuf-compiler"
        elif not os.path.exists(PROTO):
            self.missing = "no profile.proto: install golang-github-google-pprof-dev"
        else:
            self.command = ["protoc", "--decode=perftools.profiles.Profile", "--proto_path=" + os.path.dirname(PROTO), PROTO]

    def text(self, file):
        try:
            with gzip.open(file) as stream:
                message = stream.read()
        except (OSError, EOFError) as error:
            check(False, "gunzip %s: %s" % (os.path.basename(file), error))
            return ""
        ok, output = run(self.command, input=message)
        check(ok, "protoc --decode " + os.path.basename(file))
        return output

    def accept(self, file):
        # A field that the schema does not know is printed by its number. Debian's does not know a line's column, 3, yet.
        check(not re.search(r"^\s*(?!3: )\d+[:{ ]", self.text(file), re.M), "unknown field in " + os.path.basename(file))


def has_line(text, *words):
    """Whether one line of `text` contains all the words, in this order."""
    pattern = re.compile(".*".join(re.escape(word) for word in words))
    return any(pattern.search(line) for line in text.splitlines())


# What include/strobe/testing/profiles.h puts into the small profile.
SMALL_SUMS = {"samples/count": 105, "cpu/nanoseconds": 1_053_000_000, "wall/nanoseconds": 300_000_000}
BUSY = "sample::Busy"


def check_small_with_pprof(pprof, file):
    top = pprof.report(file, "-top", "-nodecount=100", "-nodefraction=0")
    check(has_line(top, "Type: cpu"), "small: cpu is shown by default")
    check(has_line(top, "810ms", BUSY), "small: flat time of Busy")
    check(has_line(top, "200ms", "sample_write"), "small: flat time of sample_write")
    check(has_line(top, "10ms", "[libsample.so.6]"), "small: code without a name is its library's")
    for pseudo in ("[truncated]", "[broken stack]", "[no unwind info]", "[lost]", "[residual]", "[overflow]", "[coroutine]"):
        check(has_line(top, pseudo), "small: " + pseudo)
    wall = pprof.report(file, "-top", "-sample_index=wall")
    check(has_line(wall, "300ms", BUSY), "small: wall time of Busy")
    raw = pprof.report(file, "-raw")
    check(has_line(raw, "PeriodType: cpu nanoseconds") and has_line(raw, "Period: 10000000"), "small: period")
    check(has_line(raw, "samples/count", "cpu/nanoseconds[dflt]", "wall/nanoseconds"), "small: sample types and default")
    check(has_line(raw, "1: 0x400000/0x500000/0x1000", "sample_program", "00112233445566778899aabbccddeeff00112233", "[FN]"),
          "small: mapping of the program")
    check(has_line(raw, "2: 0x7f0000000000/0x7f0000100000/0x26000", "libsample.so.6"), "small: mapping of the library")
    check(has_line(raw, "libsample.so.6", "[FN]"), "small: the library's functions were all looked up")
    check(has_line(raw, "0x402345", "M=1", BUSY), "small: address of Busy")
    check(has_line(raw, "0x7f0000054321", "M=2", "[libsample.so.6]"), "small: address of code without a name")
    traces = pprof.report(file, "-traces")
    check(has_line(traces, "thread_name:", "w\u00f6rker 1"), "small: thread name in -traces")
    check(has_line(traces, "thread_id:", "4243"), "small: thread id in -traces")
    tags = pprof.report(file, "-tags")
    check(has_line(tags, "thread_id:", "Total") and has_line(tags, ": 4243"), "small: thread id in -tags")
    check(has_line(tags, "thread_name:", "Total") and has_line(tags, ": main"), "small: thread name in -tags")
    comments = pprof.report(file, "-comments")
    check(has_line(comments, "rate: 100.00 Hz requested, 99.50 Hz measured"), "small: comments")
    check(len(comments.strip().splitlines()) == 3, "small: three lines of comments")
    focus = pprof.report(file, "-top", "-unit=ms", "-tagfocus=thread_name=w\u00f6rker 1")
    check(has_line(focus, "50ms", BUSY), "small: one thread's time alone")
    difference = pprof.report(file, "-top", "-diff_base=" + file)
    check(has_line(difference, "Showing nodes accounting for 0"), "small: -diff_base of itself")


def check_detailed_with_pprof(pprof, directory):
    file = os.path.join(directory, "detailed.pb.gz")
    top = pprof.report(file, "-top", "-nodecount=100", "-nodefraction=0")
    check(has_line(top, "810ms", "1010ms", "sample::Step (inline)"), "detailed: an inlined function")
    check(has_line(top, " 0 ", "1010ms", BUSY), "detailed: the function that it is inlined into")
    lines = pprof.report(file, "-top", "-lines", "-nodecount=100", "-nodefraction=0")
    check(has_line(lines, "810ms", "sample::Step", "/src/sample/step.h:6"), "detailed: a line")
    tags = pprof.report(file, "-tags")
    check(has_line(tags, "request:", "Total") and has_line(tags, ": check;out"), "detailed: a label of the program")
    check(has_line(tags, "batch_size:", "Total") and has_line(tags, ": 7"), "detailed: a number label of the program")
    # -list reads the source, which stands below another directory here.
    sources = os.path.join(directory, "sources")
    os.mkdir(sources)
    for name in ("main.cc", "busy.cc", "step.h"):
        with open(os.path.join(sources, name), "w") as source:
            source.writelines("// %s, line %d\n" % (name, line) for line in range(1, 40))
    listing = pprof.report(file, "-list=sample::Busy", "-source_path=" + sources, "-trim_path=/src/sample")
    check(has_line(listing, "ROUTINE", BUSY, "busy.cc"), "detailed: -list names the file")
    check(has_line(listing, "1.01s", "25:// busy.cc, line 25"), "detailed: -list shows the line's cost")
    full = pprof.report(os.path.join(directory, "full_names.pb.gz"), "-top")
    check(has_line(full, "sample::Busy(int, std::vector<int> const&)"), "full_names: parameters")
    datadog = os.path.join(directory, "datadog.pb.gz")
    traces = pprof.report(datadog, "-traces")
    check(has_line(traces, "thread id:", "4243") and has_line(traces, "end_timestamp_ns:"), "datadog: labels")
    check(has_line(pprof.report(datadog, "-top", "-unit=ms"), "810ms", "sample::Step"), "datadog: the sum of moments and rests")


def main(arguments):
    with tempfile.TemporaryDirectory(prefix="strobe_pprof_check_") as directory:
        files = arguments
        is_samples = arguments[:1] == ["--samples"]
        if is_samples:
            subprocess.run([arguments[1], directory], check=True)
            files = sorted(glob.glob(directory + "/*.pb.gz"))
        if not files:
            print(__doc__)
            return 2
        readers = {}
        for kind in (Pprof, CheckValid, Protoc):
            own = os.path.join(directory, kind.__name__)
            os.mkdir(own)
            reader = kind(own)
            if reader.command is None:
                print("skipped: %s (%s)" % (kind.name, reader.missing))
            else:
                print("reader: %s" % kind.name)
                readers[kind] = reader
        for file in files:
            print(file)
            for reader in readers.values():
                reader.accept(file)
        if is_samples:
            small = os.path.join(directory, "small.pb.gz")
            if Pprof in readers:
                check_small_with_pprof(readers[Pprof], small)
                check_detailed_with_pprof(readers[Pprof], directory)
            if CheckValid in readers:
                for name in ("small", "detailed", "datadog"):
                    sums = readers[CheckValid].sums(os.path.join(directory, name + ".pb.gz"))
                    check(sums == SMALL_SUMS, "%s: sums by %s" % (name, CheckValid.name))
            if Protoc in readers:
                check("name: 0" not in readers[Protoc].text(small), "small: by protoc")
        if failures:
            print("%d checks failed" % len(failures))
            return 1
        if not readers.keys() & {Pprof, CheckValid}:
            print("SKIPPED: neither pprof nor its package is here (apt-get install golang-go golang-github-google-pprof-dev)")
            return 77
        print("%d files accepted by %s" % (len(files), ", ".join(kind.name for kind in readers)))
        return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
