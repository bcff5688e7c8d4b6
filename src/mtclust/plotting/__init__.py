"""Pictures of fitted models (matplotlib, the extra ``plot``); each function returns the axes it has drawn into."""

from mtclust.plotting.figures import plot_feature_covariance, plot_task_relationship, plot_tasks

__all__ = ["plot_feature_covariance", "plot_task_relationship", "plot_tasks"]
