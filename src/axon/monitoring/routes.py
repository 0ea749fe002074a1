"""Alertmanager's configuration: whom an alert is sent to, and which alerts keep others quiet. Pure."""

from axon.monitoring.times import scaled

PAGE_URL = "http://127.0.0.1:9094/page"
TICKET_URL = "http://127.0.0.1:9094/ticket"


def routes(*, page_url: str = PAGE_URL, ticket_url: str = TICKET_URL, factor: float = 1.0) -> dict[str, object]:
    """Pages go out within half a minute and are repeated; tickets are collected. Both URLs are webhooks of yours."""
    return {
        "route": {
            "receiver": "ticket",
            "group_by": ["alertname", "model"],
            "group_wait": scaled("5m", factor),
            "group_interval": scaled("30m", factor),
            "repeat_interval": scaled("1d", factor),
            "routes": [
                {
                    "receiver": "page",
                    "matchers": ['severity="page"'],
                    "group_wait": scaled("30s", factor),
                    "group_interval": scaled("5m", factor),
                    "repeat_interval": scaled("4h", factor),
                }
            ],
        },
        "inhibit_rules": [
            # A fast burn says all that a slow one does.
            {
                "source_matchers": ['severity="page"', 'burn=~"fast|medium"'],
                "target_matchers": ['severity="ticket"', 'burn="slow"'],
                "equal": ["slo", "class"],
            },
            # Without a worker, a growing backlog and unused slots are no news.
            {
                "source_matchers": ['alertname="AxonNoReadyWorkers"'],
                "target_matchers": ['alertname=~"AxonBacklogGrowing|AxonUtilizationLow|AxonHeldJobs"'],
                "equal": ["model"],
            },
            {
                "source_matchers": ['alertname="AxonMetricsAbsent"'],
                "target_matchers": ['alertname="AxonProcessDown"'],
            },
        ],
        "receivers": [
            {"name": "page", "webhook_configs": [{"url": page_url}]},
            {"name": "ticket", "webhook_configs": [{"url": ticket_url}]},
        ],
    }
