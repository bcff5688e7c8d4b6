"""The commands of ``mtclust``: ``add_parser(commands)`` describes one, ``run(options)`` does it or says in words why not."""
