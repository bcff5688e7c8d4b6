"""A fit of rows in chunks on a local cluster of two processes against the same fit in memory.

    python benchmarks/dask_cluster.py                                   all parts; minutes
    python benchmarks/dask_cluster.py --rows 200000 --parts labels --out /tmp/quick

Parts: `default` (everything left open) and `labels` (everything given): the same labels? seconds and bytes. Bytes are
those that the workers' sockets wrote (up) and read (down) during the fit, whatever they were for; what one worker sends
to the other counts twice. Dask's work stealing, which moves whole chunks, is off.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from _tables import Rows, write_markdown
from mtclust import DMTRC

D, TASKS, CLUSTERS = 20, 10, 5
CHUNK = 50_000
SETTINGS = {
    "n_clusters": CLUSTERS, "kernel": "linear", "lambda1": 0.01, "lambda2": 0.01, "coupling": "full",
    "sizes": "balanced", "random_state": 0,
}  # fmt: skip
DEFAULT = {"n_clusters": CLUSTERS, "random_state": 0}
PARTS = ("default", "labels")
VALUES = ["memory_seconds", "seconds", "driver_cpu", "up_mb", "down_mb", "different"]


def block(number: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of overlapping clusters, tasks in random order."""
    rng = np.random.default_rng(0)
    centres, shifts = 0.6 * rng.normal(size=(CLUSTERS, D)), rng.normal(size=(TASKS, D))
    rng = np.random.default_rng([1, number])
    tasks = rng.integers(TASKS, size=n)
    return centres[rng.integers(CLUSTERS, size=n)] + shifts[tasks] + rng.normal(size=(n, D)), tasks


def table(n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    blocks = [block(k, CHUNK) for k in range(n_rows // CHUNK)]
    return np.concatenate([X for X, _ in blocks]), np.concatenate([tasks for _, tasks in blocks])


def chunked(n_rows: int) -> tuple[Any, Any]:
    """The same rows, made by the workers."""
    import dask
    import dask.array as da

    blocks = [dask.delayed(block, nout=2)(k, CHUNK) for k in range(n_rows // CHUNK)]
    X = da.concatenate([da.from_delayed(part[0], (CHUNK, D), dtype=float) for part in blocks])
    tasks = da.concatenate([da.from_delayed(part[1], (CHUNK,), dtype=int) for part in blocks])
    return X, tasks


def count_bytes() -> None:
    """At a worker: count what its sockets write and read."""
    from distributed.comm import tcp

    if hasattr(tcp, "counted"):
        return
    tcp.counted = {"up": 0, "down": 0}  # type: ignore[attr-defined]
    write, read = tcp.TCP.write, tcp.read_bytes_rw

    async def counted_write(self: Any, *arguments: Any, **options: Any) -> int:
        n = await write(self, *arguments, **options)
        tcp.counted["up"] += n  # type: ignore[attr-defined]
        return n

    async def counted_read(stream: Any, n: int) -> Any:
        tcp.counted["down"] += n  # type: ignore[attr-defined]
        return await read(stream, n)

    tcp.TCP.write, tcp.read_bytes_rw = counted_write, counted_read  # type: ignore[method-assign]


def bytes_counted() -> dict[str, int]:
    from distributed.comm import tcp

    return dict(getattr(tcp, "counted", {"up": 0, "down": 0}))


def measure(part: str, n_rows: int, client: Any) -> dict[str, Any]:
    """A fit on the cluster, and the same rows in memory."""

    def counted() -> dict[str, int]:
        parts = client.run(bytes_counted).values()
        return {f"{key}_mb": sum(part[key] for part in parts) for key in ("up", "down")}

    settings = DEFAULT if part == "default" else SETTINGS
    X, tasks = chunked(CHUNK)
    DMTRC(**SETTINGS).fit(X, tasks=tasks)  # workers import and load compiled code
    X, tasks = client.persist(chunked(n_rows))
    client.run(count_bytes)
    before, begin, cpu = counted(), time.perf_counter(), time.process_time()
    model = DMTRC(**settings).fit(X, tasks=tasks)
    values = {"seconds": time.perf_counter() - begin, "driver_cpu": time.process_time() - cpu}
    values |= {key: (n - before[key]) / 1e6 for key, n in counted().items()}
    rows, ids = table(n_rows)
    begin = time.perf_counter()
    whole = DMTRC(**settings).fit(rows, tasks=ids)
    values["memory_seconds"] = time.perf_counter() - begin
    return values | {"different": int((model.labels_.compute() != whole.labels_).sum())}


def main() -> None:
    import dask
    from dask.distributed import Client, LocalCluster

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--out", type=Path, default=Path("results/distributed"))
    options = parser.parse_args()
    rows = Rows(options.out / "runs.csv", ["part", "rows"], VALUES)
    dask.config.set({"distributed.scheduler.work-stealing": False})
    how = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0", "memory_limit": 0}
    for part in options.parts:
        if not rows.has(part=part, rows=options.rows):
            with threadpool_limits(1), LocalCluster(**how) as cluster, Client(cluster) as client:
                rows.add(part=part, rows=options.rows, **measure(part, options.rows, client))
    header = ["part", "rows", "s in memory", "s on Dask", "driver CPU s", "MB up", "MB down", "labels that differ"]
    lines = [[row["part"], row["rows"], *(row[name] for name in VALUES)] for row in rows.read()]
    notes = f"d = {D}, m = {TASKS}, C = {CLUSTERS}, chunks of {CHUNK} rows, tasks in random order."
    write_markdown(options.out / "table.md", header, lines, notes)


if __name__ == "__main__":
    main()
