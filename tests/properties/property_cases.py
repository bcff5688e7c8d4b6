"""How many cases each property is tried on, and how these are counted.

In CI the cases are the same every time; ``MTCLUST_FUZZ=n`` draws n new ones in all, in the proportions of the table.
"""

import functools
import os
from collections import Counter

from hypothesis import HealthCheck, given, settings

#: cases in CI by property; the ones that fit a model take most of the time
CASES = {
    "assignment": 800,
    "exchange": 400,
    "size bounds": 600,
    "alignment": 300,
    "task index": 400,
    "coupling": 300,
    "saved extra": 100,
    "fitted model": 240,
    "given labels": 200,
    "exact change of data": 60,
    "container": 60,
    "single precision": 60,
    "parallel": 20,
    "public surface": 100,
}

#: cases run so far, by property
run = Counter()


def examples(name):
    """Cases of a property: those of CI, or its share of what ``MTCLUST_FUZZ`` asks for."""
    wanted = os.environ.get("MTCLUST_FUZZ")
    return CASES[name] if wanted is None else max(1, round(int(wanted) * CASES[name] / sum(CASES.values())))


def holds(name, **strategies):
    """A property that must hold for all generated cases."""

    def decorate(check):
        @functools.wraps(check)
        def counted(*args, **kwargs):
            check(*args, **kwargs)
            run[name] += 1  # cases that do not meet an assumption do not count

        fuzz = "MTCLUST_FUZZ" in os.environ
        return settings(
            max_examples=examples(name),
            deadline=None,
            derandomize=not fuzz,
            database=None,
            print_blob=fuzz,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
        )(given(**strategies)(counted))

    return decorate
