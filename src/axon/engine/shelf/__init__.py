"""The shelf's memory and files: does what ``schedule/shelf.py`` decides. Imports no torch."""
