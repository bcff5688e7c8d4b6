"""Data sets made of several tasks: bundled, downloaded and generated.

Files are looked for in ``data_home``, in the directory that the environment variable ``MTCLUST_DATA`` names and in the
cache; what is missing is downloaded, which needs ``pip install "mtclust[data]"``. Rows have one canonical order
whatever the source, checked by a hash of the content, so that a seed means the same draw everywhere.
"""

from mtclust.datasets._data import TaskData
from mtclust.datasets.digits import load_digits_tasks
from mtclust.datasets.newsgroups import fetch_newsgroups_tasks
from mtclust.datasets.pendigits import fetch_pendigits, fetch_pendigits_tasks
from mtclust.datasets.sentiment import fetch_sentiment_tasks
from mtclust.datasets.synthetic import make_gaussian_tasks, make_related_tasks

__all__ = [
    "TaskData",
    "fetch_newsgroups_tasks",
    "fetch_pendigits",
    "fetch_pendigits_tasks",
    "fetch_sentiment_tasks",
    "load_digits_tasks",
    "make_gaussian_tasks",
    "make_related_tasks",
]
