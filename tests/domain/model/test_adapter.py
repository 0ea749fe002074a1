"""Adapters in jobs, pins and the registry: who may take such a job, what a session is pinned to, whose one is."""

from dataclasses import replace

from axon.domain import wire
from axon.domain.job import Job
from axon.domain.job_body import ADAPTERS, FEATURES, Beyond, read_job
from axon.domain.model.adapter import JobAdapter, adapted, mark_of, split_adapted
from axon.domain.registry.adapter import Adapter, AdapterFiles
from axon.domain.registry.deployment import MemberState
from axon.domain.registry.record import record_of, row_of, snapshot_of
from axon.domain.registry.snapshot import adapter_of
from axon.domain.session.pin import Known, Pin, Reason, reason_to_move, renamed, with_adapter
from tests.domain.golden_meant import JOB

OLD, NEW = "1" * 64, "2" * 64
SQL = Adapter(model="small", label="sql", files=(AdapterFiles(digest=OLD, source="/adapters/sql"),), created=1.0)


def job_with_adapter() -> Job:
    return replace(JOB, adapter=SQL.for_job(mark_of(OLD)), needs=(ADAPTERS,))


def test_a_job_with_an_adapter_comes_back_from_the_wire_whole() -> None:
    job = job_with_adapter()
    assert wire.decode(Job, wire.encode(job)) == job
    assert read_job(wire.encode(job)) == job
    assert job.adapter == JobAdapter(name="small:sql", digest=OLD, source="/adapters/sql")


def test_an_earlier_releases_worker_leaves_a_job_with_an_adapter_alone() -> None:
    read = read_job(wire.encode(job_with_adapter()), FEATURES - {ADAPTERS})
    assert read == Beyond(JOB.id, "needs adapters")


def test_a_job_without_an_adapter_is_pinned_to_its_version_alone() -> None:
    assert JOB.pinned == JOB.version
    pinned = job_with_adapter().pinned
    assert split_adapted(pinned) == (JOB.version, mark_of(OLD))
    assert split_adapted(JOB.version) == (JOB.version, "")


def test_a_session_stays_while_both_its_version_and_its_adapters_files_are_there() -> None:
    known = Known(
        states={"v1": MemberState.READY, "v2": MemberState.CLOSED}, marks={"fp_1": "v1"}, removed=frozenset({"v0"})
    )
    both = with_adapter(known, [mark_of(NEW), mark_of(OLD)])
    pins = {name: Pin(0, adapted(version, mark_of(digest))) for name, version, digest in (
        ("stays", "v1", OLD), ("closed", "v2", OLD), ("gone", "v0", NEW), ("lost", "v1", "3" * 64)
    )}  # fmt: skip
    assert reason_to_move(pins["stays"], both) is None
    assert reason_to_move(pins["closed"], both) is Reason.REMOVED
    assert reason_to_move(pins["gone"], both) is Reason.REMOVED
    assert reason_to_move(pins["lost"], both) is Reason.UNKNOWN
    old = Pin(2, adapted("fp_1", mark_of(OLD)))
    assert renamed(old, both).version == adapted("v1", mark_of(OLD))


def test_new_files_come_first_and_earlier_ones_stay_a_while() -> None:
    adapter = SQL
    for number in range(7):
        adapter = adapter.with_files(AdapterFiles(digest=f"{number}" * 64, source="/x"))
    assert adapter.digest == "6" * 64
    assert [each.digest[0] for each in adapter.files] == ["6", "5", "4", "3", "2"]
    assert adapter.with_files(AdapterFiles(digest="6" * 64, source="/elsewhere")) is adapter
    assert adapter.for_job("4" * 12).digest == "4" * 64
    assert adapter.for_job("9" * 12).digest == "6" * 64


def test_another_tenants_adapter_is_unknown() -> None:
    own = replace(SQL, label="own", tenant="acme")
    snapshot = snapshot_of(1, [row_of(SQL), row_of(own)])
    assert record_of(row_of(own)) == own
    assert adapter_of(snapshot, "small", "own", tenant="acme") == own
    assert adapter_of(snapshot, "small", "own", tenant="other") is None
    assert adapter_of(snapshot, "small", "sql", tenant="other") == SQL
    assert adapter_of(snapshot, "large", "sql", tenant="acme") is None
