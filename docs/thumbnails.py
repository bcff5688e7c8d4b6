"""Thumbnails of the gallery: of a wide figure the first part, at a size at which it can be read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

#: width and height of a thumbnail
SIZE = (480, 320)
#: a column of pixels is blank if none of them is darker
BLANK = 245
#: parts of a figure are that much of its width apart
GAP = 0.0035


def cut_thumbnails(home: Path) -> None:
    """Draw the thumbnails of all figures in ``home`` anew, into its folder ``thumb``."""
    for figure in sorted(home.glob("sphx_glr_*_001.png")):
        thumbnail = home / "thumb" / figure.name.replace("_001", "_thumb")
        with Image.open(figure) as opened:
            first_part(opened.convert("RGB")).save(thumbnail)


def first_part(figure: Image.Image) -> Image.Image:
    """The figure up to the widest gap between parts that leaves about the shape of a thumbnail, on white."""
    figure = trimmed(figure)
    pixels = np.asarray(figure.convert("L"))
    height, width = pixels.shape
    wanted = height * SIZE[0] / SIZE[1]
    if width > 1.25 * wanted:
        blank = np.concatenate([[False], (pixels > BLANK).all(axis=0), [False]])
        begins, ends = np.flatnonzero(np.diff(blank.astype(int)) == 1), np.flatnonzero(np.diff(blank.astype(int)) == -1)
        gaps = np.where((begins > 0.65 * wanted) & (begins < 1.3 * wanted), ends - begins, 0)
        if gaps.max(initial=0) >= GAP * width:
            figure = trimmed(figure.crop((0, 0, int(begins[gaps.argmax()]), height)))
    figure.thumbnail(SIZE, Image.Resampling.LANCZOS)
    sheet = Image.new("RGB", SIZE, "white")
    sheet.paste(figure, ((SIZE[0] - figure.width) // 2, (SIZE[1] - figure.height) // 2))
    return sheet


def trimmed(figure: Image.Image) -> Image.Image:
    """Without its blank edges."""
    dark = np.asarray(figure.convert("L")) <= BLANK
    rows, columns = np.flatnonzero(dark.any(axis=1)), np.flatnonzero(dark.any(axis=0))
    if len(rows) == 0:
        return figure
    return figure.crop((int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1))
