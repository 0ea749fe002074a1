"""Put on the path of an engine under test: makes its steps slow enough to be hit, drafts free, and one prompt deadly.

Python imports this file by itself at the start of a process; in any but an engine's it does nothing.
"""

import os
import sys
import time
from dataclasses import replace
from math import inf
from typing import Any

POISON_EXIT_CODE = 13


def _inject() -> None:
    from axon.engine.core import EngineCore
    from axon.engine.schedule.limits import learned_controller
    from axon.engine.vllm.engine import VllmEngine

    # What is right for steps of a millisecond would let prompts wait for seconds here.
    learned_controller._FIRST_TOKENS = 48
    _make_drafts_free()
    step_s = float(os.environ.get("FAULTS_STEP_S", "0"))
    poison = int(os.environ.get("FAULTS_POISON_ID", "-1"))
    for kind in (EngineCore, VllmEngine):
        _make_slow(kind, step_s, poison)


def _make_drafts_free() -> None:
    """Has a draft head draft for every stream: for so small a model its drafts would never pay."""
    from axon.engine.schedule.limits.learned_controller import LearnedController

    kind: Any = LearnedController
    learned = kind._draft_costs

    def costs(controller: Any, *work: Any) -> Any:
        controller._draft_streams = inf
        found = learned(controller, *work)
        free = {"row_s": 1e-9, "round_s": 1e-9, "draft_row_s": 1e-9, "spend_s": inf, "probe_s": inf}
        return found and replace(found, **free)

    kind._draft_costs = costs


def _make_slow(kind: Any, step_s: float, poison: int) -> None:
    poisoned: set[str] = set()
    add, abort, step = kind.add, kind.abort, kind.step

    def note(engine: Any, new: Any) -> None:
        add(engine, new)  # which first forgets an earlier one of the same id
        if new.prompt_ids.count(poison) >= 3:
            poisoned.add(new.id)

    def forget(engine: Any, ids: list[str]) -> None:
        poisoned.difference_update(ids)
        abort(engine, ids)

    def slowly(engine: Any) -> Any:
        if poisoned:
            os._exit(POISON_EXIT_CODE)
        time.sleep(step_s)
        return step(engine)

    for name, method in {"add": note, "abort": forget, "step": slowly}.items():
        setattr(kind, name, method)


if "axon.engine.process" in sys.orig_argv:
    _inject()
