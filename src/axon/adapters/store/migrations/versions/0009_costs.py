"""Costs of turns: the price that held, the amount and its currency, which usage sums."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # With defaults in the database: a process of the release before writes none of them, and its turns cost nothing.
    op.add_column("turns", sa.Column("price", sa.Text, nullable=False, server_default=""))
    op.add_column("turns", sa.Column("cost_nanos", sa.BigInteger, nullable=False, server_default="0"))
    op.add_column("turns", sa.Column("currency", sa.Text, nullable=False, server_default=""))
    op.drop_index("turns_by_tenant", "turns")
    summed = ["prompt_tokens", "cached_tokens", "output_tokens", "cost_nanos", "currency", "deployment"]
    op.create_index("turns_by_tenant", "turns", ["tenant", "ended_at", *summed])
