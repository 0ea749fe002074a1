"""Launchers: replicas as children on this machine, and a twin in memory."""
