"""``mtclust`` and ``python -m mtclust``: the command line, imported where Ctrl-C is already answered in one line."""

import sys


def main() -> int:
    """Run the command line (:func:`mtclust.app.cli.main`) and return the exit code."""
    try:
        from mtclust.app import cli

        return cli.main()
    except KeyboardInterrupt:
        print("mtclust: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
