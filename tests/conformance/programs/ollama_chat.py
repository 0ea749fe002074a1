"""What somebody does with Ollama's own package: find models, chat and prompt, streamed or not, with options."""

import asyncio
import os

import ollama

host = os.environ["BASE_URL"].removesuffix("/v1")
headers = {"Authorization": f"Bearer {os.environ['API_KEY']}"}
client = ollama.Client(host=host, headers=headers)
said = "user: hello\nassistant:"
messages = [{"role": "user", "content": "hello"}]

assert [each.model for each in client.list().models] == ["echo"]
assert [each.model for each in client.ps().models] == ["echo"]
shown = client.show("echo")
assert "completion" in shown.capabilities, shown
assert shown.modelinfo["axon.context_length"] > 0, shown

whole = client.chat(model="echo", messages=messages)
assert (whole.message.content, whole.done, whole.done_reason) == (said, True, "stop"), whole
assert whole.total_duration >= whole.eval_duration > 0, whole
parts = list(client.chat(model="echo", messages=messages, stream=True))
assert "".join(part.message.content for part in parts) == said, parts
assert [part.done for part in parts] == [False] * (len(parts) - 1) + [True], parts

cut = client.generate(model="echo", prompt="hello", options={"num_predict": 4, "temperature": 0})
assert (cut.response, cut.done_reason, cut.eval_count) == ("user", "length", 4), cut
streamed = client.generate(model="echo", prompt="hello", stream=True, options=ollama.Options(stop=["assistant"]))
assert "".join(part.response for part in streamed) == "user: hello\n"
assert client.generate(model="echo", prompt="hello", raw=True).response == "hello"

for wrong, status in (
    (lambda: client.chat(model="nothing", messages=messages), 404),
    (lambda: client.chat(model="echo", messages=messages, options={"mirostat": 1}), 400),
    (lambda: list(client.chat(model="nothing", messages=messages, stream=True)), 404),
    (lambda: client.embed(model="echo", input="a"), 400),
    (lambda: ollama.Client(host=host).list(), 401),
):
    found = None
    try:
        wrong()
    except ollama.ResponseError as error:
        found = error.status_code
    assert found == status, (found, status)


async def again():
    client = ollama.AsyncClient(host=host, headers=headers)
    parts = [part async for part in await client.chat(model="echo", messages=messages, stream=True)]
    assert "".join(part.message.content for part in parts) == said, parts


asyncio.run(again())
print("ok")
