"""What the type checker knows of packages outlives a clone."""

import os
import shutil
import subprocess
from pathlib import Path

SCRIPT = Path(__file__).parents[1] / "scripts" / "check-types"
CHECKER = """#!/usr/bin/env bash
echo "found: $(cat .mypy_cache/known 2>/dev/null)"
mkdir -p .mypy_cache
echo types >.mypy_cache/known
exit ${CODE:-0}
"""


def clone(folder: Path, lock: str) -> Path:
    (folder / "scripts").mkdir(parents=True)
    shutil.copy(SCRIPT, folder / "scripts")
    (folder / "requirements.lock").write_text(lock)
    (folder / "checker").write_text(CHECKER)
    (folder / "checker").chmod(0o755)
    return folder


def check(folder: Path, cache: Path, **environ: str) -> tuple[int, str]:
    done = subprocess.run(
        [folder / "scripts" / "check-types", "./checker"],
        env={**os.environ, "XDG_CACHE_HOME": str(cache), **environ},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, (done.stdout + done.stderr).strip()


def test_a_fresh_clone_with_the_same_packages_begins_with_what_is_known(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    assert check(clone(tmp_path / "first", "a==1"), cache) == (0, "found:")
    assert check(clone(tmp_path / "second", "a==1"), cache) == (0, "found: types")
    assert check(clone(tmp_path / "other packages", "a==2"), cache) == (0, "found:")
    assert len(list((cache / "axon" / "types").iterdir())) == 2


def test_a_wrong_type_fails_and_nothing_is_kept_of_it(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    assert check(clone(tmp_path / "first", "a==1"), cache, CODE="1") == (1, "found:")
    assert not cache.exists()


def test_an_old_copy_is_made_anew(tmp_path: Path) -> None:
    cache, first = tmp_path / "cache", clone(tmp_path / "first", "a==1")
    check(first, cache)
    [kept] = (cache / "axon" / "types").iterdir()
    (kept / "known").write_text("old\n")
    os.utime(kept, (0, 0))
    check(first, cache)
    assert (kept / "known").read_text() == "types\n"
