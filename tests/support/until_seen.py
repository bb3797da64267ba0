"""The waits of until_seen.h for tests in Python: see there."""
import time

# The most time that runs of a program take until something has been seen in one of them, and the fewest runs.
PATIENCE_S = 60
LEAST_RUNS = 3
# The most times that a test that waits looks for something, PAUSE_S or more apart.
PATIENCE_LOOKS = 6000
PAUSE_S = 0.01


def wait_until(seen, what, most_looks=PATIENCE_LOOKS):
    """Sleeps until seen() returns something true, and returns that. Ends the test if it does not by then."""
    for _ in range(most_looks):
        result = seen()
        if result:
            return result
        time.sleep(PAUSE_S)
    raise SystemExit("not seen in %d looks: %s" % (most_looks, what))


def work_until(seen, work, what, patience_s=PATIENCE_S):
    """Calls work() until seen(what it returns) returns something true, and returns that. Ends the test if it does not by then.

    For what a run of a program need not show, such as a sample in one function: each run may add to what has been seen.
    """
    begin_s, runs = time.monotonic(), 0
    while runs < LEAST_RUNS or time.monotonic() - begin_s < patience_s:
        result = seen(work())
        if result:
            return result
        runs += 1
    raise SystemExit("not seen in %d runs: %s" % (runs, what))
