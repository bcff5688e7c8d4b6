"""Print the lowest versions that pyproject.toml allows, as constraints for pip.

python tools/lowest_versions.py > constraints.txt
"""

import re
import tomllib
from pathlib import Path

#: extras whose packages the tests use; the tools of development, and what the tests compare with, may be of any version
EXTRAS = ("plot", "cli", "report", "data", "dev")
TOOLS = {
    "pytest", "pytest-xdist", "pytest-cov", "hypothesis", "ruff", "mypy", "build", "pip-audit", "cvxpy-base",
    "check-jsonschema",
}  # fmt: skip

#: what the lowest versions were made for; later ones warn about what matplotlib 3.8 and scikit-learn 1.6 do
COMPANIONS = ("pyparsing<3.2", "pytest<9")


def lowest(requirements: list[str]) -> dict[str, str]:
    """Package → the version behind >=."""
    found = {}
    for requirement in requirements:
        match = re.fullmatch(r"([\w.-]+)(?:\[[\w,-]+\])?>=([\w.]+)", requirement.strip())
        if match and match[1] not in TOOLS:
            found[match[1]] = match[2]
    return found


def main() -> None:
    project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())["project"]
    optional = [item for extra in EXTRAS for item in project["optional-dependencies"][extra]]
    for name, version in sorted(lowest(project["dependencies"] + optional).items()):
        print(f"{name}=={version}")
    print("\n".join(COMPANIONS))


if __name__ == "__main__":
    main()
