"""What happened between two looks at a server: tokens a second, latencies, shares. Functions of the looks alone.

A counter belongs to a process: a worker's by its incarnation, a gateway's by its name. Counters of a process that is in
one look only make no rate.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from axon.domain.histogram import grown, quantile, summed
from axon.domain.overview import Durations, GatewayLook, Overview, WorkerLook


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """How long something took, over the time between two looks."""

    p50_s: float | None = None
    p99_s: float | None = None
    num: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """What one worker, or several together, did each second; None where two looks do not tell."""

    answer_per_s: float | None = None
    prompt_per_s: float | None = None
    requests_per_s: float | None = None
    """First tokens."""
    ttft: Latency = Latency()
    gaps: Latency = Latency()


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantFlow:
    """What all workers did for one tenant."""

    running: int = 0
    answer_per_s: float | None = None
    prompt_per_s: float | None = None
    share: float | None = None
    """Its part of the tokens of all tenants, prompts and answers, 0 to 1."""
    requests_per_s: float | None = None
    """Requests a second at the gateway that answered."""
    rejected_per_s: float | None = None
    """Refusals a second at the gateway that answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayFlow:
    """What the gateway that answered did each second; None where another gateway answered before."""

    requests_per_s: float | None = None
    failed_per_s: float | None = None
    """Answers with a status of 500 and above."""
    rejected_per_s: float | None = None
    ttft: Latency = Latency()
    gaps: Latency = Latency()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Everything that two looks tell."""

    seconds: float = 0.0
    """Between the looks."""
    fleet: Flow = Flow()
    gateway: GatewayFlow = GatewayFlow()
    workers: Mapping[str, Flow] = field(default_factory=dict)
    """The flow of each worker, by its incarnation."""
    models: Mapping[str, Flow] = field(default_factory=dict)
    tenants: Mapping[str, TenantFlow] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Span:
    """One worker in both looks, and the seconds between its two announcements."""

    before: WorkerLook
    after: WorkerLook

    @property
    def seconds(self) -> float:
        return self.after.at - self.before.at

    def rate(self, count: Callable[[WorkerLook], int]) -> float:
        return max(0, count(self.after) - count(self.before)) / self.seconds


def rates(before: Overview | None, after: Overview) -> Rates:
    """What happened between two looks; without an earlier one, only what the later one says by itself."""
    spans = _spans(before, after)
    models = {model: [each for each in spans if each.after.model == model] for model in _models(after)}
    return Rates(
        seconds=max(0.0, after.at - before.at) if before else 0.0,
        fleet=_flow(spans, after.bounds),
        gateway=_gateway_flow(before, after),
        workers={each.after.incarnation: _flow([each], after.bounds) for each in spans},
        models={model: _flow(own, after.bounds) for model, own in models.items()},
        tenants=_tenants(before, after, spans),
    )


def baseline(history: Sequence[Overview], after: Overview, window_s: float) -> Overview | None:
    """The look to compare with: the newest one that is ``window_s`` seconds older, else the oldest; of the same gateway
    if there is any. Workers announce themselves once a second, so a shorter window would often show no news."""
    earlier = [each for each in history if each.at < after.at]
    candidates = [each for each in earlier if each.gateway.name == after.gateway.name] or earlier
    old_enough = [each for each in candidates if after.at - each.at >= window_s]
    if old_enough:
        return max(old_enough, key=lambda each: each.at)
    return min(candidates, key=lambda each: each.at, default=None)


def _spans(before: Overview | None, after: Overview) -> list[_Span]:
    known = {each.incarnation: each for each in (before.workers if before else ())}
    spans = [_Span(known[each.incarnation], each) for each in after.workers if each.incarnation in known]
    return [each for each in spans if each.seconds > 0]


def _models(look: Overview) -> set[str]:
    return {each.name for each in look.models} | {each.model for each in look.workers}


def _flow(spans: Sequence[_Span], bounds: Sequence[float]) -> Flow:
    if not spans:
        return Flow()
    return Flow(
        answer_per_s=sum(each.rate(lambda look: look.answer_tokens) for each in spans),
        prompt_per_s=sum(each.rate(lambda look: look.prompt_tokens) for each in spans),
        requests_per_s=sum(each.rate(lambda look: look.requests) for each in spans),
        ttft=_latency((grown(each.before.ttft_counts, each.after.ttft_counts) for each in spans), bounds),
        gaps=_latency((grown(each.before.gap_counts, each.after.gap_counts) for each in spans), bounds),
    )


def _latency(counts: Iterable[Sequence[int]], bounds: Sequence[float]) -> Latency:
    total = summed(*counts)
    if not bounds:
        return Latency(num=sum(total))
    return Latency(p50_s=quantile(total, 0.5, bounds), p99_s=quantile(total, 0.99, bounds), num=sum(total))


def _gateway_flow(before: Overview | None, after: Overview) -> GatewayFlow:
    old = _same_gateway(before, after)
    seconds = after.gateway.up_s - old.up_s if old else 0.0
    if old is None or seconds <= 0:
        return GatewayFlow()
    new = after.gateway
    failed = [sum(num for outcome, num in each.requests.items() if outcome >= "500") for each in (old, new)]
    return GatewayFlow(
        requests_per_s=max(0, sum(new.requests.values()) - sum(old.requests.values())) / seconds,
        failed_per_s=max(0, failed[1] - failed[0]) / seconds,
        rejected_per_s=max(0, new.rejected - old.rejected) / seconds,
        ttft=_between(old.ttft, new.ttft),
        gaps=_between(old.gaps, new.gaps),
    )


def _same_gateway(before: Overview | None, after: Overview) -> GatewayLook | None:
    return before.gateway if before and before.gateway.name == after.gateway.name else None


def _between(old: Durations, new: Durations) -> Latency:
    counts = grown(old.counts, new.counts) if old.bounds == new.bounds else new.counts
    return _latency([counts], new.bounds)


def _tenants(before: Overview | None, after: Overview, spans: Sequence[_Span]) -> dict[str, TenantFlow]:
    running: dict[str, int] = {}
    for worker in after.workers:
        for each in worker.tenants:
            running[each.tenant] = running.get(each.tenant, 0) + each.running
    tokens: dict[str, tuple[float, float]] = {}
    for span in spans:
        known = {each.tenant: each for each in span.before.tenants}
        for each in span.after.tenants:
            if (old := known.get(each.tenant)) is not None:
                had = tokens.get(each.tenant, (0.0, 0.0))
                answers = _new(old.answer_tokens, each.answer_tokens) / span.seconds
                prompts = _new(old.prompt_tokens, each.prompt_tokens) / span.seconds
                tokens[each.tenant] = (had[0] + answers, had[1] + prompts)
    counted = _counted(before, after)
    total = sum(map(sum, tokens.values()))
    return {
        tenant: TenantFlow(
            running=running.get(tenant, 0),
            answer_per_s=tokens[tenant][0] if tenant in tokens else None,
            prompt_per_s=tokens[tenant][1] if tenant in tokens else None,
            share=sum(tokens[tenant]) / total if tenant in tokens and total > 0 else None,
            requests_per_s=counted[tenant][0] if tenant in counted else None,
            rejected_per_s=counted[tenant][1] if tenant in counted else None,
        )
        for tenant in {*running, *counted, *(each.tenant for each in after.tenants)}
    }


def _counted(before: Overview | None, after: Overview) -> dict[str, tuple[float, float]]:
    """Requests and refusals a second of each tenant at the gateway that answered both looks."""
    old = _same_gateway(before, after)
    seconds = after.gateway.up_s - old.up_s if old else 0.0
    if before is None or old is None or seconds <= 0:
        return {}
    known = {each.tenant: each for each in before.tenants}
    is_whole = before.num_tenants == len(before.tenants)
    found: dict[str, tuple[float, float]] = {}
    for each in after.tenants:
        earlier = known.get(each.tenant)
        if earlier is not None or is_whole:
            asked, refused = (earlier.requests, earlier.rejected) if earlier else (0, 0)
            found[each.tenant] = (max(0, each.requests - asked) / seconds, max(0, each.rejected - refused) / seconds)
    return found


def _new(old: int, new: int) -> int:
    """The growth of a counter; one that is lower than before began anew."""
    return new - old if new >= old else new
