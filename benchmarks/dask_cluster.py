"""A fit of rows in chunks on a local cluster of two processes against the same fit in memory.

    python benchmarks/dask_cluster.py                                   all parts; minutes
    python benchmarks/dask_cluster.py --rows 200000 --parts labels killed --out /tmp/quick

Parts: `default` (everything left open) and `labels` (everything given): the same labels? seconds and bytes; `killed`
(a worker killed in the middle of the third pass), `parquet` (a data set on disk that is larger than the memory of all
workers together). Bytes are those that the workers' sockets wrote (up) and read (down) between the ends of two passes,
whatever they were for; what one worker sends to the other counts twice. Dask's work stealing, which moves whole chunks,
is off.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from _tables import Rows, write_markdown
from mtclust import DMTRC
from mtclust.distributed.source import ChunkedRows

D, TASKS, CLUSTERS = 20, 10, 5
CHUNK = 50_000
SETTINGS = {
    "n_clusters": CLUSTERS, "kernel": "linear", "lambda1": 0.01, "lambda2": 0.01, "coupling": "full",
    "sizes": "balanced", "random_state": 0,
}  # fmt: skip
DEFAULT = {"n_clusters": CLUSTERS, "random_state": 0}
PARTS = ("default", "labels", "killed", "parquet")
VALUES = ["seconds", "driver_cpu", "up_mb", "down_mb", "near", "different", "disk_mb", "limit_mb"]


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


class Watch:
    """Seconds and bytes from the end of one pass to the end of the next."""

    def __init__(self, client: Any, kill_at: str = "") -> None:
        self.client, self.kill_at = client, kill_at
        self.stages: list[dict[str, Any]] = []
        client.run(count_bytes)

    def __enter__(self) -> Watch:
        self.methods = {name: getattr(ChunkedRows, name) for name in ("moments", "relabel", "_overview", "_near")}
        self.begin, self.cpu, self.before, self.near = time.perf_counter(), time.process_time(), self._total(), 0
        watch, plain = self, self.methods

        def moments(source: ChunkedRows, *arguments: Any) -> Any:
            found = plain["moments"](source, *arguments)
            watch.mark("sums and Gram matrices")
            return found

        def relabel(source: ChunkedRows, *arguments: Any) -> Any:
            changed = plain["relabel"](source, *arguments)
            watch.mark(f"pass {source.n_passes}")
            return changed

        def overview(source: ChunkedRows, *arguments: Any) -> Any:
            if watch.kill_at and source.n_passes == int(watch.kill_at):
                os.kill(next(iter(watch.client.run(os.getpid).values())), signal.SIGKILL)
                watch.kill_at = ""
            return plain["_overview"](source, *arguments)

        def near(source: ChunkedRows, *arguments: Any) -> Any:
            found = plain["_near"](source, *arguments)
            watch.near += sum(len(rows[0]) for rows in found.values())
            return found

        self._put({"moments": moments, "relabel": relabel, "_overview": overview, "_near": near})
        return self

    def __exit__(self, *error: Any) -> None:
        self._put(self.methods)

    def _put(self, methods: dict[str, Any]) -> None:
        for name, method in methods.items():
            setattr(ChunkedRows, name, method)

    def _total(self) -> dict[str, int]:
        parts = self.client.run(bytes_counted).values()
        return {key: sum(part[key] for part in parts) for key in ("up", "down")}

    def mark(self, stage: str) -> None:
        seconds, cpu = time.perf_counter() - self.begin, time.process_time() - self.cpu
        total = self._total()
        moved = {f"{key}_mb": (total[key] - self.before[key]) / 1e6 for key in total}
        self.stages.append({"stage": stage, "seconds": seconds, "driver_cpu": cpu, "near": self.near or "", **moved})
        self.begin, self.cpu, self.before, self.near = time.perf_counter(), time.process_time(), total, 0


def two_workers(memory: str | int = 0) -> Any:
    import dask
    from dask.distributed import LocalCluster

    dask.config.set({"distributed.scheduler.work-stealing": False})
    return LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", memory_limit=memory)


def warm_up(client: Any) -> None:
    """Workers import and load compiled code."""
    X, tasks = chunked(CHUNK)
    DMTRC(**SETTINGS).fit(X, tasks=tasks)


def run_labels(part: str, n_rows: int, client: Any, rows: Rows) -> None:
    X, tasks = table(n_rows)
    settings = DEFAULT if part == "default" else SETTINGS
    begin = time.perf_counter()
    whole = DMTRC(**settings).fit(X, tasks=tasks)
    rows.add(part=f"{part}, memory", rows=n_rows, stage="fit", seconds=time.perf_counter() - begin, **blank())
    parts = client.persist(list(chunked(n_rows)))
    begin = time.perf_counter()
    with Watch(client) as watch:
        model = DMTRC(verbose=1, **settings).fit(parts[0], tasks=parts[1])
        watch.mark("rest")
    write(rows, part, n_rows, watch, time.perf_counter() - begin, model, whole.labels_)


def run_killed(n_rows: int, client: Any, rows: Rows) -> None:
    X, tasks = table(n_rows)
    whole = DMTRC(**SETTINGS).fit(X, tasks=tasks)
    lazy, ids = chunked(n_rows)
    begin = time.perf_counter()
    with Watch(client, kill_at="3") as watch:
        model = DMTRC(verbose=1, **SETTINGS).fit(lazy, tasks=ids)
    seconds = time.perf_counter() - begin
    assert not watch.kill_at, "no worker was killed"
    different = int((model.labels_.compute() != whole.labels_).sum())
    rows.add(part="killed", rows=n_rows, stage="fit", seconds=seconds, **(blank() | {"different": different}))


def run_parquet(n_rows: int, client: Any, rows: Rows, folder: Path) -> None:
    import dask.dataframe as dd
    import pandas as pd

    for k in range(n_rows // CHUNK):
        X, tasks = block(k, CHUNK)
        frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(D)]).assign(task=tasks)
        frame.to_parquet(folder / f"part-{k:04}.parquet", compression=None)
    on_disk = sum(path.stat().st_size for path in folder.iterdir())
    limits = sum(worker["memory_limit"] for worker in client.scheduler_info(n_workers=-1)["workers"].values())
    print(f"{on_disk / 1e6:.0f} MB on disk, {limits / 1e6:.0f} MB of memory in all workers")
    assert on_disk > limits, "the data set must be larger than the memory of the workers"
    begin = time.perf_counter()
    with Watch(client) as watch:
        model = DMTRC(verbose=1, task_column="task", **SETTINGS).fit(dd.read_parquet(folder))
    seconds = time.perf_counter() - begin
    found = model.labels_.compute()
    X, tasks = table(n_rows)
    whole = DMTRC(**SETTINGS).fit(X, tasks=tasks)
    write(rows, "parquet", n_rows, watch, seconds, None, None)
    row = blank() | {"different": int((found != whole.labels_).sum())}
    row |= {"disk_mb": on_disk / 1e6, "limit_mb": limits / 1e6}
    rows.add(part="parquet", rows=n_rows, stage="fit", seconds=seconds, **row)


def blank() -> dict[str, Any]:
    return dict.fromkeys(VALUES[1:], "")


def write(rows: Rows, part: str, n_rows: int, watch: Watch, seconds: float, model: Any, labels: Any) -> None:
    for stage in watch.stages:
        rows.add(part=part, rows=n_rows, **(blank() | stage))
    if model is not None:
        different = int((model.labels_.compute() != labels).sum())
        rows.add(part=part, rows=n_rows, stage="fit", seconds=seconds, **(blank() | {"different": different}))


def summarise(rows: Rows, out: Path) -> None:
    lines, found = [], rows.read()
    for row in found:
        cells = [row[name] for name in ("part", "rows", "stage")]
        cells += [f"{float(row[name]):.2f}" if row[name] else "" for name in VALUES[:4]]
        lines.append([*cells, row["near"], row["different"]])
    header = ["part", "rows", "stage", "seconds", "driver CPU s", "MB up", "MB down", "rows sent", "labels that differ"]
    notes = [f"d = {D}, m = {TASKS}, C = {CLUSTERS}, chunks of {CHUNK} rows, tasks in random order."]
    for row in found:
        if row["part"] == "parquet" and row["stage"] == "fit":
            disk, limit = (float(row[name]) for name in ("disk_mb", "limit_mb"))
            notes.append(f"Parquet: {disk:.0f} MB on disk, {limit:.0f} MB of memory in all workers.")
    write_markdown(out / "table.md", header, lines, "\n\n".join(notes))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of the parts labels and killed")
    parser.add_argument("--parquet-rows", type=int, default=9_000_000)
    parser.add_argument("--memory", default="700MB", help="memory limit of a worker in the part parquet")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--out", type=Path, default=Path("results/distributed"))
    options = parser.parse_args()
    from dask.distributed import Client

    options.out.mkdir(parents=True, exist_ok=True)
    rows = Rows(
        options.out / "runs.csv", ["part", "rows", "stage"],
        VALUES,
    )  # fmt: skip
    with threadpool_limits(1):
        if {"default", "labels", "killed"} & set(options.parts):
            with two_workers() as cluster, Client(cluster) as client:
                warm_up(client)
                for part in {"default", "labels"} & set(options.parts):
                    if not rows.has(part=part, rows=options.rows, stage="fit"):
                        run_labels(part, options.rows, client, rows)
                if "killed" in options.parts and not rows.has(part="killed"):
                    run_killed(options.rows, client, rows)
        if "parquet" in options.parts and not rows.has(part="parquet"):
            folder = Path(tempfile.mkdtemp())
            try:
                with two_workers(options.memory) as cluster, Client(cluster) as client:
                    run_parquet(options.parquet_rows, client, rows, folder)
            finally:
                shutil.rmtree(folder)
    summarise(rows, options.out)


if __name__ == "__main__":
    main()
