#!/usr/bin/env python3
"""Runs a Go program that a library in C++ profiles, and sees whether it goes on.

  go_program.py LIBRARY

LIBRARY is what the program links. Skips, status 77, where there is no go tool. Runs for STROBE_TEST_SECONDS, 3 by default, without and with
wall sampling, and again until it has been sampled. A signal of the runtime's own that gets lost stalls the program, within a second at
worst, within minutes at best.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent.parent / "support"))
from until_seen import work_until  # noqa: E402

STALL_SECONDS = 100  # beyond what the program itself notices


def main():
    library = pathlib.Path(sys.argv[1]).resolve()
    go = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")
    if go is None:
        print("skipped: there is no go tool")
        sys.exit(77)
    seconds = float(os.environ.get("STROBE_TEST_SECONDS", "3"))
    with tempfile.TemporaryDirectory() as directory:
        environment = dict(os.environ, GOPATH=f"{directory}/path", GOFLAGS="", GO111MODULE="off",
                           GOTOOLCHAIN="local", CGO_ENABLED="1", STROBE_OUTPUT_DIRECTORY=f"{directory}/profiles",
                           CGO_LDFLAGS=f"-L{library.parent} -l:{library.name} -Wl,-rpath,{library.parent}")
        program = f"{directory}/program"
        if "HOME" not in environment:
            environment["GOCACHE"] = f"{directory}/cache"
        source = pathlib.Path(__file__).parent / "main.go"
        subprocess.run([go, "build", "-o", program, str(source)], env=environment, cwd=directory, check=True)
        for wall_hz in ("0", "10"):
            work_until(lambda samples: samples > 0, lambda wall_hz=wall_hz: samples_of(program, seconds, wall_hz, environment), "a sample")


def samples_of(program, seconds, wall_hz, environment):
    """How many samples a run has, which must end by itself."""
    try:
        run = subprocess.run([program, str(seconds), wall_hz], env=environment, text=True, capture_output=True, timeout=seconds + STALL_SECONDS)
    except subprocess.TimeoutExpired:
        sys.exit(f"wall {wall_hz} Hz: the program stands still")
    print(f"wall {wall_hz} Hz: {run.stdout}{run.stderr}")
    samples = re.search(r"samples (\d+)$", run.stdout, re.M)
    if run.returncode != 0 or samples is None:
        sys.exit(f"wall {wall_hz} Hz: status {run.returncode}")
    return int(samples[1])


main()
