"""Adapters of turns: a session is pinned to the files of its LoRA adapter too, by their mark."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # With a default in the database: a process of the release before does not write the column.
    op.add_column("turns", sa.Column("adapter", sa.Text, nullable=False, server_default=""))
