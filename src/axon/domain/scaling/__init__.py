"""The autoscaler: how many replicas a group shall have, decided from what was measured. Pure: no I/O, no clock."""
