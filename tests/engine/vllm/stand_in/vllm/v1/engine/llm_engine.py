"""An engine whose next token is a function of all tokens before it, and of the seed."""

import math
import os
import re
import time
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any
from zlib import crc32

from vllm.engine.arg_utils import EngineArgs
from vllm.exceptions import VLLMValidationError
from vllm.sampling_params import SamplingParams
from vllm.v1.structured_output import backend_guidance

VOCABULARY = 250
POISON, HANGING, FAILING = (241, 241, 241), (242, 242, 242), (243, 243, 243)
"""A prompt with these ids in a row kills the process, hangs it, or makes its step raise."""
POISON_EXIT_CODE = 13
_NUM_BLOCKS = 64
_STEP_S = 0.001


@dataclass
class _Structured:
    """A grammar: the texts of a list, as token ids; it ends with the first end token."""

    choices: list[list[int]]
    taken: list[int] = field(default_factory=list)
    is_grammar_ready: bool = True

    @property
    def grammar(self) -> "_Structured":
        return self

    def accept_tokens(self, id: str, token_ids: list[int]) -> bool:
        self.taken += token_ids
        return any(choice[: len(self.taken)] == self.taken for choice in self.choices)

    def next(self) -> int | None:
        for choice in self.choices:
            if choice[: len(self.taken)] == self.taken and len(choice) > len(self.taken):
                return choice[len(self.taken)]
        return None


@dataclass
class _Request:
    id: str
    request_id: str
    prompt: list[int]
    salt: str
    params: SamplingParams
    priority: int
    cached: int
    structured_output_request: _Structured | None = None
    output: list[int] = field(default_factory=list)


class LLMEngine:
    @classmethod
    def from_engine_args(cls, arguments: EngineArgs) -> "LLMEngine":
        if arguments.model.endswith("broken"):
            raise RuntimeError("Model architectures ['Odd'] are not supported for now.")
        return cls(arguments)

    def __init__(self, arguments: EngineArgs) -> None:
        self._arguments = arguments
        self.model_config = SimpleNamespace(dtype="torch.float32", max_model_len=arguments.max_model_len or 1024)
        self.vllm_config = SimpleNamespace(
            cache_config=SimpleNamespace(num_gpu_blocks=_NUM_BLOCKS, block_size=arguments.block_size)
        )
        self._requests: dict[str, _Request] = {}
        self._seen: set[tuple[str, tuple[int, ...]]] = set()
        pool = SimpleNamespace(get_num_free_blocks=lambda: _NUM_BLOCKS - len(self._requests))
        scheduler = SimpleNamespace(requests=self._requests, kv_cache_manager=SimpleNamespace(block_pool=pool))
        self.engine_core = SimpleNamespace(engine_core=SimpleNamespace(scheduler=scheduler), shutdown=lambda: None)

    def add_request(self, request_id: str, prompt: Any, params: SamplingParams, *, priority: int = 0) -> str:
        token_ids, salt = prompt["prompt_token_ids"], prompt.get("cache_salt", "")
        if any(not 0 <= token < VOCABULARY for token in token_ids):
            raise VLLMValidationError(f"Token id {max(token_ids)} is out of vocabulary\nand more lines")
        structured = None
        if params.structured_outputs is not None:
            text = backend_guidance.serialize_guidance_grammar("grammar", params.structured_outputs.grammar)
            structured = _Structured(_choices(text, params.stop_token_ids))
        internal = f"{request_id}-internal"
        request = _Request(request_id, internal, token_ids, salt, params, priority, self._cached(salt, token_ids))
        request.structured_output_request = structured
        self._requests[internal] = request
        return internal

    def abort_request(self, request_ids: list[str]) -> None:
        for id in request_ids:
            self._requests.pop(f"{id}-internal", None)

    def step(self) -> list[Any]:
        running = sorted(self._requests.values(), key=lambda each: each.priority)[: self._arguments.max_num_seqs]
        time.sleep(_STEP_S)
        for request in running:
            _obey(request.prompt)
        return [self._advance(request) for request in running]

    def _cached(self, salt: str, token_ids: list[int]) -> int:
        size = self._arguments.block_size
        num_cached = 0
        for end in range(size, len(token_ids), size):
            key = (salt, tuple(token_ids[:end]))
            num_cached = end if key in self._seen else num_cached
            self._seen.add(key)
        return num_cached

    def _advance(self, request: _Request) -> Any:
        params, is_first = request.params, not request.output
        token = self._draw(request)
        request.output.append(token)
        finish = None
        if token in params.stop_token_ids:
            finish = "stop"
        elif (
            len(request.output) >= params.max_tokens
            or len(request.prompt) + len(request.output) >= self.model_config.max_model_len
        ):
            finish = "length"
        if finish:
            del self._requests[request.request_id]
        completion = SimpleNamespace(token_ids=[token], logprobs=_likely(token, params.logprobs), finish_reason=finish)
        return SimpleNamespace(
            request_id=request.id,
            outputs=[completion],
            prompt_logprobs=_of_prompt(request) if is_first else None,
            num_cached_tokens=request.cached,
        )

    def _draw(self, request: _Request) -> int:
        structured, params = request.structured_output_request, request.params
        if structured is not None and (forced := structured.next()) is not None:
            structured.taken.append(forced)
            return forced
        number = crc32(repr(request.prompt + request.output).encode())
        if params.temperature > 0:
            number += (params.seed or 0) * (len(request.output) + 1)
        token = number % 240
        while token in params.stop_token_ids and len(request.output) < params.min_tokens:
            token = (token + 1) % 240
        return token


def _choices(text: str, ends: list[int]) -> list[list[int]]:
    words = re.findall(r'\\"(\w+)\\"', text)
    return [[*(ord(each) for each in word), *ends[:1]] for word in words]


def _likely(token: int, count: int | None) -> list[dict[int, Any]] | None:
    if count is None:
        return None
    likely = {(token + rank) % 240: SimpleNamespace(logprob=-float(rank), rank=rank + 1) for rank in range(count)}
    return [likely or {token: SimpleNamespace(logprob=0.0, rank=1)}]


def _of_prompt(request: _Request) -> list[dict[int, Any] | None] | None:
    count = request.params.prompt_logprobs
    if count is None:
        return None
    own = SimpleNamespace(logprob=-math.inf, rank=3)
    best = {VOCABULARY - 1 - rank: SimpleNamespace(logprob=-0.5 - rank, rank=rank + 1) for rank in range(min(count, 2))}
    return [None, *({token: own} | best for token in request.prompt[1:])]


def _obey(prompt: list[int]) -> None:
    trigrams = {tuple(prompt[index : index + 3]) for index in range(len(prompt) - 2)}
    if POISON in trigrams:
        os._exit(POISON_EXIT_CODE)
    if FAILING in trigrams:
        raise RuntimeError("CUDA error: an illegal memory access was encountered")
    while HANGING in trigrams:
        time.sleep(3600)
