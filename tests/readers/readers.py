#!/usr/bin/env python3
"""Opens the sample profiles in the programs that people use, and compares what those say with what was written.

  readers.py pprof-format|speedscope|firefox WRITE_SAMPLES NPM_DIRECTORY

WRITE_SAMPLES is the program write_samples; NPM_DIRECTORY is where packages are installed, and kept. Exit status 77, with the reason on the
last line, where a reader is not here.
"""
import contextlib
import gzip
import json
import pathlib
import subprocess
import sys
import tempfile
import time

from checks import check, equal, failures
import npm

TIMEOUT_S = 120
HERE = pathlib.Path(__file__).parent
SMALL = ("empty", "small", "unsymbolized", "detailed", "random_200x30_shared_0", "random_200x30_shared_26")



def pprof_format(samples, modules, _):
    """npm's pprof-format, an independent decoder."""
    script = """const {Profile} = require('pprof-format'), fs = require('fs'), zlib = require('zlib');
for (const file of process.argv.slice(1)) {
  const profile = Profile.decode(zlib.gunzipSync(fs.readFileSync(file)));
  const text = (index) => profile.stringTable.strings[Number(index)];
  const functions = new Map(profile.function.map((one) => [Number(one.id), text(one.name)]));
  console.log(JSON.stringify({
    sums: Object.fromEntries(profile.sampleType.map((kind, i) => [text(kind.type), Number(
        profile.sample.reduce((sum, sample) => sum + BigInt.asIntN(64, BigInt(sample.value[i])), 0n))])),
    stacks: profile.sample.slice(0, 2).map((sample) => sample.locationId.map(
        (id) => profile.location[Number(id) - 1].line.map((line) => functions.get(Number(line.functionId)))).flat()),
    labels: profile.sample.slice(1, 2).flatMap((sample) => sample.label.map((label) => text(label.key)))}));
}"""
    files = [samples / (name + ".pb.gz") for name in SMALL]
    result = subprocess.run(["node", "-e", script, *map(str, files)], cwd=modules.parent, capture_output=True, text=True, timeout=TIMEOUT_S)
    print(result.stderr)
    check(result.returncode == 0, "pprof-format reads the files")
    read = dict(zip(SMALL, map(json.loads, result.stdout.splitlines())))
    sums = json.loads((samples / "sums.json").read_text())
    for name in read:
        equal(read[name]["sums"], sums[name], "pprof-format, sums of " + name)
    equal(read["detailed"]["stacks"][0], ["sample::Step", "sample::Loop", "sample::Busy", "main"], "pprof-format, a stack with inlined functions")
    equal(read["detailed"]["labels"], ["batch_size", "request", "thread_id", "thread_name", "end_timestamp_ns"], "pprof-format, labels")


def speedscope(samples, modules, scratch):
    """speedscope's page in headless Chromium, and its schema."""
    schema = json.loads((modules / "speedscope/dist/release/file-format-schema.json").read_text())
    for path in sorted(samples.glob("*.speedscope.json")):
        faults = list(violations(json.loads(path.read_text()), {"$ref": "#/definitions/FileFormat.File"}, schema, "$"))
        check(not faults, "schema of %s: %s" % (path.name, faults[:3]))
    browser = npm.chromium()
    names = [name + suffix for name in ("small", "detailed", "random_200x30_shared_26") for suffix in (".speedscope.json", ".folded")]
    names += ["empty.speedscope.json"]
    result = subprocess.run(["node", str(HERE / "speedscope.js"), browser, str(modules), *[str(samples / name) for name in names]],
                            capture_output=True, text=True, timeout=TIMEOUT_S, env=npm.environment(scratch))
    print(result.stderr)
    check(result.returncode == 0, "speedscope opens the files")
    read = {pathlib.Path(page["file"]).name: page for page in map(json.loads, result.stdout.splitlines())}
    check(len(read) == len(names), "speedscope shows every file")
    if failures:
        return
    for name in names:
        check(not read[name]["errors"], "speedscope, %s: %s" % (name, read[name]["errors"]))
    equal(read["detailed.speedscope.json"]["profiles"],
          [["main (4242), samples", "96"], ["main (4242), cpu", "963.00ms"], ["w\u00f6rker 1 (4243), samples", "7"],
           ["w\u00f6rker 1 (4243), cpu", "70.00ms"], ["w\u00f6rker 1 (4243), wall", "300.00ms"], ["thread 4294967295, samples", "2"],
           ["thread 4294967295, cpu", "20.00ms"]], "speedscope's profiles")
    equal(read["detailed.speedscope.json"]["shown"], "main (4242), cpu (2/7)", "what speedscope shows first")
    table = read["detailed.speedscope.json"]["table"]
    for function, total, self in (("main", 900, 0), ("sample::Busy", 960, 0), ("sample::Loop", 960, 0), ("sample::Step", 960, 760),
                                  ("sample_write", 200, 200), ("[residual]", 3, 3), ("[request=check;out]", 200, 0)):
        equal([milliseconds(cell) for cell in table.get(function, ["", ""])], [total, self], "speedscope, total and self of " + function)
    folded = read["detailed.folded"]["table"]
    equal([cell.split(" ")[0] for cell in folded.get("sample::Step", [])], ["101", "81"], "speedscope, sample::Step of folded stacks")
    equal([cell.split(" ")[0] for cell in folded.get("[request=check:out]", [])], ["20", "0"], "speedscope, a label of folded stacks")


