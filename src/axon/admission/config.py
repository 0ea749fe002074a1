"""Admission's section of the settings."""

from dataclasses import dataclass

from axon.domain.tenants.tenant import Terms, Tier


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionConfig:
    """Admission control. Limits up to ``stored_objects`` are defaults for tenants whose plan sets none; 0 sets no
    limit."""

    requests_per_minute: float = 600.0
    """Requests a tenant may send per minute, as a bucket of this size; 0 sets no limit."""
    tokens_per_minute: float = 0.0
    """Tokens a tenant may use per minute, prompt and answer, as a bucket of this size; 0 sets no limit."""
    concurrent: int = 64
    """Turns of one tenant that may be queued or running; the next one gets 429. 0 sets no limit."""
    queued: int = 0
    """The number of those that may wait for a worker; 0 sets no limit."""
    tokens_per_day: int = 0
    """Tokens a tenant may use in a day (UTC); 0 sets no limit."""
    tokens_per_month: int = 0
    """Tokens a tenant may use in a calendar month (UTC); 0 sets no limit."""
    stored_bytes: int = 1 << 30
    """Bytes that may be stored for a tenant: conversations, items, files, stored responses and chats; 0 sets no
    limit."""
    stored_objects: int = 100_000
    """Conversations, items, responses and chats that may be stored for a tenant; 0 sets no limit."""
    backlog_total: int = 256
    """Turns that may be queued or running on a model's shared workers, or in one pool; the next one gets 503. The last
    eighth is for tenants that have no turn waiting."""
    backlog_s: float = 300.0
    """Work that may be queued or running there, in seconds of the workers' measured throughput; the next turn gets 503.
    0 sets no limit."""
    slo_ttft_priority_s: float = 10.0
    """A turn of tier ``priority`` whose first token would come later than this gets 503; 0 sets no limit."""
    slo_ttft_default_s: float = 30.0
    """The same for tier ``default``."""
    slo_ttft_flex_s: float = 120.0
    """The same for tier ``flex``."""
    ticket_s: float = 60.0
    """Seconds without a heartbeat after which a turn's ticket expires: its gateway died before the turn was
    accepted."""

    def patience_s(self, tier: Tier) -> float:
        """Seconds that a turn of the tier may wait for its first token."""
        match tier:
            case Tier.PRIORITY:
                return self.slo_ttft_priority_s
            case Tier.FLEX:
                return self.slo_ttft_flex_s
        return self.slo_ttft_default_s

    @property
    def terms(self) -> Terms:
        """The limits of a tenant whose plan sets none."""
        return Terms(
            requests_per_minute=self.requests_per_minute,
            tokens_per_minute=self.tokens_per_minute,
            concurrent=self.concurrent,
            queued=self.queued,
            tokens_per_day=self.tokens_per_day,
            tokens_per_month=self.tokens_per_month,
            stored_bytes=self.stored_bytes,
            stored_objects=self.stored_objects,
        )
