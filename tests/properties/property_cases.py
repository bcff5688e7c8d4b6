"""How many cases each property is tried on, and how these are counted.

In CI the cases are the same every time; ``MTCLUST_FUZZ=n`` draws n new ones in all, in the proportions of the table,
``MTCLUST_FUZZ_SEED=s`` the same ones again.
"""

import functools
import os
import time
from collections import Counter
from contextlib import contextmanager

from hypothesis import HealthCheck, given, seed, settings

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
    # together 500 uses of the public surface
    "public surface": 360,
    "hints": 40,
    "tables": 20,
    "refused": 80,
}
#: properties in parts that run side by side, each with seeds of its own
PARTS = {"public surface": 8, "tables": 4}
FUZZING = "MTCLUST_FUZZ" in os.environ

#: cases run so far, by property, and the CPU seconds of the slowest fit
run = Counter()
slowest = Counter()


def examples(name):
    """Cases of a property: those of CI, or its share of what ``MTCLUST_FUZZ`` asks for."""
    wanted = os.environ.get("MTCLUST_FUZZ")
    cases = CASES[name] if wanted is None else round(int(wanted) * CASES[name] / sum(CASES.values()))
    return max(1, round(cases / PARTS.get(name, 1)))


def holds(name, part=None, **strategies):
    """A property that must hold for all generated cases."""

    def decorate(check):
        @functools.wraps(check)
        def counted(*args, **kwargs):
            check(*args, **kwargs)
            run[name] += 1  # cases that do not meet an assumption do not count

        test = settings(
            max_examples=examples(name),
            deadline=None,
            derandomize=not FUZZING,
            database=None,
            print_blob=FUZZING,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
        )(given(**strategies)(counted))
        begin = os.environ.get("MTCLUST_FUZZ_SEED")
        if begin is not None or (part is not None and not FUZZING):
            test = seed(int(begin or 0) + (part or 0))(test)
        return test

    return decorate


@contextmanager
def timed():
    """The CPU seconds of a fit, kept for the summary."""
    begin = time.process_time()
    yield
    slowest["fit"] = max(slowest["fit"], time.process_time() - begin)
