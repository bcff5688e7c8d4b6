"""From messages to features: Porter's stems, which terms, which weights, how many dimensions."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.preprocessing import MaxAbsScaler
from threadpoolctl import threadpool_limits

from paper.datasets.files import scale_columns


def text_features(
    counts: Any, *, weighting: str = "tfidf", n_components: int | None = None, unit_range: str | None = None
) -> Any:
    """Features from the counts of the drawn rows, without terms that none of them has.

    ``weighting`` is "tfidf", sublinear tf × idf with rows of length 1 over the rows of all tasks together, as
    :class:`mtclust.text.TaskTfidf` has it, or "counts". ``n_components`` are principal components of all rows together,
    the paper's 100; without, terms, sparse. ``unit_range`` scales every column to [0, 1], as the paper says it does,
    "before PCA" or "after PCA".
    """
    if weighting not in ("tfidf", "counts"):
        raise ValueError(f'weighting must be "tfidf" or "counts"; got {weighting!r}.')
    if unit_range not in (None, "before PCA", "after PCA"):
        raise ValueError(f"unit_range must be None, 'before PCA' or 'after PCA'; got {unit_range!r}.")
    keep = np.flatnonzero(np.bincount(counts.indices, minlength=counts.shape[1]))
    X = sp.csr_array(counts[:, keep], dtype=np.float64)
    if weighting == "tfidf":
        X = sp.csr_array(TfidfTransformer(sublinear_tf=True).fit(X).transform(X, copy=False))
    if unit_range == "before PCA":  # a term is missing from some row: its smallest weight is 0
        X = sp.csr_array(MaxAbsScaler().fit_transform(X))
    if n_components is None:
        return X
    if n_components >= min(X.shape):
        raise ValueError(
            f"n_components={n_components} must be less than the number of rows and of terms; X is {X.shape}."
        )
    # ARPACK keeps X sparse and makes many small products, where threads cost far more than they give (10 s for .5 s on
    # a busy machine); one thread and a fixed start vector also give the same numbers everywhere
    with threadpool_limits(limits=1):
        components = PCA(n_components, svd_solver="arpack", random_state=0).fit_transform(X)
    return scale_columns(components) if unit_range == "after PCA" else components


# Porter's stemmer (M. F. Porter, An algorithm for suffix stripping, Program 14(3), 1980), as published. The paper's 20
# Newsgroups matrix was made of Porter stems; the algorithm is short and fixed, so that it stands here instead of a
# dependency.

# each rule: suffix, what replaces it; of the suffixes that fit the longest counts, whether or not its condition holds
_STEP2 = {
    "ational": "ate", "tional": "tion", "enci": "ence", "anci": "ance", "izer": "ize", "abli": "able", "alli": "al",
    "entli": "ent", "eli": "e", "ousli": "ous", "ization": "ize", "ation": "ate", "ator": "ate", "alism": "al",
    "iveness": "ive", "fulness": "ful", "ousness": "ous", "aliti": "al", "iviti": "ive", "biliti": "ble",
}  # fmt: skip
_STEP3 = {"icate": "ic", "ative": "", "alize": "al", "iciti": "ic", "ical": "ic", "ful": "", "ness": ""}
_STEP4_SHORT = ("al", "er", "ic", "ou", "ant", "ent", "ion", "ism", "ate", "iti", "ous", "ive", "ize")
_STEP4 = dict.fromkeys((*_STEP4_SHORT, "ance", "ence", "able", "ible", "ment", "ement"), "")
_PLAIN = re.compile(r"[a-z]{3,}")


def porter_stem(word: str) -> str:
    """The stem of a lower-case English word."""
    if not _PLAIN.fullmatch(word):
        return word
    word = _step1(word)
    word = _replace_suffix(word, _STEP2, more_than=0)
    word = _replace_suffix(word, _STEP3, more_than=0)
    word = _replace_suffix(word, _STEP4, more_than=1)
    return _step5(word)


def _shape(stem: str) -> str:
    """The word as c (consonant) and v (vowel); y is a vowel after a consonant."""
    shape = ""
    for letter in stem:
        is_vowel = letter in "aeiou" or (letter == "y" and shape.endswith("c"))
        shape += "v" if is_vowel else "c"
    return shape


def _measure(stem: str) -> int:
    """Porter's m: how often a vowel is followed by a consonant."""
    return _shape(stem).count("vc")


def _ends_double_consonant(word: str) -> bool:
    return len(word) > 1 and word[-1] == word[-2] and _shape(word)[-1] == "c"


def _ends_cvc(word: str) -> bool:
    return _shape(word).endswith("cvc") and word[-1] not in "wxy"


def _step1(word: str) -> str:
    # 1a: plurals
    if word.endswith(("sses", "ies")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith("ss"):
        word = word[:-1]
    # 1b: -eed, -ed, -ing
    if word.endswith("eed"):
        if _measure(word[:-3]) > 0:
            word = word[:-1]
    else:
        for suffix in ("ed", "ing"):
            if word.endswith(suffix) and "v" in _shape(word[: -len(suffix)]):
                word = _tidy(word[: -len(suffix)])
                break
    # 1c: final y
    if word.endswith("y") and "v" in _shape(word[:-1]):
        word = word[:-1] + "i"
    return word


def _tidy(word: str) -> str:
    """Restore the end of a word that has lost -ed or -ing."""
    if word.endswith(("at", "bl", "iz")):
        return word + "e"
    if _ends_double_consonant(word) and word[-1] not in "lsz":
        return word[:-1]
    if _measure(word) == 1 and _ends_cvc(word):
        return word + "e"
    return word


def _replace_suffix(word: str, rules: dict[str, str], more_than: int) -> str:
    suffix = max(filter(word.endswith, rules), key=len, default=None)
    if suffix is None:
        return word
    stem = word.removesuffix(suffix)
    # -ion goes only after s or t
    allowed = suffix != "ion" or stem.endswith(("s", "t"))
    return stem + rules[suffix] if allowed and _measure(stem) > more_than else word


def _step5(word: str) -> str:
    if word.endswith("e"):
        stem = word[:-1]
        measure = _measure(stem)
        if measure > 1 or (measure == 1 and not _ends_cvc(stem)):
            word = stem
    if _ends_double_consonant(word) and word.endswith("l") and _measure(word) > 1:
        word = word[:-1]
    return word
