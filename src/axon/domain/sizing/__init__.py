"""How much of everything a load needs, computed from measured figures."""
