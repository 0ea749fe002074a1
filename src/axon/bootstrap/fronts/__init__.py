"""Several processes that serve one port: the fronts, and the parent that starts and watches them."""
