"""Chooses tokens from logits in the kernels' threads, by the rules of ``sample.sampler``. Knows no model.

It computes in float32, with an exponential of its own and one fixed order of sums: a row's result is its own to the
bit, whatever the batch, the number of threads and the instruction set. ``sample.sampler`` computes in float64, so near
a boundary the two may choose neighbouring tokens. Both find the token on which a number from 0 to 1 falls; the
boundaries between tokens differ by at most 1e-6. ``tests/engine/native/test_sampler.py`` holds it to that.
"""

from collections.abc import Sequence
from pathlib import Path
from struct import pack
from typing import Any

import numpy as np
import numpy.typing as npt

from axon.engine.batch import Draw, Drawn
from axon.engine.grammar.mask import Words
from axon.engine.native import library
from axon.engine.sample.uniform import MASK
from axon.errors import Misconfigured

Floats = npt.NDArray[np.float32]
_ANSWER = np.dtype(
    [("logprob", np.float64), ("token", np.int32), ("num_top", np.int32), ("rank", np.int32), ("unused", np.int32)]
)


class NativeSampler:
    """Owns the memory of a sampler until ``close``, and its threads unless it is given a model's."""

    def __init__(
        self,
        vocab_size: int,
        *,
        team: int | None = None,
        threads: int = 1,
        passes: str = "",
        build_folder: Path | None = None,
    ) -> None:
        self._library = library.load(build_folder)
        self._vocab_size = vocab_size
        self._packer = _Packer()
        self._own_team: int | None = None if team is not None else self._library.axon_create_team(max(threads, 1))
        team = self._own_team if team is None else team
        self._handle: int | None = team and self._library.axon_create_sampler(team, vocab_size, passes.encode())
        if self._handle is None:
            self.close()
            raise Misconfigured(f"no memory or threads for a sampler, or no passes {passes!r} here")

    def sample(
        self,
        logits: Floats,
        draws: Sequence[Draw],
        *,
        rows: Sequence[int] | None = None,
        masks: Sequence[Words | None] | None = None,
    ) -> list[Drawn]:
        """Returns the token of each draw, with log probabilities where it asks for them.

        Draw i is of row i, or of the row that ``rows`` names; no two are of the same row. The logits are adjusted in
        place meanwhile, and are afterwards what they were. Tokens that its mask does not allow are never chosen, unless
        it allows none.
        """
        assert self._handle is not None, "closed"
        assert logits.dtype == np.float32
        assert logits.shape[1:] == (self._vocab_size,)
        rows = range(len(draws)) if rows is None else rows
        assert len(set(rows)) == len(draws), "a row for each draw"
        assert max(rows, default=-1) < len(logits)
        assert logits.flags.writeable
        requests, ids, biases = self._packer.pack(draws, rows, [self._mask_address(mask) for mask in masks or ()])
        most = max((draw.sampling.logprobs or 0 for draw in draws), default=0)
        answers = np.empty(len(draws), _ANSWER)
        top_ids = np.empty((len(draws), most), np.int32)
        top_logprobs = np.empty((len(draws), most), np.float64)
        result = self._library.axon_sample(
            self._handle,
            library.address(logits),
            requests,
            len(draws),
            ids,
            biases,
            library.address(answers),
            library.address(top_ids),
            library.address(top_logprobs),
            most,
        )
        if result != 0:
            raise MemoryError(f"no memory to sample {len(draws)} rows")
        return _unpack(draws, answers, top_ids, top_logprobs)

    def close(self) -> None:
        """Frees the memory and ends the threads that are its own; a second call does nothing."""
        if self._handle is not None:
            self._library.axon_destroy_sampler(self._handle)
            self._handle = None
        if self._own_team is not None:
            self._library.axon_destroy_team(self._own_team)
            self._own_team = None

    def __del__(self) -> None:
        if getattr(self, "_library", None) is not None:
            self.close()

    def _mask_address(self, mask: Words | None) -> int:
        if mask is None:
            return 0
        assert mask.dtype == np.uint32
        assert mask.shape == (-(-self._vocab_size // 32),)
        return library.address(mask) or 0


class _Packer:
    """Puts draws into the form that the kernels take: requests, and their token ids and biases one behind the other."""

    def __init__(self) -> None:
        self._prompts: dict[int, tuple[tuple[int, ...], bytes]] = {}
        """The prompts of the call before, by identity: a prompt is packed for its first draw, not for each."""

    def pack(self, draws: Sequence[Draw], rows: Sequence[int], masks: Sequence[int]) -> tuple[bytes, bytes, bytes]:
        requests = bytearray(library.REQUEST.size * len(draws))
        ids: list[bytes] = []
        biases: list[float] = []
        num_ids = 0
        prompts_before, self._prompts = self._prompts, {}
        for index, draw in enumerate(draws):
            sampling = draw.sampling
            library.REQUEST.pack_into(
                requests,
                library.REQUEST.size * index,
                sampling.temperature,
                sampling.top_p,
                sampling.min_p,
                sampling.presence_penalty,
                sampling.frequency_penalty,
                sampling.repetition_penalty,
                draw.seed & MASK,
                draw.choice & MASK,
                draw.position & MASK,
                masks[index] if masks else 0,
                rows[index],
                sampling.top_k,
                -1 if sampling.logprobs is None else sampling.logprobs,
                -1 if draw.given is None else draw.given,
                num_ids,
                len(sampling.logit_bias),
                len(draw.prompt_ids),
                len(draw.output_ids),
                len(draw.banned_ids),
                len(biases),
            )
            num_ids += len(sampling.logit_bias) + len(draw.prompt_ids) + len(draw.output_ids) + len(draw.banned_ids)
            if sampling.logit_bias:
                ids.append(_ints([id for id, _ in sampling.logit_bias]))
                biases += [bias for _, bias in sampling.logit_bias]
            if prompt_ids := draw.prompt_ids:
                packed = prompts_before.get(id(prompt_ids)) or (prompt_ids, _ints(prompt_ids))
                self._prompts[id(prompt_ids)] = packed
                ids.append(packed[1])
            if draw.output_ids:
                ids.append(_ints(draw.output_ids))
            if draw.banned_ids:
                ids.append(_ints(draw.banned_ids))
        return bytes(requests), b"".join(ids), pack(f"{len(biases)}d", *biases)


def _ints(numbers: Sequence[int]) -> bytes:
    return pack(f"{len(numbers)}i", *numbers)  # half the time that numpy takes


def _unpack(draws: Sequence[Draw], answers: npt.NDArray[Any], top_ids: Any, top_logprobs: Any) -> list[Drawn]:
    drawn = []
    for index, (draw, (logprob, token, num_top, rank, _)) in enumerate(zip(draws, answers.tolist(), strict=True)):
        if draw.sampling.logprobs is None:
            drawn.append(Drawn(token))
            continue
        ids, logprobs = top_ids[index, :num_top].tolist(), top_logprobs[index, :num_top].tolist()
        drawn.append(Drawn(token, logprob, tuple(zip(ids, logprobs, strict=True)), rank or None))
    return drawn
