"""The page: template, style and script in one file that loads nothing and sends nothing."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Any

from mtclust.app.clustering import Clustering
from mtclust.app.report.content import report_content
from mtclust.util.system import require

#: colours of clusters; further clusters begin anew, told apart by the shape of their points
COLOURS = 8
#: and their shapes, as SVG paths around 0: with 8 colours and 5 shapes the first 40 clusters all look different
SHAPES = (
    "M0-4a4 4 0 1 1 0 8a4 4 0 1 1 0-8z",
    "M-3.5-3.5h7v7h-7z",
    "M0-4.6L4.4 3.4h-8.8z",
    "M0-4.8L4.8 0L0 4.8L-4.8 0z",
    "M-1.5-4.5h3v3h3v3h-3v3h-3v-3h-3v-3h3z",
)


def render_report(found: Clustering, row_names: Sequence[str] | None = None, command: str = "") -> str:
    """The report as one HTML text.

    Everything that comes from the data is escaped, by the template or, for the points, as JSON that cannot end its
    element; and the page's content security policy lets no other script than the report's own run.
    """
    template, content = _template(), report_content(found, row_names, command)
    script = _asset("report.js")
    data = {
        "tasks": content["tasks"],
        "clusters": content["cluster_names"],
        "views": content.pop("points"),
        "colours": COLOURS,
        "shapes": SHAPES,
    }
    markup, as_json = require("markupsafe", "report").Markup, require("jinja2", "report").utils.htmlsafe_json_dumps
    return template.render(
        content,
        colours=COLOURS,
        shapes=SHAPES,
        style=markup(_asset("report.css")),
        script=markup(script),
        script_hash="sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        data=as_json(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False),
    )


@cache
def _template() -> Any:
    jinja = require("jinja2", "report")
    environment = jinja.Environment(
        loader=jinja.PackageLoader("mtclust.app.report", "templates"),
        autoescape=True,
        undefined=jinja.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["breakable"] = _breakable
    return environment.get_template("report.html.jinja")


def _breakable(text: str) -> Any:
    """Escaped text that a browser may break after an underscore, but not before a per cent sign."""
    safe = require("markupsafe", "report")
    return safe.escape(text.replace(" %", "\u00a0%")).replace("_", safe.Markup("_<wbr>"))


@cache
def _asset(name: str) -> str:
    return (resources.files("mtclust.app.report") / "templates" / name).read_text(encoding="utf-8").strip() + "\n"
