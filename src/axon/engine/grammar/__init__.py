"""Grammars of answers: compiled beside the steps, followed token by token, asked for masks; llguidance parses them.

llguidance is imported with the first grammar, so that an engine runs without it.
"""
