"""Runs migrations on the connection it is handed, inside the caller's transaction. Knows no URL and no settings."""

from alembic import context

from axon.adapters.store.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,  # SQLite changes a column by copying its table
)
with context.begin_transaction():
    context.run_migrations()
