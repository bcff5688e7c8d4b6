"""One fit: from checked rows to the outcome of a search, and from there to the attributes of an estimator.

Settings are chosen on few rows, held as kernel matrices (:mod:`mtclust.choose.settings`). Where these are all rows,
what the choice has found is the outcome, if sizes are open; with sizes given J is searched on them. Labels of a part
are carried to all rows, held as features.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from mtclust.choose.choice import bounds_of_labels, constant_lambdas, modelled
from mtclust.choose.coupling import decide_coupling
from mtclust.choose.frames import moves_by_sums
from mtclust.choose.record import ClusterNumberChoice, CouplingDecision, Selection
from mtclust.choose.settings import (
    EFFORT,
    SAMPLE_ROWS,
    TASK_ROWS,
    Input,
    Params,
    Sample,
    choose_settings,
    given_lambdas,
    sample_rows,
)
from mtclust.choose.views import View, in_many_directions
from mtclust.core import Array, Labels
from mtclust.core.coupling import COUPLINGS, correlation
from mtclust.core.criterion import CRITERIA, indicators, means_of_clusters
from mtclust.core.kernels import KERNELS, Kernel
from mtclust.core.labels import (
    counts_by_task,
    free_bounds,
    neutral_bounds,
    parse_sizes,
    proportional,
    same_for_all_clusters,
)
from mtclust.core.matching import groups_of_tasks
from mtclust.core.model import CommonKept, best_temperature, probabilities
from mtclust.core.order import added, over_blocks
from mtclust.core.tasks import ORDERED, TaskIndex
from mtclust.estimators.new_task import FeatureKept, KernelKept
from mtclust.rows.features import FeatureMap, feature_map, rank_of, source_of
from mtclust.rows.moments import Data
from mtclust.search.all_rows import AllRows
from mtclust.search.hints import keep_known, keep_links
from mtclust.search.problem import Point, SearchOptions
from mtclust.search.recipe import ROUGH, Outcome, first_relationship, solve
from mtclust.util.messages import warn_user
from mtclust.util.system import require_kernel_memory

if TYPE_CHECKING:
    from mtclust.estimators.base import MultitaskClusterer


#: up to this many rows kernel matrices of all of them are used, if the form is left open
_SMALL = 720
#: rows of a task that is not in the sample, or that nothing couples to others
_ROWS_ALONE = 100


class Fitting:
    """A fit under way: what is given and chosen, the problem of all rows, and what the search ends with."""

    outcome: Outcome
    #: on the coupling, where the method leaves it open
    decision: CouplingDecision | None = None

    def __init__(self, params: Params, given: Input) -> None:
        """Choose settings and build the problem in the form that suits the rows.

        Kernel matrices ("dual") of up to 720 rows or where they are asked for or needed, else features ("primal").
        """
        self.params, self.given, self.index, self.options = params, given, given.index, params.options
        X, index, n = given.rows, given.index, given.rows.shape[0]
        dual_only = params.kernel == "precomputed" or params.solver == "cutting-plane"
        if params.form == "primal" and dual_only:
            raise ValueError(
                'solver_options["form"]="primal" needs explicit rows and solver="exchange"; '
                f"got kernel={params.kernel!r} and solver={params.solver!r}."
            )
        primal = params.form == "primal" or (params.form == "auto" and n > _SMALL and not dual_only)
        self.form = "primal" if primal or not index.in_memory else "dual"
        if self.form == "dual":
            require_kernel_memory(n)
            self.sample = Sample.of(X, index)
        else:
            # with one origin that is asked for rows of all tasks are looked at
            every = (1,) if params.center == "all" and index.n_tasks <= SAMPLE_ROWS else ()
            self.sample = sample_rows(X, index, SAMPLE_ROWS, *every)
        many_directions = params.by_rows and in_many_directions(self.sample.rows, self.sample.index.offsets)
        if many_directions and self.form == "primal" and n > SAMPLE_ROWS:
            self.sample = sample_rows(X, index, 1500, *every)  # many directions take more rows to see
        # the ridge of a task alone is λ₁ + m · share · λ₂
        lambdas, share = given_lambdas(params, index), 1.0 if COUPLINGS[params.method].learns else 1.0 / index.n_tasks
        weights = None if lambdas is None else (lambdas[0], lambdas[1] * share)
        self.settings = settings = choose_settings(params, given, self.sample, many_directions, weights)
        if settings.frame == "task":
            lambdas = lambdas or constant_lambdas(index.n_tasks, settings.spec, settings.criterion, share)
        else:  # all rows are one task
            lambdas = settings.seen.lambdas or constant_lambdas(1, settings.spec, settings.criterion)
        self.lambda1, self.lambda2 = np.broadcast_to(lambdas[0], index.n_tasks), lambdas[1]
        self.weight = self.lambda2 * share
        if self.settings.moves is not None and not self.sample.complete:
            self._move_by_all_rows()
        self.problem = self._problem()
        # a search of its own, where nothing or only the kernel was open
        self.is_searched = self.settings.outcome is None or not self.settings.question.sizes_open

    def _move_by_all_rows(self) -> None:
        """Offsets of tasks by all of their rows, in the clusters that the model of the sample puts them in.

        A task that is not in the sample begins where its rows lie closest to the means of their clusters.
        """
        settings, given = self.settings, self.given
        outcome, C, sampled = settings.outcome, int(given.clusters.max()), settings.seen.view.rows
        assert settings.moves is not None
        assert outcome is not None
        model: Any = outcome.problem.decision(outcome.point)
        moves = np.zeros((self.index.n_tasks, settings.moves.shape[1]))
        moves[self.sample.tasks] = settings.moves
        others = np.setdiff1d(np.arange(self.index.n_tasks), self.sample.tasks)
        if len(others):
            means = means_of_clusters(sampled, outcome.point.labels, C)
            few = self._some_rows(others)
            for task, part in zip(others, few.index.slices()):
                moves[task] = model.move_of(_dense(few.rows[part]), means)
        read = partial(_sums_in_clusters, model, moves, C)
        moves = moves_by_sums(*over_blocks(given.rows, self.index.task_numbers, read, added))
        self.settings = replace(settings, moves=moves)

    def _problem(self) -> Any:
        """All rows as kernel matrices, or as features with moments."""
        params, given, settings = self.params, self.given, self.settings
        origin = settings.seen.view.through(settings.spec)
        if self.form == "dual":
            lambdas = self.lambda1[: len(settings.seen.clusters)], self.weight
            question = replace(settings.seen, lambdas=lambdas, n_components=params.n_components or given.rows.shape[0])
            problem: Any = question.problem(settings.spec, settings.criterion)
            scale = origin.centred.scale
        else:
            tasks = given.index.n_tasks if settings.frame == "task" else 1
            rank = rank_of(origin.kernel, given.rows, params.n_components, tasks)
            landmarks = None if rank is None else given.index.even_rows(rank, params.sizes_open)
            given = given if settings.frame == "task" else given.as_one_task(settings.moves)
            X, index, criterion = given.rows, given.index, CRITERIA[settings.criterion]()
            bounds = neutral_bounds(index.sizes, given.clusters)
            if criterion.exchanges:
                bounds = parse_sizes(params.sizes, index.sizes, given.clusters, index.names)
            curved, centres = origin.kernel.kind in KERNELS and origin.kernel.kind != "linear", None
            if curved and params.fit_intercept and not sp.issparse(X):  # sparse rows are not centred
                plain = source_of(X, FeatureMap(Kernel("linear")), index, True)
                centres = plain.moments(True).mean
                centres = centres if plain.shift is None else centres + plain.shift
            features = feature_map(origin.kernel, X, index, landmarks, centres)
            source = source_of(X, features, index, params.fit_intercept)
            moments = source.moments(params.fit_intercept)
            scale, data = moments.scale, Data(source, moments, bounds)
            method, lambda1 = params.method_of(index.n_tasks), self.lambda1[: index.n_tasks]
            problem = AllRows(data, method, lambda1, self.weight, features, criterion=criterion)
        if scale == 0:
            warn_user(
                "X has no variation within any task (its rows are equal, or differ by less than products of rows can "
                "show; then rescale X, or take the offsets between tasks off): the labels are arbitrary.",
                ConvergenceWarning,
            )
        return problem

    # -- the search ----------------------------------------------------------------------------------------------------

    def solve(self, rng: np.random.Generator) -> None:
        """Find the outcome, decide on the coupling where that is open, and keep what is known of rows."""
        params, settings, hints = self.params, self.settings, self.given.hints
        decides = COUPLINGS[params.method].couples_labels
        if not self.is_searched:
            rng = np.random.default_rng(0)  # what was chosen does not depend on random_state, nor do hints change that
        self.outcome = self._relaxed(rng) if params.solver == "cutting-plane" else self._searched(rng)
        if decides and settings.frame != "task":
            compared = "rows compared as they are"
            if settings.moves is not None:
                compared = "each task moved by an offset of its own"
            self.decision = CouplingDecision("full", f"one model serves all tasks, with {compared}")
        elif decides:
            self.outcome, self.decision = decide_coupling(
                params.coupling, self.outcome, settings.question.X, settings.lead, self.sample, self.index, self.options
            )
        # which tasks those of the few rows of the outcome are
        few_tasks = self.sample.tasks if settings.frame == "task" else np.zeros(1, dtype=np.int64)
        if hints.known is not None:
            free = same_for_all_clusters(params.sizes)
            self.outcome = keep_known(self.outcome, hints.known, self.options, rng, few_tasks, free)
        if hints.links is not None:
            within_sizes = not params.sizes_open or isinstance(params.n_clusters, Mapping)
            self.outcome = keep_links(self.outcome, hints, self.options, rng, few_tasks, within_sizes)
        point = self.outcome.point
        if not point.converged and self.outcome.relaxation is None:  # max_cuts is no shortcoming but part of the model
            warn_user(
                f"fit stopped after max_iter={self.options.max_iter} rounds with the objective at {point.value:.6g} "
                f"and still falling by more than tol={self.options.tol:g} a round; raise max_iter or tol.",
                ConvergenceWarning,
            )
        if point.value < 0 and CRITERIA[settings.criterion].exchanges:
            warn_user(
                f"the objective came out as {point.value:.3g}, below its lowest possible value 0: lambda1="
                f"{self.lambda1.mean():g} and lambda2={self.lambda2:g} are too small for double precision with "
                'these features. Raise them, or set solver_options={"form": "dual"}.',
                ConvergenceWarning,
            )

    def _relaxed(self, rng: np.random.Generator) -> Outcome:
        """What cutting planes end with; labels that a user lets them start from come in the order of the input."""
        from mtclust.relaxation.cutting_plane import CuttingPlaneOptions, solve_cutting_plane, warn_if_collapsed

        if self.index.n_tasks > 1 and self.params.coupling not in ("auto", "full", "none", 0, 1):
            raise ValueError(
                f'coupling={self.params.coupling!r} needs solver="exchange"; '
                'cutting planes know "full", which "auto" means for them, and "none".'
            )
        options, order = CuttingPlaneOptions.from_dict(self.params.solver_options), self.index.order
        if not isinstance(options.init, str):
            init = np.asarray(options.init)
            options = replace(options, init=init[order] if init.shape == order.shape else init)
        outcome = solve_cutting_plane(self.problem, options, rng)
        warn_if_collapsed(outcome.relaxation, options.init)
        return outcome

    def _searched(self, rng: np.random.Generator) -> Outcome:
        """What the choice has found, on all rows, or a search of its own."""
        settings, sample, options, bounds = self.settings, self.sample, self.options, self.problem.bounds
        if self.is_searched and self.form == "dual":
            return solve(self.problem, options, rng)
        few = settings.outcome
        if few is None or not (bounds.interchangeable() or bounds.movable):  # a table of sizes
            # on the rows of the sample, with less effort: all rows descend from its end
            problem = settings.question.problem(settings.spec, settings.criterion)
            part = proportional(bounds.restrict(sample.tasks), self.index.sizes[sample.tasks], sample.index.sizes)
            small = sample.index.sizes.max() <= TASK_ROWS  # restarts would cost more than they gain
            n_init = 1 if small else max(min(options.n_init, 2), options.n_init // EFFORT)
            rough = replace(options, n_init=n_init, starts=options.n_init, tol=ROUGH * options.tol, polish=False)
            few = solve(problem.with_bounds(part), rough, rng)
        if self.form == "primal":
            return self._carried(few, rng)
        if settings.frame == "task":
            return few
        single = few.point  # the tasks alone keep the best labels that each has
        if settings.alone is not None:
            single = replace(single, fit=replace(single.fit, labels=settings.alone))
        return replace(few, single=single, similarity=np.eye(self.index.n_tasks))

    def _carried(self, few: Outcome, rng: np.random.Generator) -> Outcome:
        """Labels of a sample carried to all rows; with sizes open they stay, or else they descend from there."""
        sample, problem, index, options = self.sample, self.problem, self.index, self.options
        m, similarity = index.n_tasks, np.eye(index.n_tasks)
        if self.settings.frame != "task":  # all rows are one task, in the order of the tasks
            order = np.argsort(sample.where)
            problem = problem.with_bounds(free_bounds(np.diff(problem.offsets), few.problem.bounds.present))
            begun = problem.carried_labels([sample.where[order]], few.point.labels[order], problem.coupling.uncoupled())
            point = self._followed(problem, begun, rng)
            return Outcome(problem, point, point, similarity, few)  # one model for all says nothing of how tasks differ
        if not few.problem.coupling.learns:  # whatever the method is, tasks apart were chosen
            problem = problem.alone
        positions, labels = self._of_every_task(few.point.labels)
        small = not problem.coupling.learns and sample.index.sizes.max() < _ROWS_ALONE and not problem.bounds.movable
        if self.is_searched and small:  # every task is a search of its own
            wanted = np.minimum(index.sizes, _ROWS_ALONE)
            positions = index.first_rows(np.arange(m), wanted)
            starts = max(1, min(options.n_init, 8, int(index.sizes.max()) // problem.bounds.n_clusters))
            labels = problem.starts(positions, starts, int(rng.integers(2**31)))
        counts = np.stack([np.bincount(part, minlength=few.problem.bounds.n_clusters) for part in labels])
        if self.is_searched:
            problem = problem.with_bounds(problem.bounds.fitted(counts, fixed=True))
        else:
            problem = problem.with_bounds(bounds_of_labels(np.diff(problem.offsets), counts, self.given.clusters))
        Z = few.point.Z if problem.coupling.couples_labels else problem.coupling.uncoupled()
        # tasks that are not in the sample are like the mean of those
        if problem.coupling.couples_labels and len(Z) < m:
            own, rest = np.mean(Z.diagonal()), (Z.sum() - np.trace(Z)) / max(len(Z) * (len(Z) - 1), 1)
            Z = np.full((m, m), max(rest, 0.0))
            Z.flat[:: m + 1] = own
            Z /= np.trace(Z)
        begun = problem.carried_labels(positions, np.concatenate(labels), Z)
        if self.is_searched:
            begun, similarity = problem.matched(begun)
            if problem.coupling.couples_labels:  # Ω of few rows hardly revives where it has collapsed: it begins anew
                begun = problem.continued(begun, first_relationship(similarity))
            point = problem.descend(begun, rng, options.effort("all rows", last=True))
            point.n_iter += few.point.n_iter
            if not problem.coupling.couples_labels:
                point, _ = problem.matched(point)
        else:
            point = self._followed(problem, begun, rng)
        single = point
        if problem.coupling.learns:
            labels, alone = self._of_every_task(few.single.labels)[1], problem.alone
            single = alone.carried_labels(positions, np.concatenate(labels), alone.coupling.uncoupled())
            if self.is_searched:
                single = alone.descend(single, rng, options.effort("single tasks", learn=False, max_iter=2))
        similarity[np.ix_(sample.tasks, sample.tasks)] = few.similarity
        return Outcome(problem, point, single, similarity, few)

    def _followed(self, problem: Any, begun: Point, rng: np.random.Generator) -> Point:
        """One pass over all rows: more would leave the labels that were chosen."""
        point: Point = problem.descend(begun, rng, self.options.effort("all rows", last=True, max_iter=1))
        point.converged = True
        return point

    def _some_rows(self, tasks: Labels) -> Sample:
        """The first rows of tasks that are not in the sample."""
        numbers = np.minimum(self.index.sizes[tasks], _ROWS_ALONE)
        return Sample.of(self.given.rows, self.index, tasks, numbers)

    def _of_every_task(self, labels: Labels) -> tuple[list[Labels], list[Labels]]:
        """Positions of some rows of every task, and their labels.

        Rows of tasks that are not in the sample are labelled by one model of all its rows, each around its task's mean.
        """
        sample, m = self.sample, self.index.n_tasks
        parts = zip(sample.tasks.tolist(), sample.positions, sample.index.slices())
        found = {task: (part, labels[rows]) for task, part, rows in parts}
        others = np.setdiff1d(np.arange(m), sample.tasks)
        if len(others):
            question = self.settings.question
            centred = _dense(question.view.centred_rows[0])
            one = replace(
                question, view=View(centred, np.array([0, len(centred)])), clusters=question.clusters[:1],
                method="independent", lambdas=None, names=None,
            )  # fmt: skip
            teacher = modelled(one, self.settings.spec, labels, SearchOptions())
            model: Any = teacher.problem.decision(teacher.point)
            few = self._some_rows(others)
            for task, part, rows in zip(others.tolist(), few.positions, few.index.slices()):
                own = _dense(few.rows[rows])
                found[task] = part, model.clusters(own - own.mean(axis=0))
        return [found[task][0] for task in range(m)], [found[task][1] for task in range(m)]

    # -- the attributes ------------------------------------------------------------------------------------------------

    def store(self, estimator: MultitaskClusterer, n_clusters: ClusterNumberChoice | None) -> None:
        """Set the attributes of a fitted estimator; ``n_clusters`` says how their number was chosen, where it was."""
        index, bounds, settings, outcome = self.index, self.problem.bounds, self.settings, self.outcome
        # which of many equal namings the search ends in is chance
        free = outcome.relaxation is None and not outcome.named and (bounds.interchangeable() or bounds.movable)
        estimator.labels_, estimator.single_task_labels_, new_ids = index.with_plain_ids(
            outcome.point.labels, outcome.single.labels, bounds.n_clusters, free
        )
        if new_ids is not None:
            outcome = self.outcome = _renamed(outcome, new_ids)
        problem, point = outcome.problem, outcome.point
        model, moves, counts = problem.decision(point), settings.moves, point.fit.counts
        if settings.frame == "task":
            kept: Any = KernelKept.of(problem, point) if self.form == "dual" else FeatureKept.of(problem, point)
        else:  # one model for all tasks
            counts = counts_by_task(point.labels, index.offsets, bounds.n_clusters)
            means = None
            if moves is not None:
                rows = settings.question.view.as_one_task(moves[self.sample.tasks]).rows
                means = means_of_clusters(rows, model.clusters(rows), bounds.n_clusters)
            kept = CommonKept(model, free_bounds(index.sizes, counts > 0), moves, means)
            model = model.shared_by(index.n_tasks, moves)
        estimator._model, estimator._kept = model, kept
        estimator.tasks_, estimator.cluster_sizes_ = index.names, counts
        estimator.objective_, estimator.intercept_ = point.value, model.intercept
        if model.kernel.kind == "linear" and model.rows is None:
            estimator.coef_ = model.coefficients
        estimator.task_groups_ = [index.names[group].tolist() for group in groups_of_tasks(outcome.similarity)]
        estimator.history_, estimator.n_iter_, estimator.converged_ = point.history, point.n_iter, point.converged
        features = None
        if self.form != "dual":
            features = self.problem.features.described.format(self.problem.data.moments.mean.shape[1])
        coupling, m = COUPLINGS[self.params.method], index.n_tasks
        if coupling.couples_labels:
            Omega = point.Z if len(point.Z) == m else np.full((m, m), 1.0 / m)  # 11ᵀ/m: the tasks share one model
            estimator.task_covariance_, estimator.task_correlation_ = Omega, correlation(Omega)
        if coupling.of_features:
            estimator.feature_covariance_ = problem.in_input_coordinates(point.Z)
        params, sample, lambda1 = self.params, self.sample, self.lambda1.tolist()
        estimator.selection_ = Selection(
            kernel=settings.spec.name,
            width=settings.spec.width,
            criterion=settings.criterion,
            center=settings.frame,
            lambda1=dict(zip(index.names.tolist(), lambda1)) if isinstance(params.lambda1, Mapping) else lambda1[0],
            lambda2=self.lambda2,
            sizes="free" if params.sizes_open else params.sizes,
            form=self.form,
            reason=settings.reason,
            candidates=list(settings.tried) or None,
            coupling=self.decision,
            n_clusters=n_clusters,
            n_components=len(point.Z) if coupling.of_features else None,
            features=features,
            chosen_on=None if sample.complete else f"{sample.rows.shape[0]} rows of {sample.index.n_tasks} tasks",
            task_similarity=outcome.similarity,
        )
        relaxation, in_order = outcome.relaxation, index.to_input_order
        if relaxation is not None:
            estimator.relaxed_labels_, estimator.init_labels_ = in_order(relaxation.codes), in_order(relaxation.start)
            estimator.mixture_weights_, estimator.lower_bound_ = relaxation.weights, relaxation.lower_bound
            for entry in point.history:
                entry["labels"] = in_order(entry["labels"])
        self._store_confidence(estimator)

    def _store_confidence(self, estimator: MultitaskClusterer) -> None:
        """Find the temperature and ``probabilities_``; keep the rows that the rest is found from when it is read."""
        outcome, index, rows = self.outcome, self.index, self.given.rows
        stored = index.in_memory and rows.shape[0] <= ORDERED
        searched = outcome if stored else outcome.few or outcome
        scores = searched.problem.leave_one_out(searched.point)
        temperature = best_temperature(scores, np.asarray(searched.point.labels, dtype=np.int64))
        estimator._model = replace(estimator._model, temperature=temperature)
        estimator.probabilities_ = index.to_input_order(probabilities(scores, temperature)) if stored else None
        sample = judged_rows(rows, index)
        labels = outcome.point.labels[sample.where].astype(np.int64)
        far = (index, rows[index.order], estimator._model.kernel) if stored else None
        estimator._later = (sample, labels), far


def judged_rows(rows: Any, index: TaskIndex) -> Sample:
    """The rows that separation is taken of, copied; of more than 1000 a sample."""
    return Sample.of(rows, index) if rows.shape[0] <= 1000 else sample_rows(rows, index, SAMPLE_ROWS)


def _sums_in_clusters(model: Any, moves: Array, C: int, rows: Any, tasks: Labels) -> tuple[Array, Array]:
    """Sums (m × C × d) and numbers (m × C) of the rows of every task in every cluster."""
    rows, shape = _dense(rows), (len(moves), C)
    cells = tasks.astype(np.int64) * C + model.clusters(rows - moves[tasks])
    sums = np.zeros((len(moves) * C, rows.shape[1]))
    sizes = np.bincount(cells, minlength=len(moves) * C).astype(np.float64)
    found = np.flatnonzero(sizes)
    sums[found] = indicators(np.searchsorted(found, cells), len(found)).T @ rows
    return sums.reshape(*shape, -1), sizes.reshape(shape)


def _dense(rows: Any) -> Array:
    return rows.toarray() if sp.issparse(rows) else np.asarray(rows, dtype=np.float64)


def _renamed(outcome: Outcome, new_ids: Labels) -> Outcome:
    """The same new ids in all tasks, on all rows and on the few of the search."""
    problem = outcome.problem.with_bounds(outcome.problem.bounds.renamed(new_ids))
    point = problem.renamed(outcome.point, np.tile(new_ids, (problem.n_tasks, 1)))
    few = None if outcome.few is None else _renamed(outcome.few, new_ids)
    return replace(outcome, problem=problem, point=point, few=few)
