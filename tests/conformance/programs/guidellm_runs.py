"""What somebody does who measures a server with guidellm: completions, and conversations that the server keeps."""

import json
import os
import subprocess
import sys
from pathlib import Path

from shared.byte_tokenizer import make_byte_tokenizer

tokenizer_dir = make_byte_tokenizer()


def measure(name, request_format, *, backend="", data=""):
    target = os.environ["BASE_URL"].removesuffix("/v1")
    common = f"kind=openai_http,target={target},model=echo,api_key={os.environ['API_KEY']}"
    command = [
        *(sys.executable, "-m", "guidellm", "run"),
        *("--backend", f"{common},request_format={request_format}{backend}"),
        *("--profile", "kind=concurrent,streams=2"),
        *("--constraint", "kind=max_requests,count=6"),
        *("--tokenizer", f"kind=huggingface_auto,model={tokenizer_dir}"),
        *("--data", f"kind=synthetic_text,prompt_tokens=64,output_tokens=12{data}"),
        *("--disable-console-interactive", "--output", f"kind=json,path={name}.json"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "HF_HUB_OFFLINE": "1"})
    assert done.returncode == 0, (done.stdout[-2000:], done.stderr[-4000:])
    totals = json.loads(Path(f"{name}.json").read_text())["benchmarks"][0]["metrics"]["request_totals"]
    assert (totals["successful"], totals["errored"], totals["incomplete"]) == (6, 0, 0), totals


for kind in sys.argv[1:] or ("completions", "chat", "kept"):
    match kind:
        case "completions":
            measure(kind, "/v1/completions")
        case "chat":
            measure(kind, "/v1/chat/completions")
        case "kept":
            measure(kind, "/v1/responses", backend=",server_history=true", data=",turns=3")
print("ok")
