#!/usr/bin/env python3
"""Holds chance.py to what chance_test.cc holds chance.h to: chance_test.py."""

import contextlib
import io
import math

import chance


def outside_of_binomial(trials, p, bounds):
    return sum(math.exp(math.lgamma(trials + 1) - math.lgamma(k + 1) - math.lgamma(trials - k + 1) + k * math.log(p)
                        + (trials - k) * math.log1p(-p)) for k in range(trials + 1) if not bounds[0] <= k <= bounds[1])


for trials in (1, 10, 100, 1000):
    for p in (0.001, 0.3, 0.9):
        bounds = chance.binomial_bounds(trials, p)
        assert outside_of_binomial(trials, p, bounds) <= chance.CHANCE_OF_ONE, (trials, p)
        assert bounds[0] <= trials * p <= bounds[1]
    bounds = chance.sum_bounds(trials * 0.3, trials * 0.21, 0.7)
    assert outside_of_binomial(trials, 0.3, bounds) <= chance.CHANCE_OF_ONE, trials
for mean in (0.01, 20):
    bounds = chance.poisson_bounds(mean)
    outside = sum(math.exp(k * math.log(mean) - mean - math.lgamma(k + 1)) for k in range(1000) if not bounds[0] <= k <= bounds[1])
    assert outside <= chance.CHANCE_OF_ONE, mean
# The same numbers as chance_test.cc has.
low, high = chance.binomial_bounds(10000, 0.3)
deviation = math.sqrt(2100)
assert abs(high - 3000 - 6.9 * deviation) < 0.2 * deviation and abs(low - 3000 + 6.9 * deviation) < 0.2 * deviation
with contextlib.redirect_stdout(io.StringIO()) as printed:
    chance.within(3000, (low, high), "an expected count")
assert printed.getvalue().startswith("CHANCE 1e-10 an expected count: 3000 in ["), printed.getvalue()
try:
    chance.within(3500, (low, high), "heads of a bent coin")
    raise AssertionError("a value outside must end the test")
except SystemExit as ended:
    assert "heads of a bent coin: 3500 is not in" in str(ended), ended
