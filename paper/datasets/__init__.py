"""The paper's data sets, downloaded; what is bundled or generated is in :mod:`mtclust.datasets`.

Files are looked for in ``data_home``, in the directory that the environment variable ``MTCLUST_DATA`` names and in the
cache; what is missing is downloaded, which needs ``pip install "mtclust[data]"``. Rows have one canonical order
whatever the source, checked by a hash of the content, so that a seed means the same draw everywhere.
"""

from paper.datasets.tasks import fetch_newsgroups_tasks, fetch_pendigits, fetch_pendigits_tasks, fetch_sentiment_tasks

__all__ = ["fetch_newsgroups_tasks", "fetch_pendigits", "fetch_pendigits_tasks", "fetch_sentiment_tasks"]
