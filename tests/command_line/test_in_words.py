"""Values, traits and columns in words, each by an example."""

import numpy as np
import pandas as pd
import pytest

from mtclust.app.cli import _named_right, word_or_shares
from mtclust.app.findings import Trait, typical_rows
from mtclust.app.tables.columns import Feature
from mtclust.app.tables.encoding import chances_of_company, last_word
from mtclust.app.tables.values import column_strings, date_of_days
from mtclust.app.words import (
    figure,
    kernel_in_words,
    percent,
    trait_in_words,
    traits_in_words,
    value_in_words,
)  # fmt: skip
from mtclust.util.messages import listing, on_command_line, option, shown_name, spelled_out
from mtclust.util.system import require

UP, DOWN = np.array([1.2]), np.array([-1.2])
LOYAL = Trait(Feature("segment = loyal", "category", column="segment"), DOWN, 0.0, 0.4, -0.9)
BUSINESS = Trait(Feature("segment = business", "category", column="segment"), UP, 0.9, 0.1, 0.8)


def test_figures_have_three_digits_that_matter():
    values = (12345.6, 0.01234, -3.14159, 0.0, 2e-9)
    assert [figure(value) for value in values] == ["12,346", "0.0123", "−3.14", "0", "2e−09"]


def test_only_none_is_no_per_cent_and_only_all_is_a_hundred():
    shares = (0.254, 0.004, 0.0, 0.9999, 0.0099, 0.995)
    assert [percent(share) for share in shares] == ["25 %", "0.4 %", "0 %", ">99.9 %", "1 %", "99.5 %"]


def test_means_are_in_the_units_of_the_table():
    assert value_in_words(Feature("income", "number", 40000, 10000, "€"), 0.5) == "45,000 €"
    assert value_in_words(Feature("year", "year", 2008, 0.8), 0.1) == "2008"
    assert [date_of_days(days) for days in (0.2, 365.0)] == ["1970-01-01", "1971-01-01"]


@pytest.mark.parametrize(
    ("feature", "effect", "inside", "outside", "said"),
    [
        (Feature("income", "number", 40000, 10000), 1.2, 1.0, -0.5, "higher income (50,000; others 35,000)"),
        (Feature("contract = part", "category", opposite="full"), -1.2, 0.0, 0.66, "full (100 %; others 34 %)"),
        (Feature("answer = agree", "category"), -1.2, 0.03, 0.7, "less often answer = agree (3 %; others 70 %)"),
        (Feature("note: late ↔ early", "topic", column="note"), -1.2, 0.1, 0.2, "note rather about early"),
    ],
)
def test_traits(feature, effect, inside, outside, said):
    assert trait_in_words(Trait(feature, np.array([effect]), inside, outside, effect)) == said


def test_of_a_category_the_level_is_said_that_a_cluster_has():
    assert traits_in_words([LOYAL, BUSINESS]) == trait_in_words(BUSINESS)


def test_the_last_word_of_the_name_of_a_column():
    assert [last_word(name) for name in ("customer_id", "customerID", "Postcode (home)")] == ["id", "id", "home"]


def test_a_coin_is_associated_with_a_column_whose_mean_or_spread_follows_it():
    rng = np.random.default_rng(0)
    coin, x, tasks = rng.integers(2, size=(200, 1)), rng.normal(size=(200, 1)), np.repeat([0, 1], 100)
    found = [chances_of_company([coin, y], tasks)[0] < 0.05 for y in (x, x + coin, x * (1 + 2 * coin))]
    assert found == [False, True, True]


def test_typical_rows_are_near_the_centre_of_their_cluster():
    X = np.array([[0.0], [1.0], [2.5], [10.0], [12.0], [12.5]])
    assert typical_rows(X, np.zeros(6, dtype=int), np.array([0, 0, 0, 1, 1, 1]), 2, most=1) == [[1], [4]]


def test_cells_are_what_a_person_would_write():
    times = pd.Series([pd.Timestamp("2024-03-01"), pd.Timestamp("2024-03-01 12:30"), None])
    assert column_strings(times).tolist() == ["2024-03-01", "2024-03-01 12:30:00", ""]
    assert column_strings(pd.Series([7, None])).tolist() == ["7", ""]


def test_clusters_that_are_named_by_their_most_frequent_class():
    truth, labels = np.array([0, 0, 1, 1]), np.array([0, 0, 0, 1])
    assert [_named_right(truth, labels, groups) for groups in (np.zeros(4), truth)] == [0.75, 1.0]


def test_words_and_shares_of_the_command_line():
    assert [word_or_shares(text) for text in ("balanced", "0.1", "0.05,0.5")] == ["balanced", 0.1, (0.05, 0.5)]


def test_names_are_shown_on_one_line_with_nothing_hidden():
    assert shown_name("north\nwest") == "north\\nwest"
    assert shown_name("measurements of station 1138", longest=15) == "measure…on 1138"
    assert [spelled_out(text) for text in ("gnp.\u202egod", "Zürich 東京")] == ["gnp.\\u202egod", "Zürich 東京"]
    assert [listing(names) for names in ("", "a", "abc", "abcdef")] == ["", "a", "a, b and c", "a, b, c, d and 2 more"]
    assert [kernel_in_words(kernel) for kernel in ("linear", "RBF 0.5")] == [
        "linear kernel",
        "RBF kernel of width 0.5",
    ]


def test_options_are_named_as_the_user_writes_them():
    def named():
        return option("text_column", "'review'"), option("keys"), option("new_tasks")

    assert named() == ("text_column='review'", "keys", "new_tasks=True")
    with on_command_line():
        assert named() == ("--text-column 'review'", "--key", "--new-task")


def test_a_package_that_is_not_there_is_named_with_the_way_to_install_it():
    with pytest.raises(ImportError, match=r'^no_module is needed here; .*: pip install "\.\[plot\]"$'):
        require("no_module", "plot")
