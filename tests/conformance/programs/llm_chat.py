"""What somebody does with the command line tool ``llm``: name the server once, ask, go on with a conversation."""

import os
import subprocess
import sys
from pathlib import Path

home = Path.cwd() / "llm"
home.mkdir()
(home / "extra-openai-models.yaml").write_text(
    f"- model_id: axon\n  model_name: echo\n  api_base: {os.environ['BASE_URL']}\n  api_key_name: axon\n"
)


def llm(*arguments):
    command = [sys.executable, "-m", "llm", *arguments]
    done = subprocess.run(command, env={**os.environ, "LLM_USER_PATH": str(home)}, capture_output=True, text=True)
    assert done.returncode == 0, (arguments, done.stdout, done.stderr)
    return done.stdout


llm("keys", "set", "axon", "--value", os.environ["API_KEY"])
streamed = llm("-m", "axon", "What is the capital of France?")
assert "What is the capital of France?" in streamed, streamed
assert llm("-m", "axon", "--no-stream", "What is the capital of France?") == streamed
assert llm("-m", "axon", "-o", "max_tokens", "4", "-o", "temperature", "0", "to be").strip() == "user"
again = llm("-c", "And of Spain?")
assert "to be" in again, again
assert "And of Spain?" in again, again
print("ok")
