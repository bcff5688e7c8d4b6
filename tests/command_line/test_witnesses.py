"""k-means and a Gaussian mixture as witnesses of a clustering."""

import numpy as np
import pandas as pd
import scipy.sparse as sp

import mtclust
from mtclust.app.report.content import ReportInput, report_content
from mtclust.app.witnesses import Witness, doubt, witnesses
from mtclust.estimators.facts import Facts


def blobs(n=240, seed=0):
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % 3
    return 7.0 * np.eye(3)[truth] + rng.normal(size=(n, 3)), truth, np.arange(n) // 3 % 2


def test_witnesses_agree_on_clear_clusters_and_say_nothing():
    X, truth, tasks = blobs()
    found = witnesses(X, tasks, truth, 3)
    assert [witness.method for witness in found] == sorted(
        (witness.method for witness in found), key=lambda name: -next(w.score for w in found if w.method == name)
    )
    assert {witness.method.split(" ")[0] for witness in found} == {"k-means", "a"}
    assert len(found) == 3
    assert all(witness.agreement > 0.99 for witness in found)
    assert all(abs(witness.score - witness.ours) < 0.01 for witness in found)
    assert doubt(found) == ""


def test_a_witness_that_is_better_is_heard():
    X, truth, tasks = blobs()
    wrong = np.random.default_rng(0).permutation(truth)
    found = witnesses(X, tasks, wrong, 3)
    assert found[0].better
    assert found[0].agreement < 0.2
    assert "separates them better" in doubt(found)
    assert doubt(found) in Facts(3, 2, 240, 0.7, against=doubt(found)).headline("240 rows")


def test_nearly_the_same_clusters_are_no_contradiction():
    assert not Witness("k-means on all rows", 0.8, 0.6, 0.95).better
    assert Witness("k-means on all rows", 0.8, 0.6, 0.5).better
    assert str(Witness("k-means on all rows", 0.5, 0.6, 0.5)).endswith("no better (0.50 against 0.60)")


def test_many_rows_are_sampled_and_text_has_no_witnesses():
    X, truth, tasks = blobs(2400)
    assert witnesses(X, tasks, truth, 3)[0].agreement > 0.99
    assert witnesses(sp.csr_matrix(X), tasks, truth, 3) == []
    assert witnesses(X, tasks, np.zeros(2400, dtype=int), 1) == []
    assert len(witnesses(X, np.zeros(2400, dtype=int), truth, 3)) == 2


def test_headline_and_summary_name_the_witness():
    X, truth, tasks = blobs()
    frame = pd.DataFrame(X, columns=list("abc")).assign(shop=np.array(["x", "y"])[tasks])
    found = mtclust.cluster(frame, "shop", 3, kernel="linear")
    assert found.facts.against == ""
    found.model.labels_ = np.random.default_rng(0).permutation(truth)
    del found.__dict__["witnesses"]
    said = found.facts.against
    assert "separates them better" in said
    assert said in report_content(ReportInput.of(found))["headline"]
    assert said[1:] in " ".join(str(found.summary()).split())


def test_tiny_tasks_do_not_let_a_witness_contradict():
    X, truth, tasks = blobs(200)
    few = np.random.default_rng(1).normal(size=(7, 3)) + 7.0 * np.eye(3)[[0, 0, 1, 1, 2, 2, 0]]
    rows, codes = np.vstack([X, few]), np.r_[tasks, [2] * 6, 3]
    wrong = np.r_[truth, [1, 2, 0, 1, 2, 0], 1]  # right in the large tasks, at random in those of six rows and of one
    found = witnesses(rows, codes, wrong, 3)
    assert all(witness.agreement > 0.99 for witness in found)
    assert doubt(found) == ""
    assert witnesses(few[:6], np.arange(6) // 3, np.arange(6) % 2, 2) == []  # too few rows altogether


def test_agreement_counts_rows_not_tasks():
    X, truth, tasks = blobs(240)
    own = np.r_[truth[tasks == 0], np.repeat([0, 1, 2], 6)]  # right in the large task only
    rows = np.vstack([X[tasks == 0], X[tasks == 1][:18]])
    found = witnesses(rows, np.repeat([0, 1], [120, 18]), own, 3)
    assert all(witness.agreement > 0.8 for witness in found)


def test_what_is_no_better_than_noise_is_no_witness():
    assert not Witness("k-means on all rows", -0.6, -1.0, 0.1).better
    assert doubt([Witness("k-means on all rows", -0.6, -0.7, 0.1)]) == ""
