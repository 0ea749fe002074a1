"""Put on the path of vLLM's interpreter: writes down what Axon's side of it is told, what it tells vLLM, and what both
answer, a line of JSON each.

Python imports this file by itself at the start of a process; in any but an engine's it does nothing.
"""

import base64
import json
import os
import sys
from pathlib import Path
from typing import Any


def _tap() -> None:
    from axon.engine.protocol.codec import encode
    from axon.engine.protocol.messages import Abort
    from axon.engine.vllm import opening
    from axon.engine.vllm.engine import VllmEngine

    path = Path(os.environ["RECORD_TO"])
    path.write_text("")

    def write(**line: Any) -> None:
        with path.open("a") as file:
            file.write(json.dumps(line) + "\n")

    def framed(message: Any) -> str:
        return base64.b64encode(encode(message)).decode()

    open_vllm, add, abort, step = opening.open_vllm, VllmEngine.add, VllmEngine.abort, VllmEngine.step

    class Taped:
        """vLLM, with what goes in and out written down."""

        def __init__(self, opened: Any) -> None:
            self._opened, self.llm, self._llm = opened, self, opened.llm

        def __getattr__(self, name: str) -> Any:
            return getattr(self._opened, name)

        def sampling(self, arguments: dict[str, Any], grammar: str) -> Any:
            write(sampling=arguments, grammar=grammar)
            return self._opened.sampling(arguments, grammar)

        def add_request(self, id: str, prompt: Any, params: Any, *, priority: int = 0) -> Any:
            try:
                name = self._llm.add_request(id, prompt, params, priority=priority)
            except self._opened.refusals as error:
                write(add=id, prompt=prompt, priority=priority, refused=str(error))
                raise
            write(add=id, prompt=prompt, priority=priority)
            return name

        def follow(self, id: str, token_ids: list[int]) -> None:
            write(follow=token_ids)
            self._opened.follow(id, token_ids)

        def abort_request(self, ids: list[str]) -> None:
            write(abort=ids)
            self._llm.abort_request(ids)

        def step(self) -> Any:
            outputs = self._llm.step()
            write(step=[_plain(each) for each in outputs])
            return outputs

        def num_free_blocks(self) -> int:
            number = self._opened.num_free_blocks()
            write(free=number)
            return int(number)

    def opened(*arguments: Any) -> Any:
        taped = Taped(open_vllm(*arguments))
        sizes = ("kernel", "max_model_len", "max_sequences", "num_blocks", "block_size", "eos_ids")
        write(opened={name: getattr(taped, name) for name in sizes})
        return taped

    def told_add(engine: Any, message: Any) -> None:
        write(told=framed(message))
        add(engine, message)

    def told_abort(engine: Any, ids: list[str]) -> None:
        if not sys._getframe(1).f_code.co_name.startswith(("add", "_refuse")):  # its own calls are its own affair
            write(told=framed(Abort(ids=ids)))
        abort(engine, ids)

    def told_step(engine: Any) -> Any:
        output = step(engine)
        write(said=framed(output))
        return output

    opening.open_vllm = opened
    for name, method in {"add": told_add, "abort": told_abort, "step": told_step}.items():
        setattr(VllmEngine, name, method)


def _plain(output: Any) -> dict[str, Any]:
    completion = output.outputs[0]
    return {
        "request_id": output.request_id,
        "num_cached_tokens": output.num_cached_tokens,
        "prompt_logprobs": _likely(output.prompt_logprobs),
        "token_ids": list(completion.token_ids),
        "logprobs": _likely(completion.logprobs),
        "finish_reason": completion.finish_reason,
    }


def _likely(rows: Any) -> Any:
    if rows is None:
        return None
    return [row and {str(id): [each.logprob, each.rank] for id, each in row.items()} for row in rows]


if "axon.engine.process" in sys.orig_argv:
    _tap()
