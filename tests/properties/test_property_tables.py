"""From a table of any columns to its clusters, a page, a file and predictions, on generated tables."""

import warnings

import pytest
from property_cases import PARTS, holds, timed
from property_tables import table_uses

import mtclust


@pytest.mark.parametrize("part", range(PARTS["tables"]))
def test_every_table_is_clustered_described_saved_and_predicted(part, tmp_path):
    @holds("tables", part, use=table_uses())
    def works(use):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            table, task = use.table(tmp_path)
            with timed():
                found = mtclust.cluster(table, task, **use.options)
            n, C = len(use.frame), found.n_clusters
            assert len(found.labels) == n
            assert set(found.labels.to_list()) <= set(range(C))
            assert len(found.clusters) == C
            assert len(found.tasks) == len(use.names)
            assert len(found.least_sure(3)) == 3
            found = found.rename({0: "the <first>"})
            assert "the <first>" in str(found.summary())
            page = found.report(tmp_path / "page.html", stability=False).read_text()
            assert "the <first>" not in page  # what users write is shown, not run
            again, given = use.further(tmp_path)
            clusters = found.predict(again, given).to_list()
            found.save(tmp_path / "model")
            loaded = mtclust.load(tmp_path / "model")
            assert loaded.predict(again, given).to_list() == clusters
            assert len(loaded.clusters) == C

    works()
