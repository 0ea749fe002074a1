"""Writes the golden payloads of release 0.1, as plain maps that know none of today's classes. Overwrites nothing.

python -m tests.golden.write

A release that changes a format adds files under a new version's name and keeps the old ones: every later release must
read what this one left in a queue, a log or a journal.
"""

from pathlib import Path
from typing import Any

import msgspec

FOLDER = Path(__file__).parent

SAMPLING = {
    "max_tokens": 64,
    "temperature": 0.7,
    "top_k": 40,
    "top_p": 0.9,
    "stop": ["\n\n", "END"],
    "stop_ids": [2, 7],
    "ignore_eos": True,
}
MORE_SAMPLING = {
    "min_p": 0.05,
    "presence_penalty": 0.5,
    "frequency_penalty": -0.5,
    "repetition_penalty": 1.1,
    "logit_bias": [[7, -100.0]],
    "min_tokens": 3,
    "logprobs": 5,
}
CLASSIFIES = {"dimensions": 2, "classes": {"labels": ["sad", "glad"], "activation": "softmax"}}
EMBEDS = {"dimensions": 8, "prompts": [["query", "query: "]], "default_prompt": "query", "shorter": [4]}
JOB = {
    "v": 1,
    "id": "turn_01hf7yat00k3v5q8w2n4m6p0rt",
    "tenant": "acme",
    "deployment": "small",
    "version": "fp_0123456789ab",
    "lane": "small/07",
    "prompt_ids": [1, 422, 70000, 2],
    "sampling": SAMPLING,
    "seed": 2**63 - 1,
    "deadline": 1700000600.25,
    "created": 1700000000.5,
    "ticket": "k0000001:1024",
    "priority": -3,
    "session": "sess_1",
    "idempotency_key": "order-17",
    "body_digest": "9f86d081",
    "background": True,
    "retain": True,
    "trace": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    "reply": {"route": "chat", "model": "small", "stream": True, "n": 1},
}
CHUNK = {
    "v": 1,
    "first": 5,
    "epoch": 1700000000501,
    "tokens": [[0, 422, " Grüße"], [1, 70000, ""], [0, 9, "🙂"]],
    "ends": [],
    "terminal": "",
    "code": "",
    "message": "",
}
ENDS = {**CHUNK, "first": 8, "tokens": [], "ends": [[0, "stop"], [1, "length"]]}
TERMINAL = {
    **CHUNK,
    "first": 8,
    "tokens": [[0, 3, "!"]],
    "ends": [[0, "length"]],
    "terminal": "failed",
    "code": "worker_crash",
    "message": "This request crashed the engine repeatedly.",
}
OPENED = {
    "v": 1,
    "id": JOB["id"],
    "tenant": "acme",
    "state": "opened",
    "opened_at": 1700000000.5,
    "ended_at": None,
    "job": JOB,
    "tokens": [],
    "ends": [],
    "usage": {"prompt_tokens": 0, "cached_tokens": 0, "output_tokens": 0},
    "code": "",
    "message": "",
}
USAGE = {"prompt_tokens": 4, "cached_tokens": 3, "output_tokens": 2}
COMPLETED = {
    **OPENED,
    "state": "completed",
    "ended_at": 1700000002.75,
    "tokens": [[0, 422, " Grüße"], [0, 9, "🙂"]],
    "ends": [[0, "stop"]],
    "usage": USAGE,
}
FAILED = {
    **OPENED,
    "state": "failed",
    "ended_at": 1700000003.0,
    "usage": {"prompt_tokens": 4, "cached_tokens": 0, "output_tokens": 0},
    "code": "worker_crash",
    "message": "This request crashed the engine repeatedly.",
}
ITEM = {"type": "message", "id": "msg_1", "role": "user", "texts": ["Grüße ", "🙂"], "status": "incomplete"}
RESPONSE_JOB = {
    **JOB,
    "id": "resp_01hf7yat00k3v5q8w2n4m6p0rt",
    "session": "conv_1",
    "ordinal": 3,
    "previous": "resp_0",
    "items": [ITEM],
    "forget": True,
}
"""Of a response: what was said in it, and where it stands in its session. Added to jobs before 0.1 was released."""
RESPONSE = {**COMPLETED, "id": RESPONSE_JOB["id"], "job": RESPONSE_JOB}
CHOICES = {
    **CHUNK,
    "tokens": [
        [1, 422, " Grüße", {"bytes": b" Gr\xc3\xbc\xc3\x9fe", "logprob": -0.25, "top": [[b"!", -1.5]], "offset": 3}]
    ],
    "ends": [[1, "stop", 5]],
    "cached": 32,
}
REASONING = {**CHUNK, "tokens": [[0, 9, "", {"reasoning": "hmm"}]], "reasoned": 1}
LEDGER = {
    "queued": 4,
    "prefilled": 1,
    "cached": 3,
    "emitted": 2,
    "replayed": 6,
    "wasted": 5,
    "attempts": 2,
    "queue_s": 0.25,
    "prefill_s": 0.5,
    "decode_s": 1.25,
    "replay_s": 0.125,
    "waited_s": 0.0625,
    "paced_s": 0.03125,
}
"""What a turn took. Added to chunks and turns before 0.1 was released."""
SERVED = {
    "name": "small",
    "version": "fp_0123456789ab",
    "text": "0a1b2c3d4e5f",
    "max_model_len": 8192,
    "created": 1700000000.5,
    "owned_by": "acme",
    "temperature": 0.2,
    "top_p": 0.9,
    "top_k": 40,
    "reasons": True,
}
LOAD = {"slots": 16, "free_slots": 3, "num_tokens": 4096}
PRESENCE = {
    "v": 1,
    "worker": "host-1f2e-0",
    "incarnation": "worker-0123456789ab",
    "deployment": SERVED,
    "load": LOAD,
    "draining": True,
    "at": 1700000003.25,
}
RESIDENCE = {
    "v": 1,
    "worker": "host-1f2e-0",
    "incarnation": "worker-0123456789ab",
    "num_prompt": 1000,
    "num_tokens": 1234,
    "num_blocks": 77,
    "at": 1700000003.25,
}
MARKER = {"v": 1, "barrier": "00112233445566778899aabbccddeeff"}
LATER = {"v": 2, "added_later": {"by": ["somebody", 2]}}
"""What a release we do not know may add."""

