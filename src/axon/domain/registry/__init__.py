"""Values of the registry: what models there are, which of their versions run where, and who changed it."""
