"""Time of replicas that tenants pay for: starts from cold, and pools of their own."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "replica_uses",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("tenant", sa.Text, nullable=False),
        sa.Column("deployment", sa.Text, nullable=False),
        sa.Column("version", sa.Text, nullable=False),
        sa.Column("pool", sa.Text, nullable=False),
        sa.Column("began_at", sa.Double, nullable=False),
        sa.Column("seconds", sa.Double, nullable=False),
        sa.Column("price_nanos", sa.BigInteger, nullable=False),
        sa.Column("currency", sa.Text, nullable=False),
    )
    op.create_index("replica_uses_by_tenant", "replica_uses", ["tenant", "began_at"])
