"""Short ways to make the values the suites pass around. Knows no backend."""

from dataclasses import replace
from typing import Any

from axon.domain.job import Job
from axon.domain.log.chunk import Chunk, End, Token
from axon.domain.model.served_version import ServedVersion
from axon.domain.presence import Load, Presence
from axon.domain.sampling import Sampling
from axon.domain.session.residence import Residence
from axon.domain.tenants.key import Key
from axon.domain.turn import Turn, ended, opened
from axon.ports.live import TokenLog


def make_job(job_id: str = "turn_1", **changes: Any) -> Job:
    job = Job(
        id=job_id,
        tenant="acme",
        deployment="small",
        version="v1",
        lane="small/00",
        prompt_ids=(1, 2, 3),
        sampling=Sampling(max_tokens=8),
        seed=7,
        deadline=1_000.0,
        created=100.0,
        session="sess_1",
    )
    return replace(job, **changes)


async def claim_epoch(log: TokenLog, job_id: str, owner: str, *, over: int) -> int:
    """Claims a job that can be claimed; its new epoch."""
    claimed = await log.claim(job_id, owner, over=over)
    assert claimed is not None
    return claimed.epoch


def make_chunk(first: int, count: int = 1, *, epoch: int = 0, terminal: str = "", ends: tuple[End, ...] = ()) -> Chunk:
    """Tokens ``first`` … of choice 0; each token's id is its seq."""
    tokens = tuple(Token(0, seq, f" {seq}") for seq in range(first, first + count))
    return Chunk(first=first, epoch=epoch, tokens=tokens, terminal=terminal, ends=ends)


def make_ended(job: Job, *, at: float = 200.0, num_tokens: int = 2, state: str = "completed") -> Turn:
    chunk = make_chunk(1, num_tokens, terminal=state, ends=(End(0, "stop"),))
    return ended(opened(job), (replace(chunk, cached=1),), at=at)


def make_key(key_id: str = "k0000001", **changes: Any) -> Key:
    return replace(Key(id=key_id, tenant="acme", digest=b"\x00\xff" * 16, name="ci", created_at=100.0), **changes)


def make_presence(
    worker: str = "w1",
    incarnation: str = "",
    *,
    deployment: str = "small",
    version: str = "v1",
    free_slots: int = 4,
    draining: bool = False,
    zone: str = "",
    at: float = 200.0,
) -> Presence:
    return Presence(
        worker=worker,
        incarnation=incarnation or f"{worker}-life",
        deployment=ServedVersion(name=deployment, version=version, max_model_len=2048, created=100.0),
        load=Load(slots=4, free_slots=free_slots, num_tokens=17),
        draining=draining,
        zone=zone,
        at=at,
    )


def make_residence(worker: str = "w1", *, at: float = 200.0) -> Residence:
    return Residence(worker=worker, incarnation=f"{worker}-life", num_prompt=10, num_tokens=18, num_blocks=1, at=at)
