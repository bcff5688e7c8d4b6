"""Sphinx configuration."""

import subprocess
import sys
from pathlib import Path

import mtclust

# the list of messages is read from the source at every build
_HERE = Path(__file__).parent
_LISTED = subprocess.run(
    [sys.executable, str(_HERE.parent / "tools" / "error_messages.py")], capture_output=True, text=True, check=True
)
(_HERE / "errors.md").write_text(_LISTED.stdout, encoding="utf-8")

project = "mtclust"
author = "the mtclust developers"
copyright = "2026, the mtclust developers"
release = version = mtclust.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx_gallery.gen_gallery",
]
sphinx_gallery_conf = {"examples_dirs": "../examples", "gallery_dirs": "gallery", "abort_on_example_error": True}
autosummary_generate = True
numpydoc_show_class_members = False
myst_enable_extensions = ["dollarmath"]
html_theme = "pydata_sphinx_theme"
exclude_patterns = ["_build", "gallery/*.ipynb", "gallery/*.py"]
suppress_warnings = ["config.cache"]
