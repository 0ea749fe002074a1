"""The token log: its entries, who may append one, and who owns a job. The adapters obey these rules."""
