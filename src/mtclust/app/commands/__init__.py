"""The commands of ``mtclust``, one file each: ``add_parser(commands)`` describes it, ``run(options)`` does it.

``run`` raises :class:`mtclust.exceptions.CommandError` for what the user can mend; :mod:`mtclust.app.cli` prints it.
"""
