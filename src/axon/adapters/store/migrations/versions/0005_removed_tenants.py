"""Ids of tenants that were removed: what was theirs is kept under them."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "removed_tenants",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("removed_at", sa.Double, nullable=False),
    )
