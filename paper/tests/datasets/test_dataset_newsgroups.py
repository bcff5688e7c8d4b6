"""fetch_newsgroups_tasks: a tiny collection everywhere, the real one where it is."""

from __future__ import annotations

import codecs
import pickle
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import _twenty_newsgroups as sklearn_newsgroups

from paper.datasets import fetch_newsgroups_tasks
from paper.datasets import newsgroups as corpus
from paper.datasets.files import DataFile, content_hash
from paper.datasets.newsgroups import NEWSGROUP_TASKS

GROUPS = [*(group for task in NEWSGROUP_TASKS for group in task), "comp.graphics", "talk.religion.misc"]


def tiny_messages() -> dict[tuple[str, int], bytes]:
    rng = np.random.default_rng(0)
    words = np.array(["motors", "walking", "goals", "keys", "windows", "faith", "caf\xe9", "selling"])
    return {
        (group, int(number)): f"Subject: {group}\n\n{' '.join(rng.choice(words, 12))}\n".encode("latin-1")
        for group in GROUPS
        for number in rng.choice(99999, 10, replace=False)
    }


@pytest.fixture
def tiny(monkeypatch, no_data):
    """A collection of ten messages a group in place of the real one, as archive members."""
    messages = tiny_messages()
    parts = [p for (group, number), text in sorted(messages.items()) for p in (group.encode(), b"%d" % number, text)]
    monkeypatch.setattr(corpus, "_CONTENT", content_hash(parts))
    monkeypatch.setattr(corpus, "_FILES", tuple(DataFile(file.path, None, file.urls) for file in corpus._FILES))
    return {
        f"20news-bydate-{'test' if number % 3 else 'train'}/{group}/{number}": text
        for (group, number), text in messages.items()
    }


def equal(a, b) -> None:
    np.testing.assert_array_equal(a.rows, b.rows)
    np.testing.assert_array_equal(a.target, b.target)
    np.testing.assert_array_equal(a.data.toarray(), b.data.toarray())


def test_sources_give_the_same_draw(tiny, no_data, tmp_path, write_archive):
    write_archive(tmp_path / "one" / "20news" / "20news-bydate.tar.xz", tiny)
    backwards = {f"./{name}": tiny[name] for name in sorted(tiny, reverse=True)}
    write_archive(tmp_path / "two" / "20news" / "20news-bydate.tar.gz", {"./README": b"x", **backwards})
    one = fetch_newsgroups_tasks(0.5, seed=1, data_home=tmp_path / "one")
    assert len(one.rows) > 0
    equal(one, fetch_newsgroups_tasks(0.5, seed=1, data_home=tmp_path / "two"))


class Bomb:
    """What a hostile pickle looks like: loading it calls a function."""

    def __reduce__(self):
        return pytest.fail, ("a pickle was loaded",)


def test_what_scikit_learn_has_stored_is_not_loaded_for_it_is_a_pickle(no_data, tmp_path):
    home = tmp_path / "scikit_learn_data"  # SCIKIT_LEARN_DATA
    home.mkdir()
    name = sklearn_newsgroups._pkl_filepath(str(home), sklearn_newsgroups.CACHE_NAME)
    Path(name).write_bytes(codecs.encode(pickle.dumps(Bomb()), "zlib_codec"))
    with pytest.raises(FileNotFoundError, match="was not found"):
        fetch_newsgroups_tasks(0.5, download_if_missing=False)


def test_archive_is_downloaded_into_the_cache(tiny, no_data, server, write_archive, monkeypatch):
    url, directory = server
    write_archive(directory / "news.gz", tiny)
    file = DataFile("20news/20news-bydate.tar.gz", None, (f"{url}/news.gz",))
    monkeypatch.setattr(corpus, "_FILES", (corpus._FILES[0], file))
    assert fetch_newsgroups_tasks(0.5).n_tasks == 6
    assert [path.name for path in no_data.rglob("*") if path.is_file()] == ["20news-bydate.tar.gz"]


