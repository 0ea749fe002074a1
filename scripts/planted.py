"""Breaks a rule on purpose, in a copy, and runs the quick test that must notice: does each one?

python scripts/planted.py [NAME ...]

What is planted is found by its text, and the test by its name, so files may move. A text that is no longer there once
is an error: the list must be kept true. Exit code 1 when a breakage goes unnoticed, or a test fails without one.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NOT_COPIED = shutil.ignore_patterns(".*_cache", ".cache", ".git", ".hypothesis", ".peers", ".venv", "__pycache__")
RUN_S = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Breakage:
    """One text for another, and what must notice."""

    name: str
    old: str
    new: str
    test: str = ""
    """The name of a test's function; empty for the import rules, which no test holds."""
    where: str = "src/axon"


BREAKAGES = (
    Breakage(
        name="torn backup",
        old='connection.exec_driver_sql("BEGIN")',
        new="pass",
        test="test_what_is_written_after_the_first_read_is_in_no_table",
    ),
    Breakage(
        name="restored revocations",
        old="apply_kept(connection, kept)\n            settled",
        new="settled",
        test="test_what_was_revoked_and_erased_since_the_backup_stays_so",
    ),
    Breakage(
        name="restored turns",
        old="return [each for each in ids if each not in found]",
        new="return []",
        test="test_a_turn_that_nobody_knows_is_cancelled_and_billed_nothing",
    ),
    Breakage(
        name="erased blocks",
        old="self._drop_place(key)\n        self._unknow(key)",
        new="self._unknow(key)",
        test="test_an_erased_session_is_in_no_tier",
    ),
    Breakage(
        name="damaged blocks",
        old="return zlib.crc32(into, zlib.crc32(place.key)) == self._checksums.get(place.number)",
        new="return True",
        test="test_one_wrong_byte_or_a_cut_file_never_gives_a_wrong_block",
    ),
    Breakage(
        name="auth",
        old="return hmac.compare_digest(key.digest, digest(pepper, secret))",
        new="return True",
        test="test_only_the_right_secret_with_the_right_pepper_matches",
    ),
    Breakage(
        name="allocator",
        old="self._holders[block_id] = self._holders.get(block_id, 0) + 1",
        new="self._holders[block_id] = 1",
        test="test_a_shared_block_is_used_until_its_last_holder_leaves",
    ),
    Breakage(
        name="tenants",
        old="hashlib.blake2b(salt.encode(), digest_size=16)",
        new='hashlib.blake2b(b"", digest_size=16)',
        test="test_equal_tokens_of_different_tenants_have_different_hashes",
    ),
    Breakage(
        name="cursor",
        old="if chunk.first > self.seq + 1:",
        new="if chunk.first > self.seq + 2:",
        test="test_a_chunk_that_does_not_follow_asks_for_the_log_and_moves_nothing",
    ),
    Breakage(
        name="epoch",
        old="return max(stored, int(now * 1000)) + 1",
        new="return stored + 1",
        test="test_an_epoch_grows_over_a_log_that_lost_everything",
    ),
    Breakage(
        name="fence",
        old="    if chunk.epoch != epoch:\n        return AppendStatus.FENCED\n",
        new="",
        test="test_an_old_epoch_is_fenced_and_writes_nothing",
    ),
    Breakage(
        name="registry compares",
        old="    if not records.is_unchanged(old, stored.revision if stored else None):\n        raise _Mismatch\n",
        new="",
        test="test_a_change_compares_the_records_revision_and_gives_it_the_next",
    ),
    Breakage(
        name="registry goes forward",
        old="if self._snapshot is not None and found.revision < self._snapshot.revision:",
        new="if False:",
        test="test_a_lower_revision_is_never_taken_and_confirms_nothing",
    ),
    Breakage(
        name="removal waits",
        old="if await self._holders.behind(wait.revision):",
        new="if False:",
        test="test_a_gateway_with_an_older_view_is_waited_for",
    ),
    Breakage(
        name="import rule",
        old='"""Compare-and-set rule of the token log:',
        new='import axon.gateway\n"""Compare-and-set rule of the token log:',
    ),
    Breakage(
        name="pins",
        old="\nfastapi==",
        new="\nfastapi>=",
        test="test_the_projects_own_lock_has_no_faults",
        where="requirements.lock",
    ),
    Breakage(
        name="weights-damage",
        old="found.st_mtime_ns, found.st_ctime_ns",
        new="found.st_mtime_ns, 0",
        test="test_a_flipped_byte_on_disk_is_found_at_open_and_mended",
    ),
    Breakage(
        name="weights-in-use",
        old="fcntl.flock(self._descriptor, fcntl.LOCK_SH)",
        new="pass",
        test="test_eviction_takes_the_least_recently_used_and_never_what_is_open",
    ),
    Breakage(
        name="weights-resumed",
        old="and (not entry.verified or self.sha256 == entry.sha256):",
        new="and True:",
        test="test_what_a_stopped_fetch_left_is_checked_before_it_is_gone_on_with",
    ),
    Breakage(
        name="weights-one-fetch",
        old="while not _try(descriptor, fcntl.LOCK_EX):",
        new="while False:",
        test="test_many_who_ask_at_once_share_one_download",
    ),
    Breakage(
        name="weights-names",
        old='any(part in ("", ".", "..") for part in parts)',
        new='any(part == "." for part in parts)',
        test="test_a_name_that_is_not_safe_refuses_the_whole_source",
    ),
    Breakage(
        name="rollout warms",
        old="    if cold_pools:\n        missing",
        new="    if False:\n        missing",
        test="test_a_version_that_is_cold_in_a_pool_gets_nothing",
    ),
    Breakage(
        name="rollout samples",
        old="has_enough = min(seen.old.begun, seen.new.begun) >= tolerance.min_samples",
        new="has_enough = True",
        test="test_too_few_samples_hold_the_step_and_abort_nothing",
    ),
    Breakage(
        name="rollout evidence",
        old="support = range(max(0, bad - table.old), min(table.new, bad) + 1)",
        new="support = range(max(0, bad - table.old), min(table.new, bad))",
        test="test_the_expected_likelihood_ratio_is_at_most_one",
    ),
    Breakage(
        name="rollout moves",
        old="_MOVES = (Criterion.ERRORS, Criterion.MUTE)",
        new="_MOVES = (Criterion.ERRORS,)",
        test="test_a_version_that_errs_or_is_mute_fails_so_that_its_sessions_are_moved",
    ),
    Breakage(
        name="rollout keeps counts",
        old="led.observed |= await self._observations.all(rollout.id)",
        new="led.observed = await self._observations.all(rollout.id)",
        test="test_the_samples_of_a_gateway_that_is_gone_still_count",
    ),
    Breakage(
        name="rollout mute",
        old="self._unanswered.pop(turn).counts.mute += 1",
        new="self._unanswered[turn].counts.mute += 1",
        test="test_a_turn_is_mute_once_when_its_first_token_is_late",
    ),
    Breakage(
        name="rollout buckets",
        old="return rollout.new if bucket_of(rollout.id, key) < rollout.share",
        new='return rollout.new if bucket_of(f"{rollout.id}{rollout.share}", key) < rollout.share',
        test="test_a_larger_share_takes_no_session_away_from_the_new_version",
    ),
    Breakage(
        name="rollout stale view",
        old="if rollout is None or not is_fresh or rollout.new in gone:",
        new="if rollout is None or rollout.new in gone:",
        test="test_a_view_that_is_not_fresh_begins_on_the_stable_version_only",
    ),
    Breakage(
        name="rollout lost workers",
        old="if cold and due is not Action.ABORT:",
        new="if False:",
        test="test_a_version_that_has_lost_its_workers_is_not_stepped_on_and_the_rollout_says_so",
    ),
    Breakage(
        name="removal behind the barrier",
        old="await self._lookup.behind_barrier()\n        return await self._pinned.count",
        new="return await self._pinned.count",
        test="test_the_sessions_on_a_version_are_counted_behind_the_barrier",
    ),
    Breakage(
        name="pins move compares",
        old="if held is None or held != old:",
        new="if held is None:",
        test="test_a_move_is_a_compare_and_set_whose_loser_gets_the_winners_pin",
    ),
)


