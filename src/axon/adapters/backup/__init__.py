"""Backups of a server's durable state: one archive file that either database can be restored from."""
