"""Which chunk it is that cannot be read or used: damaged files, and rows that are no numbers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mtclust.distributed import chunk
from mtclust.distributed.engine import Engine
from mtclust.distributed.inputs import Table
from mtclust.exceptions import ClusterLostError

#: what errors about rows begin with, as opposed to those about parameters
_OF_ROWS = ("X ", "Input X")
_WAY_OUT = "If its file is damaged, write it anew; else drop, fill or rescale these rows."


@contextmanager
def chunks_named(engine: Engine, table: Table) -> Iterator[None]:
    """Say of an error about the rows, or of reading them, which chunk it is about; only then are all looked at."""
    try:
        yield
    except (ClusterLostError, MemoryError):
        raise
    except Exception as error:
        if type(error) in (ValueError, TypeError) and not str(error).startswith(_OF_ROWS):
            raise
        _name_chunk(engine, table, error)
        raise


def _name_chunk(engine: Engine, table: Table, error: Exception) -> None:
    reading = chunk.Reading(1, table.dtype, table.columns)
    for number, part in enumerate(table.parts):  # one by one: what cannot be read fails before it can be looked at
        where = f"chunk {number} of {len(table.parts)} (counted from 0)"
        try:
            (wrong,) = engine.gather([engine.step(chunk.unusable, part, reading)])
        except ClusterLostError:
            raise
        except Exception as reason:
            said = " ".join(f"{type(reason).__name__}: {reason}".split())
            raise OSError(f"X cannot be used: {where} cannot be read ({said}). {_WAY_OUT}") from error
        if wrong is not None:
            raise ValueError(f"X cannot be used: {where} has {wrong}. {_WAY_OUT}") from error
