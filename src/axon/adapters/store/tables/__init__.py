"""The tables of the store: one class for each kind of record, the same SQL for both databases."""
