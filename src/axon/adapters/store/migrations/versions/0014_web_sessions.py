"""Web sessions: browsers that are signed in as an API key."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "web_sessions",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("key_id", sa.Text, nullable=False),
        sa.Column("user_name", sa.Text, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("ends_at", sa.Double, nullable=False),
    )
    op.create_index("web_sessions_by_key", "web_sessions", ["key_id", "created_at"])
    op.create_index("web_sessions_by_end", "web_sessions", ["ends_at"])
