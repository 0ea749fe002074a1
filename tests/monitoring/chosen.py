"""A dashboard's expression with its variables replaced, as Grafana does it before it asks."""


def chosen(expression: str, window: str = "1m") -> str:
    """All models; ``window`` is what rates are taken over."""
    return expression.replace("$__rate_interval", window).replace("$model", ".*")
