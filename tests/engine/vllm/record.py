"""Records what a real vLLM says: ``make record-vllm`` writes recorded.jsonl, which the tests beside it play.

It asks for a bit of everything that the protocol has, of the test model: sampling, log probabilities, grammars,
replays, an abort, refusals and more sequences than there are slots.
"""

import os
from pathlib import Path
from tempfile import TemporaryDirectory

from axon.engine.protocol.codec import Start
from axon.engine.protocol.messages import Abort, Add, Ready, StepOutput
from axon.worker.child.process import foreign_environment
from tests.contracts.engines import KINDS
from tests.engine.builders import make_add
from tests.engine.peer import Peer
from tests.faults.model import CHARACTERS, FOR_VLLM, make_model
from tests.vllm_environment import VARIABLE, wrapped_python

RECORDED = Path(__file__).parent / "recorded.jsonl"
TAP = Path(__file__).parent / "tap"
YES_OR_NO = '{"grammars":[{"lark_grammar":"start: \\"yes\\" | \\"no\\""}]}'


def script() -> list[Add]:
    """What is asked, all at once: more than has room."""
    yes = [CHARACTERS.index(each) for each in "ye"]
    return [
        make_add("greedy", prompt=20, max_tokens=6, tenant="a"),
        make_add(
            "seeded", prompt=20, max_tokens=6, temperature=0.9, top_p=0.9, top_k=50, min_p=0.01, seed=3, tenant="a"
        ),
        make_add("other choice", prompt=20, max_tokens=6, temperature=0.9, seed=3, choice=1, tenant="a"),
        make_add("likely", prompt=[3, 1, 4, 1, 5], max_tokens=3, logprobs=2, prompt_logprobs=True, tenant="b"),
        make_add("ranked", prompt=[3, 1, 4], max_tokens=1, logprobs=0, prompt_logprobs=True, prompt_top=1, tenant="b"),
        make_add("grammar", prompt=[5, 6], max_tokens=20, grammar=YES_OR_NO, tenant="b"),
        make_add("replayed grammar", prompt=[5, 6], output=yes, max_tokens=20, grammar=YES_OR_NO, tenant="b"),
        make_add("no grammar", prompt=[5, 6], max_tokens=20, grammar='{"grammars":[{"lark_grammar":"start: ?"}]}'),
        make_add("penalised", prompt=8, output=[9, 9, 10], max_tokens=7, presence_penalty=1.0, frequency_penalty=0.5),
        make_add("biased", prompt=8, max_tokens=3, repetition_penalty=1.2, logit_bias=((7, 100.0),), stop_ids=(7,)),
        make_add("least", prompt=8, max_tokens=4, min_tokens=2, logit_bias=((7, 100.0),), stop_ids=(7,)),
        make_add("urgent", prompt=8, max_tokens=2, priority=1, ignore_eos=True),
        make_add("empty", prompt=[]),
        make_add("long", prompt=[5] * 600),
        make_add("unknown", prompt=[99_999]),
        make_add("adapted", prompt=4, adapter="d" * 64),
        make_add("aborted", prompt=8, max_tokens=400, ignore_eos=True, tenant="c"),
    ]


def record(python: str, path: Path) -> None:
    """Runs the script with the vLLM of this interpreter."""
    kind = next(kind for kind in KINDS if kind.name == "vllm")
    with TemporaryDirectory() as made:
        folder = make_model(Path(made) / "model", **FOR_VLLM)
        environment = {**foreign_environment(os.environ), "RECORD_TO": str(path)}
        peer = Peer(wrapped_python(Path(made), python, TAP), environment)
        peer.socket.settimeout(600)
        try:
            peer.send(Start(config=kind.config, model_dir=str(folder)))
            peer.receive(Ready)
            _ask(peer, script())
        finally:
            print(peer.close()[1], flush=True)


def _ask(peer: Peer, adds: list[Add]) -> None:
    left = {add.id for add in adds}
    peer.send(*adds)
    while left:
        output = peer.receive(StepOutput)
        left -= {each.id for each in output.refused} | {each.id for each in output.emitted if each.finish}
        if left == {"aborted"} and any(each.id == "aborted" for each in output.emitted):
            peer.send(Abort(ids=["aborted"]))
            peer.receive_until(lambda last: last.counters.num_running == 0)
            return


if __name__ == "__main__":
    record(os.environ[VARIABLE], RECORDED)
    print(f"{RECORDED.name}: {RECORDED.stat().st_size} bytes")
