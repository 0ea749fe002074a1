"""Rules that workers and control share about the owner of a turn: whether it is alive, and how it ends the turn."""
