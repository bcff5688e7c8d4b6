"""Comparison of models and values to the last bit."""

import io
import json
import os
import struct
import zipfile
from collections.abc import Mapping
from dataclasses import is_dataclass

import numpy as np
import scipy.sparse as sp

from mtclust.persistence.format import CHECKSUMS, MANIFEST

#: how many times the usual number of files is damaged; MTCLUST_DAMAGED=10 damages others and ten times as many
TIMES = int(os.environ.get("MTCLUST_DAMAGED", "1"))


def assert_same(a, b):
    """Same types, same values, same bits; numbers of numpy come back as plain ones."""
    a, b = (value.item() if isinstance(value, np.generic) else value for value in (a, b))
    assert type(a) is type(b)
    if isinstance(a, np.ndarray):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        if a.dtype.kind == "O":
            for x, y in zip(a.ravel(), b.ravel()):
                assert_same(x, y)
        else:
            assert a.tobytes() == b.tobytes()
    elif sp.issparse(a):
        assert a.shape == b.shape
        for part in ("data", "indices", "indptr"):
            assert_same(getattr(a, part), getattr(b, part))
    elif isinstance(a, Mapping):
        assert_same(list(a), list(b))
        assert_same(list(a.values()), list(b.values()))
    elif is_dataclass(a):
        assert_same(vars(a), vars(b))
    elif isinstance(a, list | tuple):
        assert len(a) == len(b)
        for x, y in zip(a, b):
            assert_same(x, y)
    elif isinstance(a, np.random.RandomState):
        assert_same(a.get_state(legacy=False), b.get_state(legacy=False))
    elif isinstance(a, float) and a != a:
        assert b != b
    elif isinstance(a, float):
        assert struct.pack("d", a) == struct.pack("d", b)  # 0.0 is not -0.0
    else:
        assert a == b


def rewritten(saved, change=None, members=None, **options):
    """A file with another manifest or other members, made with care: all checksums hold."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(saved)) as old, zipfile.ZipFile(out, "w", **options) as new:
        contents = {name: old.read(name) for name in old.namelist()} | (members or {})
        manifest = json.loads(contents.pop(MANIFEST))
        for name, content in contents.items():
            new.writestr(name, content)
        manifest[CHECKSUMS] = {info.filename: info.CRC for info in new.infolist()}
        if change is not None:
            change(manifest)
        new.writestr(MANIFEST, json.dumps(manifest).encode())
    return out.getvalue()


def rewrite_manifest(path, change):
    """Let ``change`` alter what a saved model says of itself; everything else stays, and all checksums hold."""
    path.write_bytes(rewritten(path.read_bytes(), change))


def forged(saved, name, change):
    """The file with another array; all checksums hold."""
    with zipfile.ZipFile(io.BytesIO(saved)) as old:
        array = np.lib.format.read_array(io.BytesIO(old.read(name)))
    content = io.BytesIO()
    np.lib.format.write_array(content, np.asarray(change(array)))
    return rewritten(saved, members={name: content.getvalue()})


def public(model):
    return {name: value for name, value in vars(model).items() if not name.startswith("_")}
