"""fetch_newsgroups_tasks: a tiny collection everywhere, the real one where it is."""

from __future__ import annotations

import codecs
import pickle
import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import _twenty_newsgroups as sklearn_newsgroups
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from paper.datasets import fetch_newsgroups_tasks, tasks
from paper.datasets.files import DATA_VARIABLE, DataFile, content_hash
from paper.datasets.tasks import NEWSGROUP_TASKS
from paper.datasets.text import porter_stem

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
    records = [(group.encode(), b"%d" % number, text) for (group, number), text in sorted(messages.items())]
    monkeypatch.setattr(tasks, "MESSAGE_CONTENT", content_hash(records))
    monkeypatch.setattr(
        tasks, "MESSAGE_FILES", tuple(DataFile(file.path, None, file.url) for file in tasks.MESSAGE_FILES)
    )
    return {
        f"20news-bydate-{'test' if number % 3 else 'train'}/{group}/{number}": text
        for (group, number), text in messages.items()
    }


def equal(a, b) -> None:
    np.testing.assert_array_equal(a.rows, b.rows)
    np.testing.assert_array_equal(a.target, b.target)
    np.testing.assert_array_equal(a.data.toarray(), b.data.toarray())


def test_sources_give_the_same_draw(tiny, tmp_path, write_archive, monkeypatch):
    write_archive(tmp_path / "one" / "20news" / "20news-bydate.tar.xz", tiny)
    backwards = {f"./{name}": tiny[name] for name in sorted(tiny, reverse=True)}
    write_archive(tmp_path / "two" / "20news" / "20news-bydate.tar.gz", {"./README": b"x", **backwards})
    found = []
    for name in ("one", "two"):
        monkeypatch.setenv(DATA_VARIABLE, str(tmp_path / name))
        tasks.newsgroup_counts.cache_clear()
        found.append(fetch_newsgroups_tasks(0.5, seed=1))
    assert len(found[0].rows) > 0
    equal(*found)


class Bomb:
    """What a hostile pickle looks like: loading it calls a function."""

    def __reduce__(self):
        return pytest.fail, ("a pickle was loaded",)


def test_what_scikit_learn_has_stored_is_not_loaded_for_it_is_a_pickle(no_data, tmp_path, monkeypatch):
    monkeypatch.setattr(tasks, "MESSAGE_FILES", (DataFile("20news/x.tar.gz", None, "http://127.0.0.1:1/x"),))
    home = tmp_path / "scikit_learn_data"  # SCIKIT_LEARN_DATA
    home.mkdir()
    name = sklearn_newsgroups._pkl_filepath(str(home), sklearn_newsgroups.CACHE_NAME)
    Path(name).write_bytes(codecs.encode(pickle.dumps(Bomb()), "zlib_codec"))
    with pytest.raises(FileNotFoundError, match="was not found"):
        fetch_newsgroups_tasks(0.5)


def test_archive_is_downloaded_into_the_cache(tiny, no_data, server, write_archive, monkeypatch):
    url, directory = server
    write_archive(directory / "news.gz", tiny)
    file = DataFile("20news/20news-bydate.tar.gz", None, f"{url}/news.gz")
    monkeypatch.setattr(tasks, "MESSAGE_FILES", (tasks.MESSAGE_FILES[0], file))
    assert fetch_newsgroups_tasks(0.5).n_tasks == 6
    assert [path.name for path in no_data.rglob("*") if path.is_file()] == ["20news-bydate.tar.gz"]


@pytest.mark.parametrize("damage", ["text", "missing", "truncated"])
def test_damaged_archive_is_an_error(tiny, tmp_path, write_archive, monkeypatch, damage):
    name = next(iter(tiny))
    if damage == "text":
        tiny[name] += b"!"
    elif damage == "missing":
        del tiny[name]
    path = write_archive(tmp_path / "20news" / "20news-bydate.tar.xz", tiny)
    if damage == "truncated":
        path.write_bytes(path.read_bytes()[:-1000])
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path))
    with pytest.raises(ValueError, match=r"not the expected data set|broken archive"):
        fetch_newsgroups_tasks()


def test_target_counts_through_the_table(tiny, tmp_path, write_archive, monkeypatch):
    write_archive(tmp_path / "20news" / "20news-bydate.tar.xz", tiny)
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path))
    news = fetch_newsgroups_tasks(0.5, weighting="counts")
    messages = {key: text.decode("latin-1") for key, text in tiny_messages().items()}
    order = sorted(messages)
    for row, target, task in zip(news.rows, news.target, news.tasks):
        group = order[row][0]
        assert news.target_names[target] == group == NEWSGROUP_TASKS[task - 1][target % 3]
    assert np.bincount(news.target).tolist() == [5] * 18
    words = {word for row in news.rows for word in re.findall("[a-z]{2,}", messages[order[row]].lower())}
    assert news.data.shape[1] == len({porter_stem(word) for word in words - ENGLISH_STOP_WORDS})


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
    assert tasks.newsgroup_counts()[0].shape == (18846, 26214)
    larger = fetch_newsgroups_tasks(0.1, seed=0, n_components=100)
    assert larger.data.shape == (1725, 100)
    assert set(news.rows.tolist()) <= set(larger.rows.tolist())
