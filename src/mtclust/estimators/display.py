"""How fitted estimators show themselves: ``summary()`` and the picture in notebooks."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import check_is_fitted

if TYPE_CHECKING:
    from mtclust.estimators.summary import Summary

#: no colours of text or page, so that it can be read on light and dark pages alike
_STYLE = """
.mtclust-summary {font-family: system-ui, sans-serif; font-size: 13px; margin: .6em 0; max-width: 60em;}
.mtclust-summary .scroll {overflow-x: auto;}
.mtclust-summary table {border-collapse: collapse; margin: .4em 0; font-size: inherit;}
.mtclust-summary td, .mtclust-summary th {padding: .15em .6em; text-align: left; vertical-align: top; border: none;
  background: none; color: inherit;}
.mtclust-summary thead th {border-bottom: 1px solid rgba(128, 128, 128, .5);}
.mtclust-summary th {white-space: nowrap;}
.mtclust-summary .sizes td, .mtclust-summary .sizes thead th {text-align: right; white-space: nowrap;}
.mtclust-summary .sizes .name {text-align: left;}
.mtclust-summary .careful {border-left: 3px solid #D55E00; padding: .1em .6em; margin: .4em 0;}
"""


class DisplayMixin:
    """Adds :meth:`summary` and, to scikit-learn's diagram in notebooks, what was found."""

    def summary(self) -> Summary:
        """What was clustered, what was chosen and why, what was found, and what to be careful about.

        Returns
        -------
        Summary
            ``print`` it; in a notebook it is a table.

        Examples
        --------
        >>> from mtclust import DSTC
        >>> X = [[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]]
        >>> DSTC(2, kernel="linear", lambda1=0.01, sizes="balanced", random_state=0).fit(X).summary()
        DSTC: 6 rows of 1 task in 2 clusters, linear kernel on 1 column
        <BLANKLINE>
        Chosen
          settings  kernel linear, criterion J, λ1 = λ2 = 0.01: set by the user
          sizes     'balanced': set by the user
        <BLANKLINE>
        Found
          separation  0.997 (1: clear-cut clusters, 0: no better than clusters of noise)
          objective   0.0219119 after 1 round
        <BLANKLINE>
        Rows per task and cluster
          task  rows  0  1
          0        6  3  3
        <BLANKLINE>
        Be careful
          ! Few rows: Task 0 has fewer than 5 rows per cluster; clusters there rest on very little.
        """
        from mtclust.estimators.summary import summarise

        check_is_fitted(self, "labels_")
        return summarise(self)

    # scikit-learn shows these two; which of them depends on the notebook

    def _repr_html_inner(self) -> str:
        return self._with_findings(super()._repr_html_inner())  # type: ignore[misc]

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        if "text/html" in bundle:
            bundle["text/html"] = self._with_findings(bundle["text/html"])
        return bundle

    def _with_findings(self, diagram: str) -> str:
        return diagram + summary_html(self.summary()) if hasattr(self, "labels_") else diagram


def summary_html(summary: Summary) -> str:
    """The summary as a piece of a page; every text in it is escaped."""
    facts = "".join(
        f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>"
        for name, text in [*summary.choices, *summary.findings]
    )
    left = {0, len(summary.header) - 1} if summary.header[-1].startswith("closest") else {0}
    names = ["", *summary.header[1:]]
    head = "".join(_cell("th", text, k in left) for k, text in enumerate(names))
    rows = "".join(
        "<tr>" + "".join(_cell("td", text, k in left) for k, text in enumerate(row)) + "</tr>" for row in summary.table
    )
    more = f"<p>and {summary.left_out} more tasks</p>" if summary.left_out else ""
    careful = "".join(f'<p class="careful">{escape(sentence)}</p>' for sentence in summary.concerns)
    return (
        f"<style>{_STYLE}</style>"
        f'<div class="mtclust-summary"><p><b>{escape(summary.title)}</b></p>{careful}<table>{facts}</table>'
        f'<details open><summary>Rows per task and cluster</summary><div class="scroll"><table class="sizes">'
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>{more}</details></div>"
    )


def _cell(tag: str, text: str, left: bool) -> str:
    name = ' class="name"' if left else ""
    return f"<{tag}{name}>{escape(text)}</{tag}>"
