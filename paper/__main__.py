"""``python -m paper``: the paper's experiments, from a clone of the repository."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from mtclust.app.cli import run_command
from mtclust.exceptions import CommandError
from paper.experiments import EXPERIMENTS, load_experiment

_EXAMPLES = """\
examples:
  python -m paper reproduce pendigits --repeats 30      30 draws, as in the paper
  python -m paper reproduce all --quick --out try       a look at everything in a minute or two
  python -m paper reproduce all --jobs 2                everything, and a page that judges the paper's claims
  python -m paper reproduce pendigits --as-printed      the paper's letter beside it, on the same page

Data are found through MTCLUST_DATA, in the cache, or are downloaded. Rows are kept as they finish: an interrupted
command goes on where it was when it is given again. Rows of another version of mtclust do not count as finished.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return the exit code, as :func:`mtclust.app.cli.main` does."""
    program = argparse.ArgumentParser(prog="python -m paper", description="The experiments of the paper.")
    program.add_argument("--verbose", action="store_true", help="show the traceback of an error")
    parser = program.add_subparsers(dest="command", required=True, metavar="COMMAND").add_parser(
        "reproduce",
        help="rerun the experiments of the paper: tables, figures, a page",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    known = ", ".join(EXPERIMENTS)
    parser.add_argument("experiment", choices=(*EXPERIMENTS, "all"), metavar="EXPERIMENT", help=f"{known} or all")
    parser.add_argument("--repeats", type=int, metavar="N", help="draws of the data (default: the experiment's own)")
    parser.add_argument("--quick", action="store_true", help="one tiny draw, few methods: to see that it works")
    parser.add_argument(
        "--as-printed", dest="protocol", action="store_const", const="as printed", default="ours",
        help="instead the letter of the paper on pendigits: its solver, scales and grids, chosen with labels (an hour)",
    )  # fmt: skip
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes (default 1)")
    parser.add_argument(
        "--out", type=Path, metavar="DIR",
        help="results go to DIR/EXPERIMENT (default results/reproduce, with --quick results/quick)",
    )  # fmt: skip
    parser.add_argument("--page-only", action="store_true", help="run nothing; draw figures and pages from the rows")
    parser.set_defaults(run=run)
    return run_command(program, arguments)


def run(options: argparse.Namespace) -> None:
    for name, value in (("--repeats", options.repeats), ("--jobs", options.jobs)):
        if value is not None and value < 1:
            raise CommandError(f"{name} must be at least 1; got {value}.")
    out = options.out or Path("results") / ("quick" if options.quick else "reproduce")
    names = EXPERIMENTS if options.experiment == "all" else (options.experiment,)
    experiments = {name: load_experiment(name) for name in names}
    from paper.experiments.driver import run_experiment, write_report

    pictures = {}
    for name, experiment in experiments.items():
        if options.page_only:
            pictures[name] = write_report(experiment, out / name)
        else:
            how = {"quick": options.quick, "protocol": options.protocol, "n_jobs": options.jobs}
            pictures[name] = run_experiment(experiment, out, repeats=options.repeats, **how)
        print(f"{name}: {out / name / 'page.md'}")
    if options.experiment == "all":
        from paper.experiments.claims import write_claims

        print(f"claims: {write_claims(out, pictures, quick=options.quick)}")


if __name__ == "__main__":
    sys.exit(main())
