"""Pictures of fitted models (matplotlib, the extra ``plot``); each function draws into given axes and returns them."""

from mtclust.plotting.figures import plot_feature_covariance, plot_task_relationship, plot_tasks

__all__ = ["plot_feature_covariance", "plot_task_relationship", "plot_tasks"]
