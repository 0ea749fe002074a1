"""What an agent on Ollama's own package does: offer tools, run the calls, send their results, until an answer comes."""

import os

import ollama

host = os.environ["BASE_URL"].removesuffix("/v1")
client = ollama.Client(host=host, headers={"Authorization": f"Bearer {os.environ['API_KEY']}"})


def get_weather(city: str) -> str:
    """Says how the weather is.

    Args:
      city: The city.
    """
    return f"{city}: 2{len(city)} degrees"


def book(city: str) -> str:
    """Books a journey.

    Args:
      city: The city.
    """
    return f"booked: {city}"


tools = {"get_weather": get_weather, "book": book}


def ask(messages, is_streamed):
    """The answer, put together from its lines if it is streamed."""
    asked = {"model": "echo", "messages": messages, "tools": list(tools.values())}
    if not is_streamed:
        return client.chat(**asked).message
    parts = [part.message for part in client.chat(**asked, stream=True)]
    calls = [call for part in parts for call in part.tool_calls or ()]
    return ollama.Message(role="assistant", content="".join(part.content for part in parts), tool_calls=calls or None)


for is_streamed in (False, True):
    messages = [{"role": "user", "content": "book the warmer of Paris and Rome"}]
    made = []
    for _ in range(4):
        message = ask(messages, is_streamed)
        if not message.tool_calls:
            break
        messages.append(message)
        for call in message.tool_calls:
            made.append(call.function.name)
            result = tools[call.function.name](**call.function.arguments)
            messages.append({"role": "tool", "tool_name": call.function.name, "content": result})
    assert message.content == "Rome is booked.", message
    assert made == ["get_weather", "get_weather", "book"], made
print("ok")
