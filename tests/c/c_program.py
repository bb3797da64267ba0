#!/usr/bin/env python3
"""c_program.py CHECKER COMMAND...: runs the program in C, and looks at the profiles that it leaves as a user would, with pprof.

CHECKER is readers/google_pprof.py, which finds the readers. COMMAND is the program, after what runs it where the system does not. It is run
again until it has been seen that each of its functions has a sample. Exit status 77 when pprof is not here.
"""
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "support"))
from until_seen import work_until  # noqa: E402


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
    """Returns the functions and labels that are not there, of those that need a sample."""
    check, has_line = checker.check, checker.has_line
    unseen = set()

    def see(is_seen, what):
        unseen.update(() if is_seen else (what,))

    top = ("-top", "-sample_index=cpu", "-nodecount=1000", "-nodefraction=0")
    of_main = pprof.report(first, *top)
    see(has_line(of_main, "work_in_main"), "work_in_main")
    see(has_line(of_main, "work_without_labels"), "work_without_labels")
    check(not has_line(of_main, "work_in_worker"), "the flush came before the worker: " + of_main)
    of_worker = pprof.report(second, *top, "-tagfocus=thread_name=^c worker$")
    see(has_line(of_worker, "work_in_worker"), "work_in_worker")
    labelled = pprof.report(first, *top, "-tagfocus=endpoint=^/pay$")
    see(has_line(labelled, "work_in_main"), "work_in_main with its label")
    check(not has_line(labelled, "work_without_labels"), "what had the label before: " + labelled)
    unlabelled = pprof.report(first, *top, "-tagignore=endpoint=^/pay$")
    check(not has_line(unlabelled, "work_in_main"), "what has the label: " + unlabelled)
    tags = pprof.report(first, "-tags", "-sample_index=cpu")
    see(has_line(tags, "shard:", "Total") and has_line(tags, ": 7"), "the number label")
    check(has_line(tags, ": c main"), "the thread's name: " + tags)
    tags = pprof.report(second, "-tags", "-sample_index=cpu")
    see(has_line(tags, ": /refund"), "the worker's label")
    check(not has_line(tags, ": /pay"), "the worker's label: " + tags)
    return unseen


def run_twice(command, directory):
    """The files of two sessions: by a text, which beats the environment, and by the environment."""
    by_text, by_environment = (os.path.join(directory, name) for name in ("text", "environment"))
    for path in (by_text, by_environment):
        os.mkdir(path)
    texts = profiles_of([*command, "--options"], by_text, STROBE_OUTPUT_DIRECTORY="elsewhere")
    return texts, profiles_of(command, by_environment, STROBE_OUTPUT_DIRECTORY="from-environment", STROBE_MAX_OVERHEAD="1")


def main(checker_path, command):
    checker = load(checker_path)
    command = [*command[:-1], os.path.abspath(command[-1])]  # it runs in other directories
    statuses, unseen_by_runs = [], []
    with tempfile.TemporaryDirectory(prefix="strobe_c_") as scratch:
        pprof = checker.Pprof(scratch)

        def run_once():
            with tempfile.TemporaryDirectory(prefix="strobe_c_") as directory:
                by_text, by_environment = run_twice(command, directory)
                checker.check(len(by_text) == 2 and all("c-profiles" in file for file in by_text), "profiles by the text: %s" % by_text)
                checker.check(len(by_environment) == 2 and all("from-environment" in file for file in by_environment),
                              "profiles by the environment: %s" % by_environment)
                if checker.failures:
                    return set()
                statuses.append(checker.main(by_text))
                if pprof.command is None:
                    return set()
                return check_contents(checker, pprof, *by_text) | check_contents(checker, pprof, *by_environment)

        def are_seen(unseen):
            unseen_by_runs.append(unseen)
            return bool(checker.failures) or not set.intersection(*unseen_by_runs)

        work_until(are_seen, run_once, "a sample of each function")
    return 1 if checker.failures else statuses[-1]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
