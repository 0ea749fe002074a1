import subprocess
import sys

from axon.runtime.process_age import process_age_s

PROGRAM = """
import time
time.sleep(0.3)
from axon.runtime.process_age import process_age_s
print(process_age_s())
"""


def test_it_counts_from_the_start_of_the_process_and_not_from_that_of_the_module() -> None:
    ran = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert 0.3 <= float(ran.stdout) < 60


def test_it_grows() -> None:
    first = process_age_s()
    assert 0 < first <= process_age_s()