COMPLETION_REPLY = {
    "route": "completion",
    "model": "small",
    "include_usage": True,
    "continuous_usage": True,
    "echo": ["a", "b"],
    "prompt_only": True,
    "best": 2,
    "hides_logprobs": True,
}
RESPONSE_REPLY = {
    "route": "response",
    "model": "small",
    "instructions": "Be brief.",
    "max_output_tokens": 9,
    "truncation": "auto",
    "user": "u",
    "safety_identifier": "s",
    "prompt_cache_key": "k",
    "metadata": {"order": "17"},
}
MESSAGES_REPLY = {"route": "messages", "model": "small", "hides_thinking": True}
PINNED = {"tracestate": "vendor=1", "pin": "9f86d081", "generation": 2, "needs": ["grammar"], "price": "price_1"}
RATES = {"prompt": 150_000_000, "cached": 30_000_000, "output": 10**18, "currency": "EUR"}
COST = {"price": "price_1", "amount": {"units": 2**33, "nanos": 999_999_999, "currency": "EUR"}}
PRICED = {"price": "price_1", "rates": RATES}
SCORED = {
    **CHUNK,
    "tokens": [
        [
            0,
            9,
            "!",
            {
                "bytes": b"!",
                "logprob": -0.5,
                "top": [],
                "offset": 0,
                "prompt": [[b"a", None, []], [b"b", -1.5, [[b"c", -0.25]]]],
            },
        ]
    ],
}
RANKED = {
    **CHUNK,
    "tokens": [
        [
            0,
            9,
            "!",
            {
                "prompt": [[b"a", None, []], [b"b", -1.5, [[b"c", -0.25]]], [b"d", -9.0, []]],
                "ranks": [[3, [99]], [70000, []]],
            },
        ]
    ],
}
PAYLOADS: dict[str, dict[str, Any]] = {
    "job-v1": JOB,
    "chunk-v1": CHUNK,
    "chunk-ends-v1": ENDS,
    "chunk-terminal-v1": TERMINAL,
    "turn-opened-v1": OPENED,
    "turn-completed-v1": COMPLETED,
    "turn-failed-v1": FAILED,
    "marker-v1": MARKER,
    "job-response-v1": RESPONSE_JOB,
    "turn-response-v1": RESPONSE,
    "job-choices-v1": {**JOB, "choices": 2, "sampling": {**SAMPLING, **MORE_SAMPLING}},
    "job-prompts-v1": {**JOB, "choices": 6, "more_prompts": [[422], [70000, 2]]},
    "job-echo-v1": {**JOB, "sampling": {**SAMPLING, "logprobs": 0, "prompt_logprobs": True}},
    "chunk-choices-v1": CHOICES,
    "chunk-reasoning-v1": REASONING,
    "job-reasoning-v1": {**JOB, "reasoning": "inside"},
    "turn-reasoning-v1": {**COMPLETED, "usage": {**USAGE, "reasoning_tokens": 1}},
    "chunk-ledger-v1": {**TERMINAL, "ledger": LEDGER},
    "turn-ledger-v1": {**COMPLETED, "ledger": LEDGER},
    "presence-v1": PRESENCE,
    "presence-later": {**PRESENCE, **LATER},
    "residence-v1": RESIDENCE,
    "residence-later": {**RESIDENCE, **LATER},
    "job-affinity-v1": {**JOB, "affinity": "9f86d081884c7d659a2feaa0c55ad015"},
    "job-completion-v1": {**JOB, "reply": COMPLETION_REPLY},
    "job-echo-bare-v1": {**JOB, "reply": {"route": "completion", "model": "small", "echo": "Say "}},
    "job-answer-v1": {**JOB, "reply": RESPONSE_REPLY},
    "job-messages-v1": {**JOB, "reply": MESSAGES_REPLY},
    "chunk-stop-v1": {**CHUNK, "tokens": [[0, 9, "!", {"stop": "END"}]]},
    "job-pinned-v1": {**JOB, **PINNED},
    "job-priced-v1": {**JOB, **PRICED},
    "turn-priced-v1": {**COMPLETED, "job": {**JOB, **PRICED}, "cost": COST},
    "job-moved-v1": {**JOB, "moved": {"old": "small@v1", "new": "other@v1", "reason": "fallback"}, "fallback": "spare"},
    "job-queued-v1": {**JOB, "queued": 3},
    "job-embedding-v1": {**JOB, "needs": ["embeddings"], "reply": {"route": "embedding", "model": "small"}},
    "chunk-vectors-v1": {
        **CHUNK,
        "tokens": [],
        "terminal": "completed",
        "vectors": [b"\x00\x00\x80?", b"\x00\x00\x00\xbf"],
    },
    "job-pairs-v1": {
        **JOB,
        "more_prompts": [[1, 5, 2, 6, 2]],
        "second_starts": [2, 3],
        "choices": 2,
        "needs": ["embeddings", "classes"],
        "reply": {"route": "embedding", "model": "small"},
    },
    "presence-activity-v1": {
        **PRESENCE,
        "load": {
            **LOAD,
            "activity": {
                "running": 13,
                "ttft_counts": [0, 2, 1],
                "gap_counts": [70000],
                "tenants": [{"tenant": "acme", "running": 12, "prompt_tokens": 9, "answer_tokens": 2**33}],
                "gpus": [{"index": 1, "utilization": 0.5, "memory_bytes": 2**36}],
            },
        },
    },
    "presence-classes-v1": {**PRESENCE, "deployment": {**SERVED, "embeds": CLASSIFIES}},
    "presence-embeds-v1": {**PRESENCE, "deployment": {**SERVED, "embeds": EMBEDS}},
    "chunk-scored-v1": SCORED,
    "chunk-ranked-v1": RANKED,
    "job-ranked-v1": {
        **JOB,
        "sampling": {**SAMPLING, "prompt_logprobs": True, "prompt_top": 0},
        "needs": ["prompt_ranks"],
        "reply": {"route": "chat", "model": "small", "prompt_logprobs": 0},
    },
    "job-later": {**JOB, **LATER},
    "chunk-later": {**CHUNK, **LATER},
    "turn-opened-later": {**OPENED, **LATER, "job": {**JOB, **LATER}},
    "turn-completed-later": {**COMPLETED, **LATER, "job": {**JOB, **LATER}},
    "marker-later": {**MARKER, **LATER},
}


def write(folder: Path) -> None:
    """Writes every payload that is not there: one that is, is never written again."""
    for name, payload in PAYLOADS.items():
        path = folder / f"{name}.msgpack"
        if not path.exists():
            path.write_bytes(msgspec.msgpack.encode(payload))


if __name__ == "__main__":
    write(FOLDER)
