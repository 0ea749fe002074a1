"""What a figure was measured on, for the head of a benchmark and its JSON. Measures nothing."""

import os
import platform
import shutil
import subprocess


def machine() -> dict[str, str]:
    """The processor, its cores and its memory."""
    told: list[str] = []
    if shutil.which("lscpu"):
        told = subprocess.run(["lscpu"], capture_output=True, text=True, check=False).stdout.splitlines()
    models = [line.partition(":")[2].strip() for line in told if line.startswith("Model name")]
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cpu": f"{models[0] if models else 'unknown'} ({platform.machine()})",
        "cores": str(len(os.sched_getaffinity(0))),
        "memory": f"{memory_bytes / 2**30:.0f} GiB",
        "python": platform.python_version(),
    }


def load_average() -> list[float]:
    """Of 1, 5 and 15 minutes."""
    return [round(value, 2) for value in os.getloadavg()]
