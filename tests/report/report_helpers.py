"""Tables with names that would do harm in a page that does not escape them."""

import csv

import numpy as np
import pandas as pd

SCRIPT = "<script>alert(1)</script>"
IMAGE = '"><img src=x onerror=alert(2)>'
CLOSING = "</script><script>alert(3)</script><!--"


def _write(path, rows):
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def write_shops(path):
    """Three clusters in every task, by two numbers and a category; names of everything are hostile."""
    rng = np.random.default_rng(0)
    rows = []
    for task in (SCRIPT, "Zürich", CLOSING):
        for i in range(30):
            c = i % 3
            first, second = rng.normal(scale=0.4, size=2) + 4 * np.array([c == 0, c == 1])
            day = np.datetime64("2021-01-01") + int(rng.integers(200))
            rows.append(
                {
                    "customer": f"{CLOSING}{i}",
                    "shop": task,
                    IMAGE: f"{first:.3f}",
                    "height_in_centimetres": f"{second:.3f}",
                    "colour": [IMAGE, "green", "blue & white"][c],
                    "day": str(day),
                }
            )
    return _write(path, rows)


def write_reviews(path):
    rng = np.random.default_rng(0)
    words = ["script alert onerror pasta cheese", "engine wheel brake clutch diesel"]
    rows = [
        {"site": site, "review": " ".join(rng.choice(words[i % 2].split(), 5)) + IMAGE * (i % 2)}
        for site in ("a", "b")
        for i in range(16)
    ]
    return _write(path, rows)


def hospitals_frame():
    """Two groups of thirty hospitals, each with its own two clusters that matter."""
    rng = np.random.default_rng(0)
    parts = []
    for number in range(60):
        truth = rng.integers(3, size=20)
        centres = np.eye(3, 6)[:, :: -1 if number >= 30 else 1] * 6
        part = pd.DataFrame(centres[truth] + rng.normal(size=(20, 6)), columns=list("abcdef"))
        parts.append(part.assign(hospital=f"Hospital No. {number:02d} of the Northern Region"))
    return pd.concat(parts, ignore_index=True)


def clinics_frame():
    rng = np.random.default_rng(0)
    truth = rng.choice(8, size=480, p=[0.2, 0.2, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1])
    centres = rng.normal(size=(8, 5)) * 5
    names = ["total_cholesterol_hdl_ratio", "systolic_blood_pressure", "age", "year", "long_term_glucose_average"]
    frame = pd.DataFrame(centres[truth] + rng.normal(size=(480, 5)), columns=names)
    frame["year"] = 2000 + np.rint(frame["year"]).astype(int)
    frame["seen"] = pd.Timestamp("2021-01-01") + pd.to_timedelta(rng.integers(300, size=480) + 60 * truth, unit="D")
    clinics = ["Aberdeen Royal Infirmary", "St Thomas", "Karolinska University Hospital"]
    return frame.assign(clinic=rng.choice(clinics, 480), sex=rng.choice(["f", "m"], 480))
