"""A fit of rows in chunks on a local cluster of two processes against the same fit in memory.

    python benchmarks/dask_cluster.py                                   all parts; minutes
    python benchmarks/dask_cluster.py --rows 200000 --parts labels killed --out /tmp/quick

Parts: `labels` (the same labels? seconds and bytes of every pass, at a quarter, a half and all of the rows), `killed`
(a worker killed in the middle of the third pass), `parquet` (a data set on disk that is larger than the memory of all
workers together). Bytes are those that the workers' sockets wrote (up) and read (down) between the ends of two passes,
whatever they were for; what one worker sends to the other counts twice. Dask's work stealing, which moves whole chunks,
is off. The cost model in the notes of the table comes from the CPU time of the driver and of labelling one chunk.
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
from mtclust.core.kernels import Kernel
from mtclust.distributed import chunk
from mtclust.distributed.source import ChunkedRows
from mtclust.rows.features import FeatureMap
from mtclust.rows.moments import RawSums, combine
from mtclust.rows.passes import first_rows

D, TASKS, CLUSTERS = 20, 10, 5
CHUNK = 50_000
SETTINGS = {
    "n_clusters": CLUSTERS, "kernel": "linear", "lambda1": 0.01, "lambda2": 0.01, "coupling": "full",
    "sizes": "balanced", "random_state": 0,
}  # fmt: skip
PARTS = ("labels", "killed", "parquet")
VALUES = ["seconds", "driver_cpu", "up_mb", "down_mb", "near", "different", "disk_mb", "limit_mb"]
#: rows, workers and rows per chunk that the cost model is asked about
FAR = (10**9, 100, 500_000)


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
        self.say, self.overview = ChunkedRows._say, ChunkedRows._overview
        self.begin, self.cpu, self.before, watch = time.perf_counter(), time.process_time(), self._total(), self

        def said(source: ChunkedRows, what: str, begin: float) -> None:
            watch.mark(what)
            watch.say(source, what, begin)

        def overview(source: ChunkedRows, *arguments: Any) -> Any:
            if watch.kill_at and source.n_passes + 1 == int(watch.kill_at):
                os.kill(next(iter(watch.client.run(os.getpid).values())), signal.SIGKILL)
                watch.kill_at = ""
            return watch.overview(source, *arguments)

        ChunkedRows._say, ChunkedRows._overview = said, overview  # type: ignore[method-assign]
        return self

    def __exit__(self, *error: Any) -> None:
        ChunkedRows._say, ChunkedRows._overview = self.say, self.overview  # type: ignore[method-assign]

    def _total(self) -> dict[str, int]:
        parts = self.client.run(bytes_counted).values()
        return {key: sum(part[key] for part in parts) for key in ("up", "down")}

    def mark(self, what: str) -> None:
        seconds, cpu = time.perf_counter() - self.begin, time.process_time() - self.cpu
        total = self._total()
        stage, _, rest = what.partition(":")
        near = [word for word in rest.replace(",", " ").split() if word.isdigit()]
        moved = {f"{key}_mb": (total[key] - self.before[key]) / 1e6 for key in total}
        stage = stage.split(" of ")[0]
        sent = near[-1] if near else ""
        self.stages.append({"stage": stage, "seconds": seconds, "driver_cpu": cpu, "near": sent, **moved})
        self.begin, self.cpu, self.before = time.perf_counter(), time.process_time(), total


def two_workers(memory: str | int = 0) -> Any:
    import dask
    from dask.distributed import LocalCluster

    dask.config.set({"distributed.scheduler.work-stealing": False})
    return LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", memory_limit=memory)


def warm_up(client: Any) -> None:
    """Workers import and load compiled code."""
    X, tasks = chunked(CHUNK)
    DMTRC(**SETTINGS).fit(X, tasks=tasks)


def run_labels(n_rows: int, client: Any, rows: Rows) -> None:
    X, tasks = table(n_rows)
    begin = time.perf_counter()
    whole = DMTRC(**SETTINGS).fit(X, tasks=tasks)
    rows.add(part="memory", rows=n_rows, stage="fit", seconds=time.perf_counter() - begin, **blank())
    parts = client.persist(list(chunked(n_rows)))
    begin = time.perf_counter()
    with Watch(client) as watch:
        model = DMTRC(verbose=1, **SETTINGS).fit(parts[0], tasks=parts[1])
    seconds = time.perf_counter() - begin
    write(rows, "labels", n_rows, watch, seconds, model, whole.labels_)


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
    write_markdown(out / "table.md", header, lines, "\n\n".join(notes + cost_model(found)))


def labelling_cpu() -> float:
    """CPU seconds that labelling takes a worker per row: the least of several runs on one chunk."""
    X, tasks = block(0, CHUNK)
    reading = chunk.Reading(TASKS, np.float64, features=FeatureMap(Kernel("linear")))
    sums = combine(np.bincount(tasks), RawSums(*chunk.sums_of(X, tasks, reading)), centre=True)
    W = np.random.default_rng(0).normal(size=(TASKS, D, CLUSTERS))
    steps = np.full(TASKS, 10)
    models = chunk.Models(chunk.light_moments(sums), W, np.zeros((TASKS, CLUSTERS)), steps, kept_share=0.1)
    taken = []
    for _ in range(7):
        begin = time.process_time()
        chunk.finish_labels(
            chunk.propose(X, tasks, np.zeros(TASKS, dtype=np.int64), reading, models), np.zeros(TASKS), {}
        )
        taken.append(time.process_time() - begin)
    return min(taken) / CHUNK


def cost_model(found: list[dict[str, str]]) -> list[str]:
    """What a pass costs workers and driver, and what that says far away; CPU time, since the machine may be shared."""
    passes = [row for row in found if row["part"] == "labels" and row["stage"].startswith("pass")]
    sizes = sorted({int(row["rows"]) for row in passes})
    if len(sizes) < 2:
        return []
    by_size = {n: [row for row in passes if int(row["rows"]) == n] for n in sizes}
    # the first pass brings the rows of the search along
    later = [row for part in by_size.values() for row in part[1:]]
    sent, up, cpu = (np.array([float(row[name]) for row in later]) for name in ("near", "up_mb", "driver_cpu"))
    chunks = np.array([int(row["rows"]) / CHUNK for row in later])
    per_sent, always = np.polyfit(sent, 1e6 * up, 1)
    (per_chunk, per_undecided, fixed), *_ = np.linalg.lstsq(np.stack([chunks, sent, np.ones_like(sent)], axis=1), cpu)
    largest, per_row = by_size[sizes[-1]], labelling_cpu()
    shares = np.array([float(row["near"]) / sizes[-1] for row in (largest[0], largest[1], largest[-2])])
    n, workers, rows = FAR
    # rows undecided in the first pass fall with the root of the rows that first prices come from
    far = shares * [np.sqrt(len(first_rows(sizes[-1] // TASKS)) / len(first_rows(n // TASKS))), 1.0, 1.0]
    driver = per_chunk * n / rows + per_undecided * far * n + fixed
    gigabytes = (always + far * n * per_sent) / 1e9
    return [
        f"Cost model of a pass: workers {1e6 * per_row:.2f} µs × rows / workers; driver {fixed:.2f} s + "
        f"{1e3 * per_chunk:.1f} ms per chunk + {1e6 * per_undecided:.1f} µs per row sent (CPU time, least squares over "
        f"the passes after the first); up {always / 1e6:.2f} MB + {per_sent:.0f} bytes per row sent. Sent are "
        f"{_listed(100 * shares, 2)} % of the rows in the first, second and last of {len(largest)} passes at "
        f"{sizes[-1]} rows.",
        f"For {n:.0e} rows on {workers} workers in chunks of {rows} it predicts {per_row * n / workers:.0f} s of "
        f"labelling at the workers in every pass and, in the first, second and last, {_listed(driver, 0)} s at the "
        f"driver and {_listed(gigabytes, 2)} GB to it.",
    ]


def _listed(values: np.ndarray, digits: int) -> str:
    return ", ".join(f"{value:.{digits}f}" for value in values)


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
        if {"labels", "killed"} & set(options.parts):
            with two_workers() as cluster, Client(cluster) as client:
                warm_up(client)
                for n in (options.rows // 4, options.rows // 2, options.rows) if "labels" in options.parts else ():
                    if not rows.has(part="labels", rows=n, stage="fit"):
                        run_labels(n, client, rows)
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
