#!/usr/bin/env python3
"""What it costs to build Strobe as src/quickstart.sh builds it: processor seconds and edges of the library, of what the quickstart needs
beyond it, and of what the command needs beyond both. Beside them those of the last release, each as its own quickstart built it.

  build.py SOURCE BUILD      as bench/run.sh calls it

The last release is the newest tag v*, or the commit that $STROBE_BENCH_RELEASE names.
"""
import json
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile

# In the order of the quickstart: what one has built, the next one finds.
TARGETS = {"library": "src/libstrobe.a", "quickstart": "src/examples/quickstart", "command": "src/cli/strobe"}
OPTIONS_OF_OLD = "--buildtype=release -Dtests=false --wrap-mode=nofallback"  # where quickstart.sh does not name them in one line


def report(case, contender, metric, value, unit):
    print(json.dumps({"case": case, "contender": contender, "metric": metric, "value": value, "unit": unit}), flush=True)


def run(command, directory):
    """Returns the output, and the processor time of the command and its children in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    # A cache of the compiler would answer for it.
    output = subprocess.run(command, cwd=directory, env={**os.environ, "CCACHE_DISABLE": "1"}, check=True, text=True,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return output, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def edges_of(build, target):
    counts = re.findall(r"^\[\d+/(\d+)\]", run(["ninja", "-n", target], build)[0], re.MULTILINE)
    return int(counts[-1]) if counts else 0


def costs(tree, build):
    """By case: processor seconds, edges."""
    named = re.search(r"^setup='(.*)'$", (tree / "src/quickstart.sh").read_text(), re.MULTILINE)
    options = (named[1] if named else OPTIONS_OF_OLD).split()
    measured = {"configure": (run(["meson", "setup", build, *options], tree)[1], 0)}
    for case, target in TARGETS.items():
        edges = edges_of(build, target)
        measured[case] = (run(["ninja", target], build)[1], edges)
    measured["all of them"] = tuple(map(sum, zip(*measured.values())))
    return measured


def last_release(root, directory):
    """The tree of the last release, unpacked, or None."""
    name = os.environ.get("STROBE_BENCH_RELEASE")
    if not name:
        tags = subprocess.run(["git", "tag", "--list", "v[0-9]*", "--sort=-version:refname"], cwd=root, capture_output=True, text=True).stdout.split()
        if not tags:
            print("skipped: last release (no tag v*; STROBE_BENCH_RELEASE can name a commit)", file=sys.stderr)
            return None
        name = tags[0]
    archive = subprocess.run(["git", "archive", name], cwd=root, check=True, stdout=subprocess.PIPE).stdout
    subprocess.run(["tar", "-x"], cwd=directory, check=True, input=archive)
    return pathlib.Path(directory)


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as builds, tempfile.TemporaryDirectory() as release_directory:
        release = last_release(root, release_directory)
        all_costs = {"strobe": costs(root, pathlib.Path(builds, "now"))}
        if release:
            all_costs["last release"] = costs(release, pathlib.Path(builds, "release"))
        for contender, measured in all_costs.items():
            for case, (seconds, edges) in measured.items():
                report(case, contender, "processor time", round(seconds, 1), "s")
                report(case, contender, "edges", edges, "")
        if release:
            for case, (seconds, _) in all_costs["strobe"].items():
                report(case, "strobe", "processor time / last release's", round(seconds / all_costs["last release"][case][0], 3), "")


if __name__ == "__main__":
    main()
