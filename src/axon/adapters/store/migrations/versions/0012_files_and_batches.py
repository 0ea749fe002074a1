"""Files that tenants upload, batches over them, and the results of their lines."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "files",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("tenant", sa.Text, nullable=False),
        sa.Column("purpose", sa.Text, nullable=False),
        sa.Column("filename", sa.Text, nullable=False),
        sa.Column("bytes", sa.BigInteger, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("expires_at", sa.Double, nullable=False),
    )
    op.create_index("files_by_tenant", "files", ["tenant", "id", "bytes"])
    op.create_index("files_by_expiry", "files", ["expires_at"])
    op.create_table(
        "batches",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("tenant", sa.Text, nullable=False),
        sa.Column("input_file", sa.Text, nullable=False),
        sa.Column("ended", sa.Boolean, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("holder", sa.Text, nullable=False, server_default=""),
        sa.Column("held_until", sa.Double, nullable=False, server_default="0"),
        sa.Column("body", sa.LargeBinary, nullable=False),
    )
    op.create_index("batches_by_tenant", "batches", ["tenant", "id"])
    op.create_index("batches_by_end", "batches", ["ended", "created_at"])
    op.create_table(
        "batch_results",
        sa.Column("batch", sa.Text, primary_key=True),
        sa.Column("line", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("ok", sa.Boolean, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
    )
