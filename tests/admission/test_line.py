from axon.adapters.live.memory.accounts import MemoryAccounts
from axon.admission.admission import Admission, Entrant
from axon.admission.config import AdmissionConfig
from axon.admission.line import Line, read_lines
from axon.admission.meters import Meters
from axon.admission.place import Place
from axon.domain.tenants.tenant import Terms
from axon.runtime.clock import FakeClock


async def test_a_line_counts_the_turns_that_wait_at_a_place_and_reading_it_changes_nothing(clock: FakeClock) -> None:
    accounts, meters = MemoryAccounts(clock), Meters()
    admission = Admission(accounts, AdmissionConfig(), clock)
    for number in range(3):
        entrant = Entrant(job_id=f"turn_{number}", tenant="acme", terms=Terms(), deployment="small", num_bytes=400)
        await admission.admit(entrant, meters)
        assert meters.line.waiting == number + 1, "the turn itself is in the line"
    for _ in range(2):
        small, gold = await read_lines(accounts, [Place("small"), Place("small", "gold")])
        assert (small, gold) == (meters.line, Line())
    assert small.work > 300
    assert await read_lines(accounts, []) == []