def milliseconds(cell):
    text = cell.split(" ")[0]
    for unit, factor in (("ms", 1), ("\u00b5s", 1e-3), ("ns", 1e-6), ("s", 1e3)):
        if text.endswith(unit):
            return float(text.removesuffix(unit)) * factor
    return None


def violations(value, rule, root, where):
    """What is wrong with `value` by the part of JSON Schema that speedscope's schema uses."""
    types = {"object": dict, "array": list, "string": str, "number": (int, float)}
    known = {"$ref", "type", "const", "enum", "anyOf", "properties", "required", "items", "title", "$schema", "definitions"}
    if not set(rule) <= known:
        yield "%s: the schema has %s, which this check does not know" % (where, set(rule) - known)
    if "$ref" in rule:
        yield from violations(value, root["definitions"][rule["$ref"].rsplit("/", 1)[1]], root, where)
    if "type" in rule and (not isinstance(value, types[rule["type"]]) or isinstance(value, bool)):
        yield "%s is no %s" % (where, rule["type"])
        return
    if "const" in rule and value != rule["const"] or "enum" in rule and value not in rule["enum"]:
        yield "%s is %r" % (where, value)
    if "anyOf" in rule:
        results = [list(violations(value, one, root, where)) for one in rule["anyOf"]]
        if all(results):
            yield from min(results, key=len)
    for key in rule.get("required", []):
        if key not in value:
            yield "%s has no %s" % (where, key)
    for key, part in rule.get("properties", {}).items():
        if key in value:
            yield from violations(value[key], part, root, "%s.%s" % (where, key))
    if "items" in rule:
        for index, part in enumerate(value):
            yield from violations(part, rule["items"], root, "%s[%d]" % (where, index))


class FirefoxProfiler:
    """The Firefox Profiler's own command line, as a server of one file."""

    def __init__(self, modules, scratch, file):
        self.command = ["node", str(modules / "@firefox-devtools/profiler-cli/dist/profiler-cli.js")]
        self.environment = dict(npm.environment(scratch), PROFILER_CLI_SESSION_DIR=str(scratch), PROFILER_CLI_NO_SYMBOLICATE="1")
        self.log = open(scratch / "daemon.log", "wb")
        self.daemons_own_log = scratch / "one.log"
        self.daemon = subprocess.Popen([*self.command, "--daemon", str(file), "--session", "one"], env=self.environment, stdout=self.log,
                                       stderr=self.log)

    def __enter__(self):
        # A command that meets a daemon that does not listen yet takes it to be dead, and removes its files.
        end = time.monotonic() + TIMEOUT_S
        while "Profile loaded successfully" not in self.said():
            if self.daemon.poll() is not None or time.monotonic() > end:
                raise RuntimeError("the daemon does not begin: %s%s" % (pathlib.Path(self.log.name).read_text(), self.said()))
            time.sleep(0.1)
        ok, output = self.run("status", "--session", "one")
        if not ok:
            raise RuntimeError("the daemon does not answer: %s%s" % (output, self.said()))
        return self

    def said(self):
        return self.daemons_own_log.read_text() if self.daemons_own_log.exists() else ""

    def __exit__(self, *_):
        self.daemon.terminate()
        self.daemon.wait()
        self.log.close()

    def run(self, *arguments):
        result = subprocess.run([*self.command, *arguments], env=self.environment, capture_output=True, text=True, timeout=TIMEOUT_S)
        return result.returncode == 0, result.stdout + result.stderr

    def ask(self, *arguments):
        ok, output = self.run(*arguments, "--json", "--session", "one")
        check(ok, "profiler-cli %s: %s" % (" ".join(arguments), output[-500:]))
        return json.loads(output) if ok else {}


