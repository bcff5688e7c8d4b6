"""The three estimators: DMTRC learns the covariance Ω between tasks, DMTFC the feature covariance D, DSTC neither."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeVar

from mtclust.estimators.base import MultitaskClusterer
from mtclust.search.problem import Method

KernelArgument = str | Callable[[Any, Any], Any]
T = TypeVar("T")


class DMTRC(MultitaskClusterer):
    """Discriminative multitask relationship clustering: clusters all tasks and learns how they are related.

    Parameters
    ----------
    n_clusters : int, "auto", range or mapping, default=8
        Clusters per task; cluster ids mean the same in every task. "auto" searches 2 to 12 and a range its own numbers
        (:func:`mtclust.selection.select_n_clusters`). A mapping
        gives every task a number of its own: C is the largest, and the clusters of a smaller task are matched to some
        of the C ids by their class means. ``sizes`` then applies to the clusters a task has; a table, with C columns
        and zeros, says which these are.
    kernel : {"auto", "rbf", "linear", "precomputed"} or callable, default="auto"
        "auto" takes the linear kernel or an RBF kernel of width ½ or 1, whichever predicts the labels best for rows
        that are left out, "rbf" one of the two widths; rows that spread over many directions, such as documents, are
        left to the linear one.
        A callable ``kernel(A, B)`` returns the matrix of kernel values between the rows of A and B.
    width : "auto" or float, default="auto"
        σ of the RBF kernel in units of the mean distance between two rows of one task.
    lambda1, lambda2 : "auto" or float, default="auto"
        Weights of the ridge and of the coupled penalty. They are relative to the kernel, which is scaled to unit mean
        diagonal; "auto" stands for constants. ``lambda1`` may be a mapping task → value.
    coupling : {"auto", "full", "none"} or float, default="auto"
        "full" always learns Ω, "none" clusters every task alone, a number s in [0, 1] shrinks: sΩ + (1−s)I/m, and
        "auto" couples unless labels of every task alone are better (:mod:`mtclust.choose.coupling`).
        Cutting planes know "full", which "auto" then means, and "none".
    center : {"auto", "task", "all", "aligned"}, default="auto"
        Where the origin lies. "task" centres rows and features within each task: a shift of a whole task changes
        nothing, and every task has all its clusters; one that is left without rows there has score −∞. "all" centres
        over all rows: the levels of the tasks count, one model serves all of them, and a task may lack clusters; one
        that all tasks lack has score −∞. "aligned" does the same after every task was moved by an offset of its own,
        found together with the clusters: tasks that are shifted and hold other shares of them.
        "auto" takes the frame in which the rows, with their labels, are described most shortly
        (:mod:`mtclust.choose.frames`).
    sizes : "auto", "balanced", float, (low, high), array or mapping, default="auto"
        Bounds on the cluster sizes: see :func:`mtclust.core.labels.parse_sizes`. "auto" leaves them free: one
        score picks the labels among those of standard methods, of the paper's J with equal sizes and of the
        size-neutral criterion E (:mod:`mtclust.choose.choice`). All others mean J, as does "auto" with
        ``fit_intercept=False`` or cutting planes, where it stands for l = 0.1.
    solver : {"exchange", "cutting-plane"}, default="exchange"
        Local search on the original mixed-integer objective, or the paper's cutting planes on its convex relaxation,
        whose optimum says nothing about clusters: what they return depends on ``init`` and ``max_cuts``.
    solver_options : dict, optional
        ``form``: "dual" solves with kernel matrices, "primal" with explicit features, whose cost is linear in the
        number of rows, "auto" (default) takes the dual form up to 720 rows.
        For cutting planes: see :class:`mtclust.relaxation.cutting_plane.CuttingPlaneOptions`.
    n_components : int, optional
        Number of features of the primal form; by default the columns of X for a linear kernel (up to 1000), 200
        singular directions of wider sparse tables, otherwise 2√n Nyström features, at least 100 and at most 200, fewer
        of more than 104 tasks. Without effect on the dual form, which is exact.
    fit_intercept : bool, default=True
        Centre the features within each task, which keeps differences between the tasks' means out of the models.
    n_init : int, default=8
        Labellings of every task that enter the coupled search where ``sizes`` are given; 1 stands for one start without
        restarts.
    max_iter : int, default=40
        Rounds of label and coupling steps of one descent.
    tol : float, default=1e-4
        A descent ends when a round lowers the objective by less than this (relative).
    task_column : str or int, optional
        Column of X that holds the task ids, instead of ``tasks=`` in ``fit`` and ``predict``.
    random_state : int, RandomState instance or None, default=None
        Of the search where ``sizes`` are given or nothing is left to choose; what "auto" chooses does not depend on it.
    n_jobs : int, optional
        Threads for restarts; the result does not depend on it.
    verbose : int, default=0
        1 prints the stages of a long fit, and at the end how the objective fell; 2 the parts of the stages, too. The
        logger "mtclust" has all of them at level INFO.

    Attributes
    ----------
    labels_ : ndarray of shape (n,)
        Cluster of every row, the largest first unless known rows or ``sizes`` name them; sizes obey ``sizes``.
    probabilities_ : ndarray of shape (n, C) or None
        Probability of every cluster for every row, from models fitted without the row; rows sum to 1
        (:mod:`mtclust.core.model`). The most likely cluster may differ from ``labels_``. None above 20 000 rows,
        where leaving one out changes nothing: see ``predict_proba``.
    outlier_scores_ : ndarray of shape (n,) or None
        In [0, 1]: how far a row lies from its nearest rows of the same task (:mod:`mtclust.estimators.confidence`);
        above ½ it belongs nowhere. Its label is kept all the same. None above 20 000 rows.
    single_task_labels_ : ndarray of shape (n,)
        What clustering every task alone gives (DSTC), for comparison; with open ``sizes`` the best such candidate.
        Equal to ``labels_`` where all tasks share one frame and there are more rows than settings were chosen on. Of
        cutting planes the labels at the start.
    tasks_ : ndarray of shape (m,)
        Task ids, sorted; the order of everything below.
    task_covariance_, task_correlation_ : ndarray of shape (m, m)
        Ω and its correlation matrix.
    task_offsets_ : ndarray of shape (m, d) or None
        How far every task was moved where tasks are aligned (``selection_["center"]``); None elsewhere.
    coef_ : ndarray of shape (m, C, d)
        Linear models (linear kernel only).
    intercept_ : ndarray of shape (m, C)
    objective_ : float
        J at the solution where ``sizes`` are given, −E where they are open (``selection_["criterion"]``).
    loo_score_ : float
        Separation of the clusters, from rows that are left out: 1 if they do not touch, 0 for what the best clusters
        of noise reach (:mod:`mtclust.choose.judge`). Found, like ``cluster_scores_`` and ``outlier_scores_``, when it
        is first read, or before the model is saved or pickled.
    cluster_scores_ : ndarray of shape (C,)
        The same for every cluster; ``loo_score_`` is their mean.
    stability_ : Stability
        Once :meth:`stability` was called: what stays the same on subsamples, by row, by cluster and overall.
    n_clusters_ : int
        C: ``n_clusters``, or the largest where it is a mapping.
    cluster_sizes_ : ndarray of shape (m, C)
    task_groups_ : list of lists
        Tasks whose clusters resemble each other; every task by itself where all share one frame.
    history_ : list of dict
        Stage, step and objective. J never rises unless known rows or pairs ask for it, −E may in a last round.
    n_iter_, converged_ : int, bool
        Rounds of the descents that led to the result, and whether the last one ended by ``tol``.
    selection_ : Selection
        What "auto" chose, from what, and why (:class:`mtclust.selection.Selection`): ``kernel``, ``criterion``,
        ``center``, ``lambda1``, ``lambda2``, ``reason``, ``candidates`` (name, score, separation and frame of all
        labellings that were tried), ``sizes`` and ``coupling`` with the decision and its reason. Reads like a
        dictionary as well.
    n_features_in_, feature_names_in_
        As in scikit-learn.
    relaxed_labels_, mixture_weights_, init_labels_, lower_bound_
        Of the cutting planes only: Ỹ (n × C), the weights μ of every task's pool, the labels at the start, and a lower
        bound of the relaxed optimum; ``objective_`` is then the relaxed value, ``history_`` has one entry per cut, and
        ``labels_`` are the argmax of f, whatever their sizes.

    References
    ----------
    X.-L. Zhang, "Convex Discriminative Multitask Clustering", IEEE TPAMI 37(1), 2015.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from mtclust import DMTRC, stack_tasks
    >>> first, _ = make_blobs(60, centers=[[0, 0], [4, 0], [0, 4]], cluster_std=0.5, random_state=0)
    >>> second, _ = make_blobs(60, centers=[[1, 1], [5, 1], [1, 5]], cluster_std=0.5, random_state=1)
    >>> X, tasks = stack_tasks([first, second], names=["paris", "rome"])
    >>> model = DMTRC(n_clusters=3, kernel="linear", random_state=0).fit(X, tasks=tasks)
    >>> model.cluster_sizes_.tolist()
    [[20, 20, 20], [20, 20, 20]]
    >>> bool(model.task_correlation_[0, 1] > 0.5)
    True
    >>> model.predict([[5.0, 1.0]], tasks="rome") == model.predict([[4.0, 0.0]], tasks="paris")
    array([ True])
    """

    _coupled_by: ClassVar[Method] = "relationship"

    def __init__(
        self,
        n_clusters: int | Mapping[Any, int] = 8,
        *,
        kernel: KernelArgument = "auto",
        width: float | str = "auto",
        lambda1: float | str | Mapping[Any, float] = "auto",
        lambda2: float | str = "auto",
        coupling: float | str = "auto",
        center: str = "auto",
        sizes: Any = "auto",
        solver: str = "exchange",
        solver_options: dict[str, Any] | None = None,
        n_components: int | None = None,
        fit_intercept: bool = True,
        n_init: int = 8,
        max_iter: int = 40,
        tol: float = 1e-4,
        task_column: str | int | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self._hold(locals())


def with_shared_texts(cls: type[T]) -> type[T]:
    """Replace a line ``{kernel width}`` of a docstring by what the docstring of :class:`DMTRC` says of these names."""
    entries = re.finditer(r"^(\w+).*\n(?:    .*\n)*", inspect.cleandoc(DMTRC.__doc__ or ""), flags=re.MULTILINE)
    texts = {entry[1]: entry[0].rstrip() for entry in entries}

    def described(line: re.Match[str]) -> str:
        return "\n".join(texts[name] for name in line[1].split() if name in texts)

    cls.__doc__ = re.sub(r"^\{(.+)\}$", described, inspect.cleandoc(cls.__doc__ or ""), flags=re.MULTILINE)
    return cls


@with_shared_texts
class DMTFC(MultitaskClusterer):
    """Discriminative multitask feature clustering: clusters all tasks and learns which features they share.

    Parameters
    ----------
    {n_clusters kernel width lambda1 center}
    n_components : int, optional
        Leading eigen-features of the kernel to use (kernel PCA), all by default; in the primal form as in DMTRC.
    {sizes solver solver_options fit_intercept n_init max_iter tol task_column random_state n_jobs verbose}

    Attributes
    ----------
    {labels_ task_offsets_}
    feature_covariance_ : ndarray of shape (d, d) or (r, r)
        D, trace 1: in the coordinates of X with the linear kernel and up to 2000 columns, otherwise in those of the
        eigen-features of the kernel.
    {tasks_ single_task_labels_ probabilities_ outlier_scores_ coef_ intercept_ objective_ loo_score_}
    {cluster_scores_ stability_ n_clusters_ cluster_sizes_ task_groups_ history_ n_iter_ selection_ n_features_in_}
    {relaxed_labels_}

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from mtclust import DMTFC, stack_tasks
    >>> first, _ = make_blobs(60, centers=[[0, 0, 0], [4, 0, 0]], random_state=0)
    >>> second, _ = make_blobs(60, centers=[[1, 1, 1], [5, 1, 1]], random_state=1)
    >>> X, tasks = stack_tasks([first, second])
    >>> model = DMTFC(n_clusters=2, kernel="linear", random_state=0).fit(X, tasks=tasks)
    >>> int(model.feature_covariance_.diagonal().argmax())  # the feature that separates the clusters of both tasks
    0
    """

    _coupled_by: ClassVar[Method] = "features"

    def __init__(
        self,
        n_clusters: int | Mapping[Any, int] = 8,
        *,
        kernel: KernelArgument = "auto",
        width: float | str = "auto",
        lambda1: float | str | Mapping[Any, float] = "auto",
        lambda2: float | str = "auto",
        center: str = "auto",
        n_components: int | None = None,
        sizes: Any = "auto",
        solver: str = "exchange",
        solver_options: dict[str, Any] | None = None,
        fit_intercept: bool = True,
        n_init: int = 8,
        max_iter: int = 40,
        tol: float = 1e-4,
        task_column: str | int | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self._hold(locals())


@with_shared_texts
class DSTC(MultitaskClusterer):
    """Discriminative single-task clustering: every task is clustered alone, then cluster ids are matched.

    Its ridge is λ₁ + λ₂ in every task; ``DMTRC(coupling="none")`` with m tasks equals ``DSTC`` with mλ₂.

    Parameters
    ----------
    {n_clusters kernel width}
    lambda1, lambda2 : "auto" or float, default="auto"
        Their sum is the weight of the ridge, relative to the kernel, which is scaled to unit mean diagonal;
        "auto" stands for constants. ``lambda1`` may be a mapping task → value.
    {sizes solver solver_options n_components fit_intercept}
    n_init : int, default=40
        Random starts of every task where ``sizes`` are given.
    {task_column random_state n_jobs verbose}

    Attributes
    ----------
    {labels_}
    {tasks_ probabilities_ outlier_scores_ coef_ intercept_ objective_ loo_score_ cluster_scores_}
    {stability_ n_clusters_ cluster_sizes_ task_groups_ history_ n_iter_ selection_ n_features_in_}
    {relaxed_labels_}

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from mtclust import DSTC
    >>> X, _ = make_blobs(60, centers=[[0, 0], [4, 0], [0, 4]], cluster_std=0.5, random_state=0)
    >>> DSTC(n_clusters=3, random_state=0).fit(X).cluster_sizes_.tolist()
    [[20, 20, 20]]
    """

    def __init__(
        self,
        n_clusters: int | Mapping[Any, int] = 8,
        *,
        kernel: KernelArgument = "auto",
        width: float | str = "auto",
        lambda1: float | str | Mapping[Any, float] = "auto",
        lambda2: float | str = "auto",
        sizes: Any = "auto",
        solver: str = "exchange",
        solver_options: dict[str, Any] | None = None,
        n_components: int | None = None,
        fit_intercept: bool = True,
        n_init: int = 40,
        task_column: str | int | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self._hold(locals())
