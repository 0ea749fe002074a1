"""What a gateway needs to know of a deployment that it offers. Knows no request."""

from dataclasses import dataclass
from typing import Protocol

from axon.domain.model.served_version import ServedVersion
from axon.domain.registry.deployment import Deployment
from axon.domain.registry.model import Capability
from axon.domain.registry.price import Price
from axon.domain.session.pin import Known
from axon.errors import Unavailable
from axon.gateway.offers.fleet import Fleet
from axon.gateway.offers.wait import State
from axon.sessions.prompt import Prompts


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A deployment as it is listed."""

    served: ServedVersion
    """Its stable version."""
    state: State = State.READY
    capabilities: tuple[Capability, ...] = (Capability.CHAT,)
    label: str = ""
    """The label of its stable version, where it is registered."""


class Offer(Protocol):
    """One deployment at this gateway. Its versions are those of ``deployment``."""

    @property
    def name(self) -> str: ...

    @property
    def fleet(self) -> Fleet: ...

    @property
    def is_known(self) -> bool:
        """Whether requests for it can be accepted."""

    def problem(self) -> Unavailable:
        """The error that says why they cannot."""

    @property
    def deployment(self) -> Deployment:
        """The registered deployment, or what the workers' announcements amount to."""

    @property
    def is_fresh(self) -> bool:
        """Whether the deployment is what the registry says now; otherwise sessions begin on the stable version."""

    def pool(self, name: str) -> str:
        """The pool for the turns of a tenant whose terms name this one; raises ``Unavailable`` if it has no worker and
        nobody starts one."""

    def awaits_worker(self, version: str, pool: str) -> bool:
        """Whether a turn that is accepted now waits in its lane until the version has a first worker in the pool."""

    def starts_in_time(self) -> bool:
        """Whether it has no worker because nobody has asked, and one is likely to start within its patience."""

    def known(self) -> Known:
        """What is known of the versions that a session may be pinned to."""

    def check_open(self, version: str) -> None:
        """Raises ``Unavailable`` if no turn may be accepted on one of its versions any more; ask directly before."""

    def served(self, version: str) -> ServedVersion:
        """One of its versions, as its workers serve it."""

    async def prompts(self, version: str) -> Prompts:
        """Tokenizer and template of one of its versions, for its context length."""

    def price(self, version: str, *, at: float) -> Price | None:
        """The price that holds for one of its versions at a time; None where there is none."""

    def listed(self) -> Listed:
        """The deployment as it is listed."""