def firefox(samples, modules, scratch):
    """npm's @firefox-devtools/profiler-cli."""
    sums = json.loads((samples / "sums.json").read_text())
    for path in sorted(samples.glob("*.firefox.json.gz")):
        tables = json.loads(gzip.decompress(path.read_bytes()))
        for thread in tables["threads"]:
            lengths = {len(column) for column in thread["samples"].values() if isinstance(column, list)}
            check(lengths <= {thread["samples"]["length"]}, "%s: columns of %s" % (path.name, lengths))
    for name in ("detailed", "random_200x30_shared_26"):
        directory = scratch / name
        directory.mkdir()
        with FirefoxProfiler(modules, directory, samples / (name + ".firefox.json.gz")) as profiler:
            check_firefox(profiler, name, sums[name])


def check_firefox(profiler, name, sums):
    info = profiler.ask("profile", "info", "--all")
    threads = [thread for process in info.get("processes", []) for thread in process["threads"]]
    equal(round(sum(thread["cpuMs"] for thread in threads) * 1e6), sums["cpu"], "Firefox, CPU time of the threads of " + name)
    self_ms = 0
    for thread in threads:
        functions = profiler.ask("thread", "functions", "--include-idle", "--limit", "0", "--thread", thread["threadHandle"])["functions"]
        self_ms += sum(function["selfSamples"] for function in functions)
        if name == "detailed" and thread["name"] == "main":
            check_firefox_main(profiler, thread["threadHandle"], {function["name"]: function for function in functions})
    equal(round(self_ms * 1e6), sums["cpu"], "Firefox, sum of the functions of " + name)
    if name == "detailed":
        equal([(thread["name"], thread["tid"], round(thread["cpuMs"])) for thread in threads],
              [("main", 4242, 963), ("w\u00f6rker 1", 4243, 70), ("thread 4294967295", 4294967295, 20)], "Firefox's threads")


def check_firefox_main(profiler, handle, functions):
    for function, total, self in (("main", 900, 0), ("sample::Busy", 960, 0), ("sample::Step", 960, 760), ("sample_write", 200, 200),
                                  ("[residual]", 3, 3)):
        found = functions.get(function, {})
        equal([found.get("totalSamples"), found.get("selfSamples")], [total, self], "Firefox, total and self of " + function)
    equal(functions["sample_write"]["library"], "libsample.so.6", "Firefox, a function's library")
    tree = profiler.ask("thread", "samples-top-down", "--include-idle", "--thread", handle)
    text = json.dumps(tree)
    check("sample::Step" in text, "Firefox, the tree")
    markers = {kind["markerName"]: kind for kind in profiler.ask("thread", "markers", "--thread", handle)["byType"]}
    equal({kind: markers[kind]["count"] for kind in markers}, {"Thread": 1, "request": 2, "batch size": 2}, "Firefox's markers")
    request = markers.get("request", {}).get("topMarkers", [])
    equal([(marker["label"], marker["start"], marker["duration"]) for marker in request], [("check;out", 1, 10), ("check;out", 31, 10)],
          "Firefox, the markers of a label")


def main(reader, write_samples, npm_directory):
    readers = {"pprof-format": pprof_format, "speedscope": speedscope, "firefox": firefox}
    with contextlib.ExitStack() as stack:
        directory = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="strobe_readers_")))
        samples, scratch = directory / "samples", directory / "scratch"
        samples.mkdir()
        scratch.mkdir()
        try:
            modules = npm.packages(npm_directory)
            subprocess.run([write_samples, samples], check=True)
            readers[reader](samples, modules, scratch)
        except npm.Missing as missing:
            print("SKIPPED: %s: %s" % (reader, missing))
            return 77
        print("%d checks failed" % len(failures))
        return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4]))
