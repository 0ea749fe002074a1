"""Tenants and plans, what a key may do and since when it is used, and where a turn's time and tokens went."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # First, while nothing else is locked: over many turns it takes a while, in which they can be read.
    summed = ["prompt_tokens", "cached_tokens", "output_tokens"]
    op.create_index("turns_by_tenant", "turns", ["tenant", "ended_at", *summed])
    op.create_table(
        "plans",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("limits", sa.Text, nullable=False),
    )
    op.create_table(
        "tenants",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("plan", sa.Text, nullable=False),
        sa.Column("limits", sa.Text, nullable=False),
        sa.Column("place", sa.Integer, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("suspended_at", sa.Double),
    )
    op.create_index("tenants_by_place", "tenants", ["place"], unique=True)
    # With a default in the database: a process of the release before writes none of them.
    op.add_column("keys", sa.Column("scopes", sa.Text, nullable=False, server_default="inference read"))
    op.add_column("keys", sa.Column("last_used_at", sa.Double))
    op.add_column("keys", sa.Column("previous", sa.Text, nullable=False, server_default=""))
    op.create_index("keys_by_tenant", "keys", ["tenant", "created_at"])
    op.add_column("turns", sa.Column("ledger", sa.LargeBinary))
    op.execute(
        "INSERT INTO tenants (id, name, plan, limits, place, created_at) "
        "SELECT tenant, '', 'default', '{}', ROW_NUMBER() OVER (ORDER BY MIN(created_at), tenant) - 1, MIN(created_at) "
        "FROM keys GROUP BY tenant"
    )
