"""Choices without labels: candidates for kernel, sizes and frame, and the one judge they answer to."""
