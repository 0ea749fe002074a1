"""The fleet as control wants it and as it is: replicas, their specs, and what a launcher runs."""
