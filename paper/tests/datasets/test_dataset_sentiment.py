"""fetch_sentiment_tasks: a tiny data set everywhere, the real one where it is."""

from __future__ import annotations

import numpy as np
import pytest

from paper.datasets import fetch_sentiment_tasks, tasks
from paper.datasets.files import DATA_VARIABLE, DataFile, content_hash


@pytest.fixture
def tiny(monkeypatch, no_data):
    """Ten reviews of each kind in place of the real ones, as archive members."""
    rng = np.random.default_rng(0)
    terms = np.array(["good", "not_good", "a:b", "café", "dull"])
    lines = {
        (domain, polarity): [
            " ".join(f"{term}:{rng.integers(1, 4)}" for term in rng.permutation(terms)[:3]) + f" #label#:{polarity}"
            for _ in range(10)
        ]
        for domain in tasks.DOMAINS
        for polarity in tasks.POLARITIES
    }
    reviews = sorted((domain, polarity, line.encode()) for (domain, polarity), many in lines.items() for line in many)
    records = [(d.encode(), p.encode(), line) for d, p, line in reviews]
    monkeypatch.setattr(tasks, "REVIEW_CONTENT", content_hash(records))
    monkeypatch.setattr(
        tasks, "REVIEW_FILES", tuple(DataFile(file.path, None, file.url) for file in tasks.REVIEW_FILES)
    )
    return lines


def members(lines, end="\n", prefix="processed_acl/"):
    return {f"{prefix}{d}/{p}.review": (end.join(many) + end).encode() for (d, p), many in lines.items()}


def test_sources_give_the_same_draw(tiny, tmp_path, write_archive, monkeypatch):
    write_archive(tmp_path / "one" / "sentiment" / "processed_acl.tar.xz", members(tiny))
    other = {key: many[::-1] for key, many in reversed(tiny.items())}
    unlabelled = {"processed_acl/books/unlabeled.review": b"dull:1 #label#:positive\n"}
    content = {**unlabelled, **members(other, "\r\n", "./x/")}
    write_archive(tmp_path / "two" / "sentiment" / "processed_acl.tar.gz", content)
    found = []
    for name in ("one", "two"):
        monkeypatch.setenv(DATA_VARIABLE, str(tmp_path / name))
        tasks.review_counts.cache_clear()
        found.append(fetch_sentiment_tasks(0.5, seed=3))
    one, two = found
    np.testing.assert_array_equal(one.rows, two.rows)
    np.testing.assert_array_equal(one.data.toarray(), two.data.toarray())


def test_counts_are_those_of_the_lines(tiny, tmp_path, write_archive, monkeypatch):
    write_archive(tmp_path / "sentiment" / "processed_acl.tar.xz", members(tiny))
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path))
    reviews = fetch_sentiment_tasks(1.0, weighting="counts")
    terms = ["a:b", "café", "dull", "good", "not_good"]
    lines = sorted((domain, polarity, line.encode()) for (domain, polarity), many in tiny.items() for line in many)
    for (domain, polarity, line), row, target, task in zip(
        lines, reviews.data.toarray(), reviews.target, reviews.tasks, strict=True
    ):
        assert (domain, polarity) == (task, reviews.target_names[target])
        tokens = [token.rsplit(":", 1) for token in line.decode().split(" ")[:-1]]
        assert dict(zip(terms, row, strict=True)) == {
            **dict.fromkeys(terms, 0),
            **{term: int(count) for term, count in tokens},
        }


def test_archive_without_checksum_is_downloaded_and_judged_by_content(
    tiny, no_data, server, write_archive, monkeypatch
):
    url, directory = server
    good = write_archive(directory / "good.gz", members(tiny))
    tiny["books", "positive"].pop()
    bad = write_archive(directory / "bad.gz", members(tiny))
    for path in (bad, good):
        file = DataFile("sentiment/processed_acl.tar.gz", None, f"{url}/{path.name}")
        monkeypatch.setattr(tasks, "REVIEW_FILES", (file,))
        if path == bad:
            with pytest.raises(ValueError, match="not the expected data set"):
                fetch_sentiment_tasks()
            assert [path for path in no_data.rglob("*") if path.is_file()] == []
        else:
            assert fetch_sentiment_tasks().n_tasks == 4
    assert [path.name for path in no_data.rglob("*") if path.is_file()] == ["processed_acl.tar.gz"]


def test_wrong_label_is_an_error(tiny, tmp_path, write_archive, monkeypatch):
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path))
    tiny["books", "positive"][0] = "good:1 #label#:negative"
    write_archive(tmp_path / "sentiment" / "processed_acl.tar.xz", members(tiny))
    monkeypatch.setattr(tasks, "check_content", lambda *_: None)
    with pytest.raises(ValueError, match="positive review ends with '#label#:negative'"):
        fetch_sentiment_tasks()


def test_real_reviews(real_data):
    reviews = fetch_sentiment_tasks(0.1, seed=0)
    assert reviews.data.shape[0] == 800
    for domain in ("books", "dvd", "electronics", "kitchen"):
        assert np.bincount(reviews.target[reviews.tasks == domain]).tolist() == [100, 100]
    np.testing.assert_allclose(np.sqrt(reviews.data.multiply(reviews.data).sum(axis=1)), 1)
    # a change of NumPy's random stream or of the canonical order would show here
    assert reviews.rows[:5].tolist() == [2, 8, 12, 25, 36]
    assert tasks.review_counts()[0].shape == (8000, 473856)
    larger = fetch_sentiment_tasks(0.3, seed=0, n_components=10)
    assert larger.data.shape == (2400, 10)
    assert set(reviews.rows.tolist()) <= set(larger.rows.tolist())
