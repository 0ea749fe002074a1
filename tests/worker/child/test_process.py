"""The worker's end of the engine's socket: what is sent in one pass of the event loop goes out together."""

import asyncio
from typing import Any, cast
from unittest.mock import Mock

from axon.domain.sampling import Sampling
from axon.engine.config import EngineConfig
from axon.engine.protocol.codec import Decoder
from axon.engine.protocol.messages import Abort, Add
from axon.worker.child.process import EngineProcess


async def test_messages_of_one_pass_are_sent_together_and_in_their_order() -> None:
    process = EngineProcess(EngineConfig(kind="echo"), None)
    writer = Mock(is_closing=Mock(return_value=False))
    cast("Any", process)._launched = Mock(writer=writer)
    for number in range(3):
        process.add(Add(id=str(number), prompt_ids=[1], sampling=Sampling(max_tokens=1), seed=0))
    process.abort(["1"])
    await asyncio.sleep(0)
    [(data,)] = [call.args for call in writer.write.call_args_list]
    messages = Decoder().feed(data)
    assert [each.id for each in messages if isinstance(each, Add)] == ["0", "1", "2"]
    assert messages[-1] == Abort(ids=["1"])
    process.abort(["2"])
    writer.is_closing.return_value = True
    await asyncio.sleep(0)
    assert writer.write.call_count == 1
