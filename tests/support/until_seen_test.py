#!/usr/bin/env python3
"""Holds until_seen.py to what until_seen_test.cc holds until_seen.h to: until_seen_test.py."""

import until_seen


def ends(call):
    try:
        call()
    except SystemExit as ended:
        return str(ended)
    raise AssertionError("what never comes must end the test")


runs = []


def work():
    runs.append(len(runs))
    return runs[-1]


assert until_seen.work_until(lambda run: run == 5 and "seen", work, "the sixth run", patience_s=100) == "seen"
assert len(runs) == 6
assert ends(lambda: until_seen.work_until(lambda run: False, work, "nothing", patience_s=0)) == "not seen in 3 runs: nothing"
looks = []
assert until_seen.wait_until(lambda: looks.append(1) or len(looks) == 3, "the third look")
assert ends(lambda: until_seen.wait_until(lambda: [], "nothing", most_looks=2)) == "not seen in 2 looks: nothing"
