#!/usr/bin/env python3
"""Who is a worker, and who has one: beginning_test.py PROGRAM

No process that was to be a worker begins another one, and no program with more rights than its user is a worker or has one.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "readers"))
from checks import check, failures  # noqa: E402

TIMEOUT_S = 100
NOBODY = 65534


def check_forgotten_line(program):
    """The main that does not call RunWorkerIfAsked runs twice: in the program, and in what was to be the worker."""
    with tempfile.TemporaryDirectory() as directory:
        runs = pathlib.Path(directory) / "runs"
        run = subprocess.run([program, directory], capture_output=True, stdin=subprocess.DEVNULL, timeout=TIMEOUT_S,
                             env={**os.environ, "STROBE_TEST_RUNS": str(runs)})
        check(runs.read_bytes() == b"xx", "forgotten line: main has run %d times" % len(runs.read_bytes()))
        check(b"UNAVAILABLE" in run.stderr and b"RunWorkerIfAsked" in run.stderr, "forgotten line: the program is told: %r" % run.stderr)
        check(b"switched off" in run.stderr, "forgotten line: the other process has no profiler: %r" % run.stderr)


def check_more_rights(program):
    """Everybody may begin such a program, with any argument, environment and descriptor."""
    with tempfile.TemporaryDirectory() as directory:
        has_no_new_rights = "NoNewPrivs:\t1" in pathlib.Path("/proc/self/status").read_text()
        if os.getuid() != 0 or has_no_new_rights or os.statvfs(directory).f_flag & os.ST_NOSUID:
            print("skipped: more rights (only root makes such a program, and not where the file system gives none)")
            return
        os.chmod(directory, 0o755)
        copy = os.path.join(directory, "program")
        shutil.copy(program, copy)
        os.chmod(copy, 0o2755)
        begin = dict(capture_output=True, stdin=subprocess.DEVNULL, cwd="/", user=NOBODY, group=NOBODY, extra_groups=[], timeout=TIMEOUT_S)
        run = subprocess.run([copy, "--strobe-worker"], **begin)
        check(run.returncode == 1 and b"is no worker" in run.stderr, "more rights: is no worker: %r" % run)
        run = subprocess.run([copy, "/nonexistent"], **begin)
        check(b"FAILED_PRECONDITION" in run.stderr and b"more rights" in run.stderr, "more rights: has no worker: %r" % run)


def main():
    program = os.path.abspath(sys.argv[1])
    check_forgotten_line(program)
    check_more_rights(program)
    print("%d failures" % len(failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
