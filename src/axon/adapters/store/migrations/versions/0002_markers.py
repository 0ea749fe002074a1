"""Markers, by which a reader knows that the journal has reached the store."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "markers",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("noted_at", sa.Double, nullable=False),
    )
    op.create_index("markers_by_age", "markers", ["noted_at"])
