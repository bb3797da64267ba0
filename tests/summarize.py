#!/usr/bin/env python3
"""Counts the results of one `meson test` run: summarize.py CONFIGURATION BUILD_DIRECTORY.

Each case of a GoogleTest executable counts, and each other test once. Prints every failure's name and every skip with its reason on
stdout, and "PASSED FAILED SKIPPED CHANCE" on stderr: CHANCE is the sum of the probabilities that the checks state of failing by chance (lines
"CHANCE <probability> <what>", see support/chance.h).
"""
import json
import pathlib
import sys
import xml.etree.ElementTree as ElementTree


LAST_WORDS = 300  # characters of what a failed test has said


def lines_of(text):
    return [line.strip() for line in (text or "").splitlines() if line.strip()]


def skip_reason(text):
    """The last line a test wrote: by our convention its reason to skip."""
    return (lines_of(text) or ["no reason given"])[-1]


def last_words(test):
    """The end of what a failed test wrote, because the whole may be far above the summary, or not kept."""
    return " | ".join([*lines_of(test.get("stdout"))[-4:], *lines_of(test.get("stderr"))[-4:]])[-LAST_WORDS:]


def cases_of(xml_path):
    """(name, result, message) of each case in a GoogleTest report; result is one of passed, failed, skipped."""
    try:
        tree = ElementTree.parse(xml_path)
    except (ElementTree.ParseError, OSError):
        return
    for case in tree.iter("testcase"):
        name = f"{case.get('classname')}.{case.get('name')}"
        skipped = case.find("skipped")
        failure = case.find("failure")
        if failure is not None:
            yield name, "failed", " ".join((failure.get("message") or "").split())[:LAST_WORDS]
        elif skipped is not None:
            yield name, "skipped", " ".join((skipped.get("message") or skipped.text or "").split("\n")[1:]).strip()
        elif case.get("status") == "notrun" and ".DISABLED_" in name:
            continue  # the program that another case runs as its child
        elif case.get("status") == "notrun":
            yield name, "skipped", "not run"
        else:
            yield name, "passed", ""


def chance_of(text):
    """The sum of the probabilities that a test has stated."""
    return sum(float(line.split()[1]) for line in (text or "").splitlines() if line.startswith("CHANCE "))


def main():
    configuration, build = sys.argv[1], pathlib.Path(sys.argv[2])
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    chance = 0.0

    def count(result, name, message):
        counts[result] += 1
        if result != "passed":
            print(f"{'FAIL' if result == 'failed' else 'SKIP'} {configuration} {name}: {message or 'see above'}")

    logs = list((build / "meson-logs").glob("testlog*.json"))  # of one run; a wrapper is in the name
    if not logs:
        count("failed", "meson test", "left no log")
    for line in logs[0].read_text().splitlines() if logs else []:
        test = json.loads(line)
        name = test["name"].split(" / ")[-1]
        result = test["result"]
        chance += chance_of(test.get("stdout"))
        cases = list(cases_of(build / f"{name}.xml"))
        for case, case_result, message in cases:
            count(case_result, f"{name} {case}", message)
        if result == "SKIP":
            count("skipped", name, skip_reason(test.get("stdout") or test.get("stderr")))
        elif result in ("OK", "EXPECTEDFAIL"):
            if not cases:
                count("passed", name, "")
        elif not any(case_result == "failed" for _, case_result, _ in cases):
            # It crashed, ran out of time, or a sanitizer ended it: more than the report of its
            # cases can say.
            count("failed", name, f"{result.lower()}, exit status {test.get('returncode')}: {last_words(test)}")
    print(counts["passed"], counts["failed"], counts["skipped"], "%g" % chance, file=sys.stderr)


if __name__ == "__main__":
    main()
