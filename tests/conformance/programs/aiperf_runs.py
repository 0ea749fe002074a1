"""What somebody does who measures a server with aiperf: chats, completions and responses, streamed."""

import json
import os
import subprocess
import sys
from pathlib import Path

from shared.byte_tokenizer import make_byte_tokenizer

tokenizer_dir = make_byte_tokenizer()

for kind in sys.argv[1:] or ("chat", "completions", "responses"):
    command = [
        *(str(Path(sys.executable).with_name("python")), "-m", "aiperf", "profile", "--model", "echo"),
        *("--url", os.environ["BASE_URL"].removesuffix("/v1"), "--api-key", os.environ["API_KEY"]),
        *("--endpoint-type", kind, "--streaming", "--request-count", "6", "--concurrency", "2"),
        *("--synthetic-input-tokens-mean", "30", "--output-tokens-mean", "10"),
        *("--tokenizer", str(tokenizer_dir), "--ui-type", "none", "--artifact-dir", kind),
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, (kind, done.stdout[-4000:], done.stderr[-2000:])
    report = json.loads((Path(kind) / "profile_export_aiperf.json").read_text())
    assert report["request_count"]["avg"] == 6, (kind, report["request_count"])
    assert not report.get("error_summary"), (kind, report["error_summary"])
print("ok")
