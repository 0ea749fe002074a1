"""The index template of log lines for OpenSearch, made from the table of fields. Knows no server."""

from axon.telemetry.events.fields import FIELDS, Field

Json = dict[str, object]
MAX_KEYWORD_CHARS = 1024
"""A longer keyword is kept but not indexed: Lucene refuses terms of more than 32,766 bytes, and the line with them."""


def mapping_of(field: Field) -> Json:
    """The mapping of one field."""
    if field.type == "object":
        return {"type": "object", "enabled": False}
    if field.type == "keyword":
        return {"type": "keyword", "ignore_above": MAX_KEYWORD_CHARS}
    if field.type == "date":
        return {"type": "date", "format": "strict_date_optional_time_nanos||strict_date_optional_time"}
    return {"type": field.type}


def index_template() -> Json:
    """The whole template. A field that it does not know is kept and not indexed: a line of a later release is never
    refused."""
    return {
        "index_patterns": ["axon-logs-*"],
        "priority": 100,
        "template": {
            "settings": {"index": {"number_of_shards": 1, "number_of_replicas": 1, "codec": "best_compression"}},
            "mappings": {
                "dynamic": False,
                "_meta": {"written_by": "scripts/logs_page.py"},
                "properties": {
                    **{name: mapping_of(field) for name, field in FIELDS.items()},
                    "@timestamp": {"type": "alias", "path": "ts"},
                },
            },
        },
    }
