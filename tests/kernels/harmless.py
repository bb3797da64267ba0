#!/usr/bin/env python3
"""What a system lacks costs a clear line, and neither the program nor the end: runs programs with Strobe, where it may not work.

  harmless.py HOW BUILD     HOW: library, library_worker, record, record_worker, record_alloc, record_perf, top, top_machine

A recorded program does and says what it does alone, or is refused by a line of the command's before it begins. If no profile
is there at the end, a line says why. Nothing ends by a signal, or takes longer than LIMIT_S.
"""
import glob
import os
import subprocess
import sys
import tempfile

LIMIT_S = 200  # an emulated CPU takes most of a minute
STATUS = 3
PROGRAM = ["sh", "-c", f"i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; echo ran; exit {STATUS}"]
FLAGS = {"record": [], "record_worker": ["--worker"], "record_alloc": ["--alloc"], "record_perf": ["--perf"]}


def run(command, **environment):
    print("$", *command, flush=True)
    result = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=LIMIT_S,
                            env={**os.environ, **environment})
    print(f"status {result.returncode}\n{result.stdout}{result.stderr}", flush=True)
    if result.returncode < 0:
        sys.exit(f"ended by signal {-result.returncode}")
    return result


def gives_reason(result):
    """The command says why it did nothing. Without /proc, that is the reason."""
    lines = [line for line in result.stderr.splitlines() if line.startswith("strobe: ")]
    return lines and (os.path.exists("/proc/self") or any("/proc" in line for line in lines))


def library(build, folder, **environment):
    result = run([f"{build}/tests/worker/worker_program", folder, "0.5", "stop"], **environment)
    if not glob.glob(f"{folder}/*.pb.gz") and not result.stderr.strip():
        sys.exit("no profile, and no reason")
    if result.returncode != 0 and not result.stderr.strip():
        sys.exit("an error without a reason")


def record(build, folder, how):
    profile = f"{folder}/out.pb.gz"
    result = run([f"{build}/src/cli/strobe", "record", "--no-top", *FLAGS[how], "-o", profile, "--", *PROGRAM])
    ran = result.stdout == "ran\n" and result.returncode == STATUS
    refused = result.stdout == "" and result.returncode != 0 and gives_reason(result)
    if not ran and not refused:
        sys.exit("the program did not what it does alone")
    if ran and not os.path.exists(profile) and not gives_reason(result):
        sys.exit("no profile, and no reason")


def top(build, target):
    with subprocess.Popen(["sh", "-c", "while :; do :; done"], stdin=subprocess.DEVNULL) as busy:
        try:
            result = run([f"{build}/src/cli/strobe", "top", *(target or ["-p", str(busy.pid)]), "--duration", "1"])
        finally:
            busy.kill()
    if result.returncode != 0 and not gives_reason(result):
        sys.exit("no table, and no reason")


def main(how, build):
    with tempfile.TemporaryDirectory() as folder:
        if how.startswith("library"):
            library(build, folder, STROBE_WORKER="1" if how.endswith("worker") else "0")
        elif how.startswith("record"):
            record(build, folder, how)
        else:
            top(build, ["-a"] if how == "top_machine" else None)


main(*sys.argv[1:])
