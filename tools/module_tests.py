"""Which tests know which module: what :mod:`mutation` runs when it has changed one."""

#: stands for the doctests of the changed module
DOCTESTS = "doctests"
CORE = "tests/properties/test_property_core.py"
BOUNDS = f"{CORE}::test_bounds_are_feasible_and_say_what_the_rule_says"
ASSIGNMENT = f"{CORE}::test_assignment_is_optimal_within_the_bounds_whatever_the_prices"
EXCHANGE = f"{CORE}::test_exchange_ends_where_no_swap_or_move_lowers_the_objective"
ALIGNMENT = f"{CORE}::test_alignment_renames_clusters_and_nothing_else"
PER_TASK = "tests/test_clusters_per_task.py"
STEPS = ["tests/test_solver_steps.py", "tests/test_coupling.py"]
SEARCH = ["tests/test_exchange_solver.py", "-k", "not number_of_jobs"]
PLANES = "tests/cutting_plane"
JUDGE = ["tests/choose/test_judge.py", "tests/choose/test_quadratic.py"]
PRIMAL = "tests/primal"
CONFIDENCE = "tests/test_confidence.py"
#: lists that are tried in turn, the quickest first, until one notices
TESTS = {
    "labels.py": [[DOCTESTS, "tests/test_labels.py"], [PER_TASK, "-k", "bounds_move"], [BOUNDS]],
    "assignment.py": [[DOCTESTS, "tests/test_assignment.py", "-k", "not hundred_thousand"], [ASSIGNMENT]],
    "compiled.py": [
        ["tests/test_compiled.py", "tests/test_criterion.py"],
        ["tests/test_assignment.py", "-k", "prices or hungarian or unit or integers"],
        [ASSIGNMENT, EXCHANGE],
    ],
    "criterion.py": [[DOCTESTS, "tests/test_criterion.py"], JUDGE],
    "coupling.py": [
        ["tests/test_coupling.py", f"{PRIMAL}/test_primal_systems.py"],
        ["tests/test_solver_steps.py", "tests/test_objective.py"],
        [f"{PRIMAL}/test_primal_many_tasks.py"],
        SEARCH,
    ],
    "alignment.py": [
        [DOCTESTS, "tests/test_alignment.py"],
        [ALIGNMENT],
        [PER_TASK, "-k", "matched or mislead"],
        ["tests/test_solver_steps.py", f"{PRIMAL}/test_primal_many_tasks.py"],
    ],
    "membership.py": [[DOCTESTS, "tests/test_membership.py"], [CONFIDENCE, "-k", "fitted_without"]],
    "outliers.py": [[DOCTESTS, "tests/test_outliers.py"], [CONFIDENCE, "-k", "planted"]],
    "known.py": [
        [DOCTESTS, "tests/test_known.py", "-k", "not every_form and not whatever and not nothing_changes"],
        ["tests/test_known.py", "-k", "whatever"],
    ],
    "links.py": [
        [DOCTESTS, "tests/test_links.py", "-k", "best_of_all or lacks or none or contradict or known"],
        ["tests/test_links.py", "-k", "ten_pairs or kernels"],
    ],
    "choose/judge.py": [[DOCTESTS, *JUDGE]],
    "choose/quadratic.py": [[DOCTESTS, "tests/choose/test_quadratic.py"]],
    "choose/candidates.py": [["tests/choose/test_choice.py"], ["tests/choose/test_candidates.py"]],
    "choose/ways.py": [["tests/choose/test_ways.py", "tests/choose/test_choice.py"]],
    "choose/coupling.py": [[DOCTESTS, "tests/choose/test_coupling_decision.py"]],
    "problem/feature_descent.py": [
        [f"{PRIMAL}/test_primal_polish.py"],
        [f"{PRIMAL}/test_primal_forms.py", f"{PRIMAL}/test_primal_gaps.py"],
    ],
    "problem/criteria.py": [
        [f"{PRIMAL}/test_primal_predictability.py", "tests/test_criterion.py"],
        [f"{PRIMAL}/test_primal_sizes_and_coupling.py", "-k", "skewed and 400"],
    ],
    "problem/descent.py": [STEPS, SEARCH],
    "problem/kernel_descent.py": [STEPS, SEARCH, [PER_TASK, "-k", "obeys_the_sizes and balanced"]],
    "problem/kernels.py": [
        [*STEPS, "tests/test_carried_labels.py"],
        SEARCH,
        [f"{PLANES}/test_cutting_plane.py", "-k", "start"],
    ],
    "problem/pool.py": [["tests/test_objective.py", "tests/test_pool.py"], [EXCHANGE], SEARCH],
    "search/recipe.py": [STEPS, SEARCH, [PER_TASK, "-k", "obeys_the_sizes and balanced"]],
    "relaxation/alternation.py": [[f"{PLANES}/test_alternation.py"], [f"{PLANES}/test_cutting_plane.py", "-k", "two"]],
    "relaxation/certificate.py": [[DOCTESTS, f"{PLANES}/test_certificate.py"], [f"{PLANES}/test_alternation.py"]],
    "relaxation/cutting_plane.py": [
        [f"{PLANES}/test_cutting_plane.py", "-k", "grow or no_cuts or one_cluster or refused or two"],
        [f"{PLANES}/test_cutting_plane.py", "-k", "not two and not symmetric"],
    ],
    "relaxation/level_method.py": [
        [f"{PLANES}/test_level_method.py"],
        [f"{PLANES}/test_cutting_plane.py", "-k", "two"],
    ],
    "relaxation/options.py": [
        [DOCTESTS, f"{PLANES}/test_relaxation.py"],
        [f"{PLANES}/test_cutting_plane_estimators.py", "-k", "wrong or keep or solvers"],
    ],
    "relaxation/starts.py": [
        [f"{PLANES}/test_cutting_plane.py", "-k", "start or constant"],
        [f"{PLANES}/test_cutting_plane_estimators.py", "-k", "wrong_options or keep_the_start"],
    ],
}
