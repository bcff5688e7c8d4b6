"""How a claim is judged: from differences between means, by one rule for all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from paper.experiments.protocols import CLEAR_ERRORS, CLEAR_NMI, Difference

HOLDS, DIFFERS, FAILS, OPEN = "holds", "differs", "does not hold", "not judged"

RULE = (
    "Every figure is computed from the tables beside this page, nothing is typed in. NMI are those without labels "
    f"unless a row says oracle.\n\nA difference counts as clear if it is larger than {CLEAR_ERRORS:g} standard errors "
    f"over the (paired) draws and than {CLEAR_NMI:g} NMI. A claim about several cases (jobs, fractions, methods) "
    "**holds** if it is clear in all of them, **does not hold** if in none, and **differs** if in some. A claim that "
    "there is no difference holds where the opposite is not clear. Cases with fewer than two draws are shown but not "
    "judged. Claims about exponents and shares state their limits beside the figures. Few draws make large standard "
    "errors: their number is on the page of each experiment. Reasons are ours, from what is known about the models; "
    "they are not computed."
)


@dataclass(frozen=True)
class Judged:
    """A claim of the paper with what we find."""

    number: str
    place: str
    text: str
    found: str
    verdict: str
    reason: str = ""


def verdict_of(cases: Sequence[bool]) -> str:
    """One verdict for all cases.

    Examples
    --------
    >>> verdict_of([True, True]), verdict_of([True, False]), verdict_of([False]), verdict_of([])
    ('holds', 'differs', 'does not hold', 'not judged')
    """
    if not cases:
        return OPEN
    if all(cases):
        return HOLDS
    return DIFFERS if any(cases) else FAILS


def all_positive(differences: dict[str, Difference]) -> str:
    """Verdict of "larger in every case"."""
    return verdict_of([found.sign > 0 for found in differences.values() if found.judged])


def all_negative(differences: dict[str, Difference]) -> str:
    """Verdict of "smaller in every case"."""
    return verdict_of([found.sign < 0 for found in differences.values() if found.judged])


def none_positive(differences: dict[str, Difference]) -> str:
    """Verdict of "not larger in any case"."""
    return verdict_of([found.sign <= 0 for found in differences.values() if found.judged])


def listed(differences: dict[str, Difference]) -> str:
    """The differences in words."""
    return "; ".join(f"{name}: {found}" for name, found in differences.items() if found.n) or "no rows"
