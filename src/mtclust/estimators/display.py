"""How fitted estimators show themselves in notebooks."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

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


def with_findings(model: Any, diagram: str) -> str:
    """scikit-learn's diagram of an estimator and, once it is fitted, what was found."""
    return diagram + summary_html(model.summary()) if hasattr(model, "labels_") else diagram


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
