#!/usr/bin/env python3
"""Builds a program with Clang, records it, and builds it anew with what `strobe pgo` says of it.

  pgo_test.py STROBE

LLVM's own tools read each file. Exit status 77 where Clang, llvm-profdata or lld is missing.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

for folder in ("readers", "support"):
    sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / folder))
from checks import check, equal, failures  # noqa: E402
from newest import newest  # noqa: E402

TIMEOUT_S = 100
SKIPPED = 77
WORK_S = 1  # by the program's own clock
OPTIONS = ["-O2", "-ffunction-sections", "-Wl,--build-id", "-Wall", "-Wextra", "-Werror"]
CLANG_DEBUG = ["-g1", "-fdebug-info-for-profiling"]

# Hot() takes its first branch 4095 times of 4096; Mix() is inlined there.
SOURCE = """\
#include <stdint.h>
#include <time.h>
static uint64_t Mix(uint64_t x) {
  x ^= x >> 31;
  x *= 0x9E3779B97F4A7C15u;
  return x ^ (x >> 29);
}
__attribute__((noinline)) uint64_t Rare(uint64_t x) { return x * 3 + 1; }
__attribute__((noinline)) uint64_t Hot(uint64_t x, int rounds) {
  for (int i = 0; i < rounds; ++i) {
    if ((x & 0xFFF) != 0) {
      x = Mix(x + 1);
    } else {
      x = Rare(x);
    }
  }
  return x;
}
__attribute__((noinline)) uint64_t Work() {
  uint64_t x = 1;
  do {
    x = Hot(x, 1 << 20);
    for (int i = 0; i < 1 << 18; ++i) x = x * 5 + (x >> 7);
  } while (clock() < WORK_S * CLOCKS_PER_SEC);
  return x;
}
int main() { return Work() == 0; }
"""
HOT_LINE, RARE_LINE = "3", "5"  # counted from Hot()


class Builder:
    def __init__(self, strobe, directory):
        self.strobe, self.directory = strobe, pathlib.Path(directory)
        self.clang, self.profdata = newest("clang++"), newest("llvm-profdata")

    def missing(self):
        return [tool for tool in (self.clang, self.profdata) if shutil.which(tool) is None]

    def run(self, *command, status=0):
        result = subprocess.run([*map(str, command)], capture_output=True, cwd=self.directory, timeout=TIMEOUT_S, text=True)
        equal(result.returncode, status, "%s: %s" % (" ".join(map(str, command)), result.stderr[:1000]))
        return result

    def build(self, program, *options, source=SOURCE, compiler=None):
        path = self.directory / program
        path.parent.mkdir(exist_ok=True)
        (self.directory / "program.cc").write_text(source)
        compile = [compiler, "-g"] if compiler else [self.clang, *CLANG_DEBUG]
        return self.run(*compile, *OPTIONS, "-DWORK_S=%d" % WORK_S, *options, "program.cc", "-o", path)

    def pgo(self, *arguments, status=0):
        return self.run(self.strobe, "pgo", *arguments, status=status).stderr

    def sections(self, profile):
        """The counts of each function, by line, as LLVM has read them."""
        text = self.run(self.profdata, "merge", "--sample", "--text", profile, "-o", "/dev/stdout").stdout
        functions, name = {}, None
        for line in text.splitlines():
            if not line.startswith(" "):
                name = line.split(":")[0]
                functions[name] = dict(zip(("total", "head"), map(int, line.split(":")[1:])))
            elif match := re.match(r" (\d+)(?:\.\d+)?: (?:\w+:)?(\d+)", line):
                functions[name][match[1]] = functions[name].get(match[1], 0) + int(match[2])
        return functions


def profile_is_used(builder):
    report = builder.pgo("--binary", "old/program", "one.pb.gz", "-o", "one.prof")
    check(re.search(r"of the [\d.]+ m?s \(cpu\) in old/program", report) is not None, "the report: " + report)
    functions = builder.sections("one.prof")
    hot = functions.get("_Z3Hotmi", {})
    equal(max(functions, key=lambda name: functions[name]["total"]), "_Z3Hotmi", "the function with the largest counts")
    check(hot.get(HOT_LINE, 0) > 10 * hot.get(RARE_LINE, 0), "so has its frequent branch: %s" % hot)
    check(all(hot.get(count, 0) > 0 for count in ("total", "head")), "Hot() has been entered: %s" % hot)
    check(re.search(r"^ \d+: \d+ _Z3Hotmi:\d+$", (builder.directory / "one.prof").read_text(), re.M) is not None, "Work() has called it")
    # A profile that does not match is a warning, and so an error here.
    for name in ("one.prof", "one.profdata"):
        if name == "one.profdata":
            builder.run(builder.profdata, "merge", "--sample", "one.prof", "-o", name)
        code = builder.build("again/program.ll", "-S", "-emit-llvm", "-Wno-unused-command-line-argument", "-fprofile-sample-use=" + name)
        equal(code.stderr, "", "what Clang says of " + name)
        text = (builder.directory / "again/program.ll").read_text()
        function = text[text.index("@_Z3Hotmi"):]
        check("!prof" in function[:function.index("\n}")], "Hot() has weights of branches: " + name)


def other_builds_count(builder):
    """Lines before a function, and another build id, change nothing; a function that is gone is left out."""
    expected = builder.sections("one.prof")
    builder.build("new/program", source="\n\n// Three lines more.\n" + SOURCE)
    report = builder.pgo("--binary", "new/program", "one.pb.gz", "-o", "new.prof")
    check("100.0 % of that is of other builds" in report, "a build that is all of another build: " + report)
    check("; of their counts 0.0 %" in report, "it still has all lines: " + report)
    equal(builder.sections("new.prof"), expected, "the profile of another build")
    builder.build("gone/program", source=SOURCE.replace("Hot(", "Warm("))
    report = builder.pgo("--binary", "gone/program", "one.pb.gz", "-o", "gone.prof")
    check("; of their counts 0.0 %" not in report, "a function is gone: " + report)
    check("_Z3Hotmi" not in (builder.directory / "gone.prof").read_text(), "a function that is gone")


def several_profiles_add_up(builder):
    builder.pgo("--binary", "old/program", "one.pb.gz", "one.pb.gz", "--format", "llvm", "-o", "two.prof")
    one, two = builder.sections("one.prof")["_Z3Hotmi"], builder.sections("two.prof")["_Z3Hotmi"]
    check(abs(two["total"] - 2 * one["total"]) <= len(one) + 2, "the sum of two profiles: %s %s" % (one, two))


def order_is_read(builder):
    builder.pgo("--binary", "old/program", "one.pb.gz", "-o", "one.order")
    order = (builder.directory / "one.order").read_text().split()
    check("_Z3Hotmi" in order and "_Z4Workv" in order, "the order of symbols: %s" % order)
    lld = newest("ld.lld")
    if shutil.which(lld) is None:
        return print("%s is missing: no linker has read the order" % lld)
    linked = builder.build("ordered/program", "-fuse-ld=lld", "-Wl,--symbol-ordering-file=one.order")
    equal(linked.stderr, "", "what lld says")
    table = builder.run("nm", "-n", "ordered/program").stdout
    placed = sorted((symbol for symbol in order if " %s\n" % symbol in table), key=lambda symbol: table.index(" %s\n" % symbol))
    equal(placed[:len(order)], [symbol for symbol in order if symbol in placed], "the linker's order")


def gcc_reads_its_own(builder):
    compiler = newest("g++")
    if shutil.which(compiler) is None:
        return print("%s is missing: no GCC has read a profile" % compiler)
    builder.build("gcc/program", compiler=compiler)
    builder.run(builder.strobe, "record", "--no-top", "-F", "1000", "-o", "gcc.pb.gz", "gcc/program")
    builder.pgo("--binary", "gcc/program", "gcc.pb.gz", "-o", "gcc.afdo")
    # The loader's errors end the compilation.
    builder.build("gcc/program.s", "-S", "-fauto-profile=gcc.afdo", compiler=compiler)
    text = (builder.directory / "gcc/program.s").read_text()
    check(".text.hot._Z3Hotmi" in text, "Hot() is hot: %s" % [line for line in text.splitlines() if "section" in line and ".text" in line])


def errors_say_what_to_do(builder):
    def message(*arguments):
        return builder.pgo(*arguments, "-o", "none.prof", status=1)

    builder.build("bare/program", "-g0")
    for program, text in (("/bin/sh", "no sample has an address in /bin/sh"), ("program.cc", "program.cc is no ELF file"),
                          ("bare/program", "build it with -g1 -fdebug-info-for-profiling")):
        said = message("--binary", program, "one.pb.gz")
        check(text in said and said.count("\n") == 1, "%s: %s" % (program, said))
    (builder.directory / "text.folded").write_text("main;Hot 5\n")
    check("no sample has an address" in message("--binary", "old/program", "text.folded"), "a profile without addresses")
    equal(builder.run(builder.strobe, "pgo", "--binary", "old/program", "one.pb.gz", "-o", "x.unknown", status=1).stderr.count(".prof"), 1,
          "a name without a format")


def main():
    with tempfile.TemporaryDirectory() as directory:
        builder = Builder(pathlib.Path(sys.argv[1]).resolve(), directory)
        if missing := builder.missing():
            print("skipped: there is no " + ", no ".join(missing))
            sys.exit(SKIPPED)
        builder.build("old/program")
        builder.run(builder.strobe, "record", "--no-top", "-F", "1000", "-o", "one.pb.gz", "old/program")
        for part in (profile_is_used, other_builds_count, several_profiles_add_up, order_is_read, gcc_reads_its_own, errors_say_what_to_do):
            part(builder)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
