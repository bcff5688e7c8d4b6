"""Which differences between tasks are worth a sentence."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest, fisher_exact

import mtclust
from mtclust.app.findings import differences


@pytest.mark.parametrize("own", [[1, 0, 0], [2, 0, 0], [2, 1, 0]])
def test_a_task_of_one_to_three_rows_is_no_finding(own):
    sizes = np.array([[15, 29, 46], [30, 34, 66], own])
    assert not [difference for difference in differences(sizes, range(3)) if difference.task == 2]


def test_a_task_that_lies_in_one_cluster_is_told_with_an_honest_interval():
    (found,) = [d for d in differences(np.array([[22, 78], [10, 0]]), [0]) if (d.task, d.cluster) == (1, 0)]
    share_at_least = binomtest(10, 10).proportion_ci(0.95, method="wilson").low
    assert found.low <= share_at_least / found.elsewhere
    assert found.low < 1 / 0.22 < found.high


def test_what_is_told_is_beyond_chance():
    rng = np.random.default_rng(0)
    told = 0
    for _ in range(200):
        rows = rng.integers(1, 60, size=4)
        sizes = np.array([rng.multinomial(n, [0.2, 0.3, 0.5]) for n in rows])  # the same shares everywhere
        told += bool(differences(sizes, range(sizes.shape[1])))
    assert told <= 20  # one in ten at most: intervals hold together with 95 %
    sizes = np.array([[40, 10], [60, 60], [55, 65]])
    first = differences(sizes, range(2))[0]
    here, there = sizes[first.task, first.cluster], np.delete(sizes, first.task, axis=0)[:, first.cluster].sum()
    table = [[here, sizes[first.task].sum() - here], [there, np.delete(sizes, first.task, axis=0).sum() - there]]
    assert fisher_exact(table).pvalue < 0.05 / 6


def test_a_level_that_a_cluster_lacks_is_not_told_as_what_it_is():
    rng = np.random.default_rng(0)
    kind = np.arange(90) % 3
    answers = np.where(kind == 0, "agree", rng.choice([f"other {k}" for k in range(12)], 90))
    frame = pd.DataFrame({"city": np.repeat(["x", "y"], 45), "answer": answers, "age": 30.0 + 20 * (kind == 0)})
    frame["age"] += rng.normal(size=90)
    found = mtclust.cluster(frame, "city", 2, kernel="linear")
    told = sorted(found.clusters["characterised_by"])
    assert any("answer = agree (100 %; others 0 %)" in line for line in told)
    assert any("less often answer = agree (0 %; others 100 %)" in line for line in told)
