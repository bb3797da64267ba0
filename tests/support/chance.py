"""The bounds of chance.h for tests in Python: see there."""

import math

CHANCE_OF_ONE = 1e-10


def _reach(inside, outside, divergence):
    limit = math.log(2 / CHANCE_OF_ONE)
    if divergence(outside) < limit:
        return outside
    for _ in range(100):
        middle = (inside + outside) / 2
        if divergence(middle) < limit:
            inside = middle
        else:
            outside = middle
    return outside


def _entropy(x, y):
    return 0 if x == 0 else x * math.log(x / y)


def binomial_bounds(trials, p):
    """Successes of `trials` independent trials, each of probability `p`."""
    def divergence(share):
        return trials * (_entropy(share, p) + _entropy(1 - share, 1 - p))
    return trials * _reach(p, 0, divergence), trials * _reach(p, 1, divergence)


def poisson_bounds(mean):
    """Events of a Poisson process that has `mean` of them in the mean."""
    def divergence(count):
        return _entropy(count, mean) + mean - count
    return _reach(mean, 0, divergence), _reach(mean, 10 * mean + 100, divergence)


def sum_bounds(mean, variance, furthest):
    """The sum of independent values, none of which can be further than `furthest` from its expectation. (Bernstein.)"""
    limit = math.log(2 / CHANCE_OF_ONE)
    linear = furthest * limit / 3
    reach = linear + math.sqrt(linear * linear + 2 * variance * limit)
    return mean - reach, mean + reach


def within(value, bounds, what):
    """Ends the test if `value` is out of `bounds`. `what` says what was counted, and from which seed."""
    print("CHANCE %g %s: %g in [%g, %g]" % (CHANCE_OF_ONE, what, value, *bounds), flush=True)
    if not bounds[0] <= value <= bounds[1]:
        raise SystemExit("%s: %g is not in [%g, %g]" % (what, value, *bounds))
