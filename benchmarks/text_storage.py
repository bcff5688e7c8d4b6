"""The same documents stored in several ways, clustered with everything left open: do the labels depend on the storage?

    MTCLUST_DATA=/path/to/data python benchmarks/text_storage.py

Four tasks of 20 Newsgroups with four topics each, as tf-idf weights of words (sparse)
and as weights of their leading 100, 200 and 400 directions (dense). NMI is the mean over tasks, pooled ARI that of all
rows, which drops where ids differ between tasks.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from time import process_time

import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import adjusted_rand_score

import _one_thread  # noqa: F401  before any library that has threads
import _tables_read as read
from _tables import write_markdown
from mtclust import DMTRC
from mtclust.metrics import macro_nmi

DIRECTIONS = (100, 200, 400)


def documents(per_group: int, seed: int) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Texts, topics and tasks."""
    rng = np.random.default_rng(seed)
    texts, y, tasks = [], [], []
    for topic, groups in enumerate(read.NEWSGROUPS):
        for task, group in enumerate(groups):
            found = read.messages()[group]
            rows = np.sort(rng.choice(len(found), min(per_group, len(found)), replace=False))
            texts += [found[row] for row in rows]
            y += [topic] * len(rows)
            tasks += [task] * len(rows)
    return texts, np.array(y), np.array(tasks)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--per-group", type=int, nargs="+", default=[40, 200], help="documents of every newsgroup")
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("results/text_storage"))
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    lines = []
    for per_group in args.per_group:
        for seed in range(args.draws):
            texts, y, tasks = documents(per_group, seed)
            words = TfidfVectorizer(stop_words="english", sublinear_tf=True, min_df=3).fit_transform(texts)
            stored = {f"sparse, {words.shape[1]} words": words}
            stored |= {f"{k} directions": TruncatedSVD(k, random_state=0).fit_transform(words) for k in DIRECTIONS}
            for name, X in stored.items():
                before = process_time()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # that a choice is uncertain is no news here
                    labels = DMTRC(len(read.NEWSGROUPS)).fit(X, tasks=tasks).labels_
                seconds = process_time() - before
                nmi, ari = macro_nmi(y, labels, tasks), adjusted_rand_score(y, labels)
                lines.append((len(y), seed, name, f"{nmi:.3f}", f"{ari:.3f}", f"{seconds:.1f}"))
    header = ("documents", "draw", "stored as", "NMI", "pooled ARI", "CPU s")
    write_markdown(args.out / "table.md", header, lines, "DMTRC(4), everything else left open.")


if __name__ == "__main__":
    main()
