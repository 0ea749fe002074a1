"""Commands for backups."""