@pytest.mark.parametrize("damage", ["text", "missing", "truncated"])
def test_damaged_archive_is_an_error(tiny, no_data, write_archive, damage):
    name = next(iter(tiny))
    if damage == "text":
        tiny[name] += b"!"
    elif damage == "missing":
        del tiny[name]
    path = write_archive(no_data / "20news" / "20news-bydate.tar.xz", tiny)
    if damage == "truncated":
        path.write_bytes(path.read_bytes()[:-1000])
    with pytest.raises(ValueError, match=r"not the expected data set|broken archive"):
        fetch_newsgroups_tasks()


def test_missing_archive_says_what_to_do(no_data):
    with pytest.raises(FileNotFoundError, match=r"20news-bydate\.tar\.xz or .*tar\.gz was not found"):
        fetch_newsgroups_tasks(download_if_missing=False)


def test_target_counts_through_the_table(tiny, no_data, write_archive):
    write_archive(no_data / "20news" / "20news-bydate.tar.xz", tiny)
    news = fetch_newsgroups_tasks(0.5, remove=("headers",), vocabulary="words", weighting="counts")
    order = sorted(tiny_messages())
    for row, target, task in zip(news.rows, news.target, news.tasks):
        group = order[row][0]
        assert news.target_names[target] == group == NEWSGROUP_TASKS[task - 1][target % 3]
    assert np.bincount(news.target).tolist() == [5] * 18
    assert "café" in news.feature_names
    assert "walking" in news.feature_names
    assert "walk" in fetch_newsgroups_tasks(0.5).feature_names
    with pytest.raises(ValueError, match="remove has"):
        fetch_newsgroups_tasks(remove=("header",))
    with pytest.raises(ValueError, match="vocabulary must be"):
        fetch_newsgroups_tasks(vocabulary="all")


@pytest.mark.parametrize(
    "text",
    [
        "From: a\nSubject: b\n\nbody\n\nJim\n",
        "Subject: b\n\nIn article <1> x writes:\n> quoted\n| quoted\nanswer\n--\nJim\nRome",
        "one line",
        "a\n\n",
        "",
        "\n---\n",
        "h\n\n\n\nlast",
    ],
)
def test_parts_are_removed_as_sklearn_does(text):
    for remove in [("headers",), ("footers",), ("quotes",), ("footers", "headers", "quotes")]:
        expected = text
        if "headers" in remove:
            expected = sklearn_newsgroups.strip_newsgroup_header(expected)
        if "footers" in remove:
            expected = sklearn_newsgroups.strip_newsgroup_footer(expected)
        if "quotes" in remove:
            expected = sklearn_newsgroups.strip_newsgroup_quoting(expected)
        assert corpus.strip_message(text, remove) == expected


def test_real_collection(real_data):
    news = fetch_newsgroups_tasks(0.05, seed=0)
    assert news.n_tasks == 6
    assert np.bincount(news.target).sum() == news.data.shape[0] == 864
    np.testing.assert_allclose(np.sqrt(news.data.multiply(news.data).sum(axis=1)), 1)
    sizes = np.bincount(fetch_newsgroups_tasks(1.0, weighting="counts").target)
    np.testing.assert_array_equal(np.bincount(news.target), np.round(0.05 * sizes))
    assert sizes.sum() == 18846 - 973 - 628  # all but comp.graphics and talk.religion.misc
    # a change of NumPy's random stream or of the canonical order would show here
    assert news.rows[:5].tolist() == [3741, 3747, 3764, 3775, 3813]
    whole = fetch_newsgroups_tasks(0.05, min_df=0)
    assert whole.data.shape[1] == 26214
    larger = fetch_newsgroups_tasks(0.1, seed=0, n_components=100)
    assert larger.data.shape == (1725, 100)
    assert set(news.rows.tolist()) <= set(larger.rows.tolist())
