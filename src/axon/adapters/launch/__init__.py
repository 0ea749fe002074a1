"""Launchers: where replicas run."""
