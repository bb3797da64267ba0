#!/usr/bin/env python3
"""c_program.py CHECKER COMMAND...: runs the program in C, and looks at the profiles that it leaves as a user would, with pprof.

CHECKER is readers/google_pprof.py, which finds the readers. COMMAND is the program, after what runs it where the system does not. Exit status
77 when pprof is not here.
"""
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile


def load(path):
    spec = importlib.util.spec_from_file_location("check", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def profiles_of(command, directory, **variables):
    """The profiles that the program leaves, oldest first."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("STROBE_")} | variables
    result = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, timeout=100)
    if result.returncode != 0:
        sys.exit(f"{command}: exit status {result.returncode}\n{result.stdout}{result.stderr}")
    return sorted(str(path) for path in pathlib.Path(directory).glob("*/*.pb.gz"))


def check_contents(checker, pprof, first, second):
    check, has_line = checker.check, checker.has_line
    top = ("-top", "-sample_index=cpu", "-nodecount=1000", "-nodefraction=0")
    of_main = pprof.report(first, *top)
    check(has_line(of_main, "work_in_main") and has_line(of_main, "work_without_labels"), "functions of main: " + of_main)
    check(not has_line(of_main, "work_in_worker"), "the flush came before the worker: " + of_main)
    of_worker = pprof.report(second, *top, "-tagfocus=thread_name=^c worker$")
    check(has_line(of_worker, "work_in_worker"), "functions of the worker: " + of_worker)
    labelled = pprof.report(first, *top, "-tagfocus=endpoint=^/pay$")
    check(has_line(labelled, "work_in_main"), "what has the label: " + labelled)
    check(not has_line(labelled, "work_without_labels"), "what had the label before: " + labelled)
    tags = pprof.report(first, "-tags", "-sample_index=cpu")
    check(has_line(tags, "shard:", "Total") and has_line(tags, ": 7"), "the number label: " + tags)
    check(has_line(tags, ": c main"), "the thread's name: " + tags)
    tags = pprof.report(second, "-tags", "-sample_index=cpu")
    check(has_line(tags, ": /refund") and not has_line(tags, ": /pay"), "the worker's label: " + tags)


def main(checker_path, command):
    checker = load(checker_path)
    command = [*command[:-1], os.path.abspath(command[-1])]  # it runs in other directories
    with tempfile.TemporaryDirectory(prefix="strobe_c_") as directory:
        by_text, by_environment, scratch = (os.path.join(directory, name) for name in ("text", "environment", "scratch"))
        for path in (by_text, by_environment, scratch):
            os.mkdir(path)
        # The text of the program beats the environment.
        files = profiles_of([*command, "--options"], by_text, STROBE_OUTPUT_DIRECTORY="elsewhere")
        checker.check(len(files) == 2 and all("c-profiles" in file for file in files), "profiles by the text: %s" % files)
        files += profiles_of(command, by_environment, STROBE_OUTPUT_DIRECTORY="from-environment", STROBE_MAX_OVERHEAD="1")
        checker.check(len(files) == 4 and all("from-environment" in file for file in files[2:]), "profiles by the environment: %s" % files)
        if checker.failures:
            return 1
        status = checker.main(files[:2])
        pprof = checker.Pprof(scratch)
        if pprof.command is None:
            return status
        for first, second in (files[:2], files[2:]):
            check_contents(checker, pprof, first, second)
        return 1 if checker.failures else status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
