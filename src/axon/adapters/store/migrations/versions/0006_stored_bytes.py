"""How large turns and conversations are, and by tenant: what a quota of stored bytes and objects is measured from."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # With a default in the database: a process of the release before writes none of them, and what it writes until it
    # is replaced counts as an object of no bytes.
    op.add_column("turns", sa.Column("bytes", sa.BigInteger, nullable=False, server_default="0"))
    op.add_column("conversations", sa.Column("bytes", sa.BigInteger, nullable=False, server_default="0"))
    op.add_column("conversations", sa.Column("num_items", sa.BigInteger, nullable=False, server_default="0"))
    size = "length" if op.get_bind().dialect.name == "sqlite" else "octet_length"
    op.execute(f"UPDATE turns SET bytes = {size}(body) WHERE retain AND body IS NOT NULL")
    # How many items an entry has is inside its encoded list: one for each entry is what can be said here.
    own = "FROM entries WHERE entries.conversation = conversations.id"
    op.execute(
        f"UPDATE conversations SET bytes = {size}(metadata) + (SELECT COALESCE(SUM({size}(items)), 0) {own}), "
        f"num_items = (SELECT COUNT(*) {own})"
    )
    op.create_index(
        "turns_by_storage",
        "turns",
        ["tenant", "retain", "bytes"],
        sqlite_where=sa.column("bytes") > 0,
        postgresql_where=sa.column("body").is_not(None),
    )
    op.create_index("conversations_by_tenant", "conversations", ["tenant", "bytes", "num_items"])
