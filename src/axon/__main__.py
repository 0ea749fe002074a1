"""``python -m axon``: the command line without its script."""

from axon.cli import main

main()
