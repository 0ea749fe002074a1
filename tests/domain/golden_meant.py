"""What the golden payloads of every format mean, as values. Knows no bytes and no test."""

from dataclasses import replace

from axon.domain.billing.cost import Amount, Cost, Rates
from axon.domain.billing.ledger import Ledger
from axon.domain.billing.usage import Usage
from axon.domain.content.item import Item
from axon.domain.job import Job
from axon.domain.log.chunk import Chunk, Details, End, Likely, Ranked, ScoredToken, Token
from axon.domain.model.classes import Activation, Classes
from axon.domain.model.embeds import Embeds
from axon.domain.model.served_version import ServedVersion
from axon.domain.moved import Moved
from axon.domain.presence import Activity, GpuUse, Load, Presence, TenantActivity
from axon.domain.record import Marker
from axon.domain.reply import ChatReply, CompletionReply, EmbeddingReply, MessagesReply, ResponseReply
from axon.domain.sampling import Sampling
from axon.domain.session.residence import Residence
from axon.domain.turn import Turn, TurnState

EXTRA = {"added_later": {"by": ["somebody", 2]}}

JOB = Job(
    v=1,
    id="turn_01hf7yat00k3v5q8w2n4m6p0rt",
    tenant="acme",
    deployment="small",
    version="fp_0123456789ab",
    lane="small/07",
    prompt_ids=(1, 422, 70000, 2),
    sampling=Sampling(
        max_tokens=64,
        temperature=0.7,
        top_k=40,
        top_p=0.9,
        stop=("\n\n", "END"),
        stop_ids=(2, 7),
        ignore_eos=True,
    ),
    seed=9223372036854775807,
    deadline=1700000600.25,
    created=1700000000.5,
    ticket="k0000001:1024",
    priority=-3,
    session="sess_1",
    idempotency_key="order-17",
    body_digest="9f86d081",
    background=True,
    retain=True,
    trace="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    reply=ChatReply(model="small", extra={"stream": True, "n": 1}),
)
CHUNK = Chunk(
    v=1,
    first=5,
    epoch=1700000000501,
    tokens=(Token(0, 422, " Grüße"), Token(1, 70000, ""), Token(0, 9, "🙂")),
)
ENDS = Chunk(v=1, first=8, epoch=1700000000501, ends=(End(0, "stop"), End(1, "length")))
TERMINAL = Chunk(
    v=1,
    first=8,
    epoch=1700000000501,
    tokens=(Token(0, 3, "!"),),
    ends=(End(0, "length"),),
    terminal="failed",
    code="worker_crash",
    message="This request crashed the engine repeatedly.",
)
OPENED = Turn(
    v=1,
    id="turn_01hf7yat00k3v5q8w2n4m6p0rt",
    tenant="acme",
    state=TurnState.OPENED,
    opened_at=1700000000.5,
    ended_at=None,
    job=JOB,
)
PRICED = replace(
    JOB,
    price="price_1",
    rates=Rates(prompt=150_000_000, cached=30_000_000, output=10**18, currency="EUR"),
)
COMPLETED = Turn(
    v=1,
    id="turn_01hf7yat00k3v5q8w2n4m6p0rt",
    tenant="acme",
    state=TurnState.COMPLETED,
    opened_at=1700000000.5,
    ended_at=1700000002.75,
    job=JOB,
    tokens=(Token(0, 422, " Grüße"), Token(0, 9, "🙂")),
    ends=(End(0, "stop"),),
    usage=Usage(prompt_tokens=4, cached_tokens=3, output_tokens=2),
)
FAILED = Turn(
    v=1,
    id="turn_01hf7yat00k3v5q8w2n4m6p0rt",
    tenant="acme",
    state=TurnState.FAILED,
    opened_at=1700000000.5,
    ended_at=1700000003.0,
    job=JOB,
    usage=Usage(prompt_tokens=4),
    code="worker_crash",
    message="This request crashed the engine repeatedly.",
)
RESPONSE_JOB = replace(
    JOB,
    id="resp_01hf7yat00k3v5q8w2n4m6p0rt",
    session="conv_1",
    ordinal=3,
    previous="resp_0",
    items=(Item(type="message", id="msg_1", role="user", texts=("Grüße ", "🙂"), status="incomplete"),),
    forget=True,
)
RESPONSE = replace(COMPLETED, id=RESPONSE_JOB.id, job=RESPONSE_JOB)
CHOICES = Chunk(
    v=1,
    first=5,
    epoch=1700000000501,
    tokens=(
        Token(
            1,
            422,
            " Grüße",
            Details(data=" Grüße".encode(), logprob=-0.25, top=(Likely(b"!", -1.5),), offset=3),
        ),
    ),
    ends=(End(1, "stop", 5),),
    cached=32,
)
CHOICES_JOB = replace(
    JOB,
    choices=2,
    sampling=replace(
        JOB.sampling,
        min_p=0.05,
        presence_penalty=0.5,
        frequency_penalty=-0.5,
        repetition_penalty=1.1,
        logit_bias=((7, -100.0),),
        min_tokens=3,
        logprobs=5,
    ),
)
REASONING = Chunk(v=1, first=5, epoch=1700000000501, tokens=(Token(0, 9, "", Details(reasoning="hmm")),), reasoned=1)
LEDGER = Ledger(
    queued=4,
    prefilled=1,
    cached=3,
    emitted=2,
    replayed=6,
    wasted=5,
    attempts=2,
    queue_s=0.25,
    prefill_s=0.5,
    decode_s=1.25,
    replay_s=0.125,
    waited_s=0.0625,
    paced_s=0.03125,
)
PRESENCE = Presence(
    v=1,
    worker="host-1f2e-0",
    incarnation="worker-0123456789ab",
    deployment=ServedVersion(
        name="small",
        version="fp_0123456789ab",
        text="0a1b2c3d4e5f",
        max_model_len=8192,
        created=1700000000.5,
        owned_by="acme",
        temperature=0.2,
        top_p=0.9,
        top_k=40,
        reasons=True,
    ),
    load=Load(slots=16, free_slots=3, num_tokens=4096),
    draining=True,
    at=1700000003.25,
)
RESIDENCE = Residence(
    v=1,
    worker="host-1f2e-0",
    incarnation="worker-0123456789ab",
    num_prompt=1000,
    num_tokens=1234,
    num_blocks=77,
    at=1700000003.25,
)
MARKER = Marker(v=1, barrier="00112233445566778899aabbccddeeff")
LATER_JOB = replace(JOB, v=2, extra=EXTRA)

