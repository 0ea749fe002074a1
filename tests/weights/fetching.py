"""A process that fetches a model of a bucket and prints its digest: the tests kill it, or run two of them.

python -m tests.weights.fetching ENDPOINT SOURCE MODELS_DIR [UID]
"""

import asyncio
import os
import sys
from pathlib import Path

from axon.errors import AxonError
from axon.weights.cache import WeightsCache
from tests.weights.conftest import CHECKPOINT, QUICK, bucket_source


async def main(endpoint: str, source: str, models_dir: str, uid: str = "") -> int:
    if uid:
        import obstore.store  # noqa: F401 - while it can still be read

        await asyncio.to_thread(int)  # imports its pool
        os.setuid(int(uid))
    cache = WeightsCache(Path(models_dir), QUICK, checkpoint_bytes=CHECKPOINT)
    try:
        async with cache.opened(bucket_source(endpoint, source)) as weights:
            print(weights.digest, flush=True)
    except AxonError as error:
        print(error.code, error.message, flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(*sys.argv[1:])))
