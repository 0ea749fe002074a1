"""Tenants: who asks for what, and who is refused. The first hundred by id, all others together."""

from axon.monitoring.dashboard import Dashboard, Row
from axon.monitoring.panel import Panel, Query, rate, ratio, share

_TOKENS = rate("axon_tokens_total", "tenant", 'kind=~"prompt|output"')
_USE = (
    Panel(
        title="Requests by tenant",
        sentence="The ten tenants with the most requests a second.",
        unit="reqps",
        queries=(Query(expr=f"topk(10, {rate('axon_requests_total', 'tenant')})", legend="{{tenant}}"),),
    ),
    Panel(
        title="Tokens by tenant",
        sentence="The ten tenants with the most tokens a second, of prompts and answers.",
        unit="short",
        queries=(Query(expr=f"topk(10, {_TOKENS})", legend="{{tenant}}"),),
    ),
    Panel(
        title="Cached prompts by tenant",
        sentence="Share of a tenant's prompt tokens that the prefix cache had.",
        unit="percentunit",
        queries=(
            Query(
                expr=ratio(
                    rate("axon_tokens_total", "tenant", 'kind="cached"'),
                    rate("axon_tokens_total", "tenant", 'kind="prompt"'),
                ),
                legend="{{tenant}}",
            ),
        ),
    ),
    Panel(
        title="Errors by tenant",
        sentence="Share of a tenant's requests that ended with an error of the server.",
        unit="percentunit",
        queries=(
            Query(
                expr=share("axon_requests_total", "tenant", 'outcome=~"5.."'),
                legend="{{tenant}}",
            ),
        ),
    ),
)
_REFUSALS = (
    Panel(
        title="Refusals by reason",
        sentence="Requests that admission turned away a second.",
        unit="reqps",
        queries=(Query(expr=rate("axon_rejected_total", "reason"), legend="{{reason}}"),),
    ),
    Panel(
        title="Refusals by tenant",
        sentence="The ten tenants with the most refusals a second.",
        unit="reqps",
        queries=(Query(expr=f"topk(10, {rate('axon_rejected_total', 'tenant')})", legend="{{tenant}}"),),
    ),
)

DASHBOARD = Dashboard(
    uid="axon-tenants",
    title="Axon: tenants",
    sentence="Who asks for what, and who is refused.",
    rows=(Row(title="Use", panels=_USE), Row(title="Refusals", panels=_REFUSALS)),
)