MEANT: dict[str, Job | Chunk | Turn | Presence | Residence | Marker] = {
    "job-v1": JOB,
    "job-later": LATER_JOB,
    "job-choices-v1": CHOICES_JOB,
    "job-prompts-v1": replace(JOB, choices=6, more_prompts=((422,), (70000, 2))),
    "job-echo-v1": replace(JOB, sampling=replace(JOB.sampling, logprobs=0, prompt_logprobs=True)),
    "chunk-v1": CHUNK,
    "chunk-choices-v1": CHOICES,
    "chunk-reasoning-v1": REASONING,
    "job-reasoning-v1": replace(JOB, reasoning="inside"),
    "turn-reasoning-v1": replace(COMPLETED, usage=replace(COMPLETED.usage, reasoning_tokens=1)),
    "chunk-ledger-v1": replace(TERMINAL, ledger=LEDGER),
    "turn-ledger-v1": replace(COMPLETED, ledger=LEDGER),
    "chunk-ends-v1": ENDS,
    "chunk-terminal-v1": TERMINAL,
    "chunk-later": replace(CHUNK, v=2, extra=EXTRA),
    "turn-opened-v1": OPENED,
    "turn-opened-later": replace(OPENED, v=2, job=LATER_JOB, extra=EXTRA),
    "turn-completed-v1": COMPLETED,
    "turn-completed-later": replace(COMPLETED, v=2, job=LATER_JOB, extra=EXTRA),
    "turn-failed-v1": FAILED,
    "job-response-v1": RESPONSE_JOB,
    "turn-response-v1": RESPONSE,
    "presence-v1": PRESENCE,
    "presence-later": replace(PRESENCE, v=2, extra=EXTRA),
    "residence-v1": RESIDENCE,
    "residence-later": replace(RESIDENCE, v=2, extra=EXTRA),
    "job-affinity-v1": replace(JOB, affinity="9f86d081884c7d659a2feaa0c55ad015"),
    "job-completion-v1": replace(
        JOB,
        reply=CompletionReply(
            model="small",
            include_usage=True,
            continuous_usage=True,
            echo=("a", "b"),
            prompt_only=True,
            best=2,
            hides_logprobs=True,
        ),
    ),
    "job-echo-bare-v1": replace(JOB, reply=CompletionReply(model="small", echo=("Say ",))),
    "job-answer-v1": replace(
        JOB,
        reply=ResponseReply(
            model="small",
            instructions="Be brief.",
            max_output_tokens=9,
            truncation="auto",
            user="u",
            safety_identifier="s",
            prompt_cache_key="k",
            metadata={"order": "17"},
        ),
    ),
    "job-messages-v1": replace(JOB, reply=MessagesReply(model="small", hides_thinking=True)),
    "chunk-stop-v1": replace(CHUNK, tokens=(Token(0, 9, "!", Details(stop="END")),)),
    "job-pinned-v1": replace(
        JOB, tracestate="vendor=1", pin="9f86d081", generation=2, needs=("grammar",), price="price_1"
    ),
    "job-priced-v1": PRICED,
    "turn-priced-v1": replace(
        COMPLETED, job=PRICED, cost=Cost(price="price_1", amount=Amount(2**33, 999_999_999, "EUR"))
    ),
    "job-moved-v1": replace(JOB, moved=Moved("small@v1", "other@v1", "fallback"), fallback="spare"),
    "job-queued-v1": replace(JOB, queued=3),
    "job-embedding-v1": replace(JOB, needs=("embeddings",), reply=EmbeddingReply(model="small")),
    "job-pairs-v1": replace(
        JOB,
        more_prompts=((1, 5, 2, 6, 2),),
        second_starts=(2, 3),
        choices=2,
        needs=("embeddings", "classes"),
        reply=EmbeddingReply(model="small"),
    ),
    "presence-activity-v1": replace(
        PRESENCE,
        load=replace(
            PRESENCE.load,
            activity=Activity(
                running=13,
                ttft_counts=(0, 2, 1),
                gap_counts=(70000,),
                tenants=(TenantActivity(tenant="acme", running=12, prompt_tokens=9, answer_tokens=2**33),),
                gpus=(GpuUse(index=1, utilization=0.5, memory_bytes=2**36),),
            ),
        ),
    ),
    "presence-classes-v1": replace(
        PRESENCE,
        deployment=replace(
            PRESENCE.deployment,
            embeds=Embeds(dimensions=2, classes=Classes(labels=("sad", "glad"), activation=Activation.SOFTMAX)),
        ),
    ),
    "chunk-vectors-v1": replace(
        CHUNK, tokens=(), terminal="completed", vectors=(b"\x00\x00\x80?", b"\x00\x00\x00\xbf")
    ),
    "presence-embeds-v1": replace(
        PRESENCE,
        deployment=replace(
            PRESENCE.deployment,
            embeds=Embeds(dimensions=8, prompts=(("query", "query: "),), default_prompt="query", shorter=(4,)),
        ),
    ),
    "chunk-scored-v1": replace(
        CHUNK,
        tokens=(
            Token(
                0,
                9,
                "!",
                Details(
                    data=b"!",
                    logprob=-0.5,
                    top=(),
                    offset=0,
                    prompt=(ScoredToken(b"a", None), ScoredToken(b"b", -1.5, (Likely(b"c", -0.25),))),
                ),
            ),
        ),
    ),
    "chunk-ranked-v1": replace(
        CHUNK,
        tokens=(
            Token(
                0,
                9,
                "!",
                Details(
                    prompt=(
                        ScoredToken(b"a", None),
                        ScoredToken(b"b", -1.5, (Likely(b"c", -0.25),)),
                        ScoredToken(b"d", -9.0),
                    ),
                    ranks=(Ranked(3, (99,)), Ranked(70000)),
                ),
            ),
        ),
    ),
    "job-ranked-v1": replace(
        JOB,
        sampling=replace(JOB.sampling, prompt_logprobs=True, prompt_top=0),
        needs=("prompt_ranks",),
        reply=ChatReply(model="small", prompt_logprobs=0),
    ),
    "marker-v1": MARKER,
    "marker-later": Marker(v=2, barrier="00112233445566778899aabbccddeeff"),
}
