"""The commands of ``mtclust``: ``add_parser(commands)`` describes one, ``run(options)`` does it."""
