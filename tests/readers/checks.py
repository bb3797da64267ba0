"""What a script of the tests has found wrong: each failure is printed at once, and kept."""
failures = []


def check(condition, what):
    if not condition:
        failures.append(what)
        print("FAILED: " + what)


def equal(found, expected, what):
    check(found == expected, "%s: %.300r, not %.300r" % (what, found, expected))
