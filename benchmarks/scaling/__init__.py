"""A simulator of fleets: the real autoscaler and others on the same loads, in virtual time. Starts no process."""