def files(root: Path, where: str) -> Iterator[Path]:
    """The text files there, or the one."""
    place = root / where
    yield from [place] if place.is_file() else sorted(place.rglob("*.py"))


def holding(root: Path, where: str, text: str) -> Path:
    """The one file that has the text, once."""
    found = [path for path in files(root, where) for _ in range(path.read_text().count(text))]
    if len(found) != 1:
        raise LookupError(f"{text!r} is {len(found)} times below {where}, and must be there once")
    return found[0]


def command_of(root: Path, breakage: Breakage) -> list[str]:
    """What must fail when it is planted."""
    if not breakage.test:
        return [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    test = f"def {breakage.test}("
    file = holding(root, "tests", test).relative_to(root)
    pytest = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", "not services"]
    return [*pytest, str(file), "-k", breakage.test]


def runs(copy: Path, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    # Nothing compiled stays: a file that was mended within a second would look like the broken one.
    environ = {**os.environ, "PYTHONPATH": str(copy / "src"), "PYTHONDONTWRITEBYTECODE": "1", "TEST_SEED": ""}
    return subprocess.run(command, cwd=copy, env=environ, capture_output=True, text=True, timeout=RUN_S, check=False)


def noticed(copy: Path, breakage: Breakage) -> str:
    """Empty when all is well, else what is not: the test must pass, fail with the breakage."""
    command, place = command_of(copy, breakage), holding(copy, breakage.where, breakage.old)
    before = runs(copy, command)
    if before.returncode != 0:
        return f"fails without it:\n{before.stdout[-2000:]}{before.stderr[-2000:]}"
    whole = place.read_text()
    place.write_text(whole.replace(breakage.old, breakage.new))
    try:
        after = runs(copy, command)
    finally:
        place.write_text(whole)
    # 1 is a test or a rule that failed; pytest has other codes for tests that it could not run.
    return "" if after.returncode == 1 else f"went unnoticed ({after.returncode}):\n{after.stdout[-2000:]}"


def main() -> int:
    """Plants what is named, or everything."""
    parser = argparse.ArgumentParser(description="Break rules on purpose: does a quick test notice each?")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(each.name for each in BREAKAGES))
    names = parser.parse_args().names
    chosen = [each for each in BREAKAGES if not names or each.name in names]
    num_bad = 0
    with tempfile.TemporaryDirectory(prefix="axon-planted-") as folder:
        copy = Path(folder) / "axon"
        shutil.copytree(ROOT, copy, ignore=NOT_COPIED)
        for breakage in chosen:
            fault = noticed(copy, breakage)
            num_bad += bool(fault)
            by = breakage.test or "lint-imports"
            print(f"{breakage.name}: {fault or f'noticed by {by}'}", flush=True)
    return 1 if num_bad or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
