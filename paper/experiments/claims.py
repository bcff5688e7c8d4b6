"""The page that goes through the paper's claims one by one: claim, our figures, verdict by a stated rule, reason."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from paper.experiments import load_experiment
from paper.experiments.claims_digits import balance_claims, complexity_claims, pendigits_claims
from paper.experiments.claims_text import newsgroups_claims, sentiment_claims, transfer_claims
from paper.experiments.driver import command, read_frame, read_pictures, unfinished
from paper.experiments.judgement import DIFFERS, FAILS, HOLDS, OPEN, RULE, Judged
from paper.experiments.page import Page, Section, write_page

_SOURCES = {
    "pendigits": pendigits_claims,
    "balance": balance_claims,
    "complexity": complexity_claims,
    "newsgroups": newsgroups_claims,
    "sentiment": sentiment_claims,
    "transfer": transfer_claims,
}


def judge_claims(frames: dict[str, Any]) -> dict[str, list[Judged]]:
    """Experiment → judged claims, for the experiments whose tables are there."""
    return {name: _SOURCES[name](frames) for name in _SOURCES if frames.get(name) is not None}


def write_claims(out: Path, *, quick: bool = False) -> Path:
    """Write ``claims.html`` and ``claims.md`` from the tables below ``out``; returns the path of the former."""
    frames = {name: read_frame(out, name) for name in _SOURCES}
    judged = judge_claims({name: frame for name, frame in frames.items() if frame is not None})
    sections = [_overview(judged), _counterparts(out)]
    for name, claims in judged.items():
        experiment = load_experiment(name)
        parts = [unfinished(experiment, out / name), *(_in_words(claim) for claim in claims)]
        text = "\n\n".join(filter(None, parts))
        sections.append(Section(experiment.title, text, pictures=read_pictures(out, name)))
    page = Page("The paper's claims, one by one", command("all", None, quick), RULE, sections)
    write_page(page, out, "claims")
    return out / "claims.html"


def _in_words(claim: Judged) -> str:
    found = "\n".join(f"- {item}" for item in claim.found.split("; "))
    parts = [f"**{claim.number}. {claim.text}** ({claim.place}): **{claim.verdict}**", found]
    return "\n\n".join([*parts, f"Why: {claim.reason}"] if claim.reason else parts)


def _overview(judged: dict[str, list[Judged]]) -> Section:
    claims = [claim for found in judged.values() for claim in found]
    counts = [
        f"{sum(claim.verdict == verdict for claim in claims)} × {verdict}" for verdict in (HOLDS, DIFFERS, FAILS, OPEN)
    ]
    rows = [(claim.number, claim.place, claim.text, f"**{claim.verdict}**") for claim in claims]
    text = f"{len(claims)} claims: {', '.join(counts)}. The figures behind each verdict are below."
    return Section("Overview", text, ("", "place in the paper", "the paper says", "verdict"), rows)


def _counterparts(out: Path) -> Section:
    """The paper's figures and tables in its order, and where ours are."""
    rows = []
    for name in _SOURCES:
        rows += [
            (picture.paper, f"`{name}/figures/{picture.stem}.png`")
            for picture in read_pictures(out, name)
            if picture.paper.startswith("Fig.")
        ]
        if name == "newsgroups" and read_pictures(out, name):
            rows.append(("Table 1: Task definition on the 20-newsgroups dataset.", f"`{name}/page.md`"))
    rows.sort(key=lambda row: (row[0].startswith("Table"), int(re.findall(r"\d+", row[0])[0])))
    return Section("Figures and tables of the paper", "By their captions.", ("the paper's", "ours"), rows)
