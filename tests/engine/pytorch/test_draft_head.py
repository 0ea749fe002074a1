"""The plain twin of a draft head computes what the program that trains heads computes."""

from pathlib import Path

import torch
from training.__main__ import save
from training.head import Head
from training.target import Target

from axon.engine.load.architecture import read_architecture
from axon.engine.load.draft_head import read_head
from axon.engine.pytorch.draft_head import PlainHead
from tests.engine.head_files import make_target

LENGTH, DRAFTS = 12, 4


@torch.no_grad()
def test_the_twin_drafts_what_the_trained_head_would(tmp_path: Path) -> None:
    folder = make_target(tmp_path / "target")
    target = Target(folder, torch.device("cpu"), max_len=LENGTH + DRAFTS, dtype=torch.float32)
    torch.manual_seed(4)
    trained = Head(hidden=48, heads=6, kv_heads=2, dim=8, inner=56, epsilon=1e-5)
    for each in trained.parameters():
        if each.dim() == 2:
            torch.nn.init.normal_(each, std=0.2)
        each.copy_(each.to(torch.bfloat16))  # as they are written
    ids = torch.randperm(272)[:100].sort().values
    save(trained, target, ids, tmp_path / "head")
    head = PlainHead(read_head(tmp_path / "head", read_architecture(folder)), target.embedding, target.output)

    tokens = torch.randint(272, (LENGTH,))
    features, _ = target.read(tokens[None])
    rows = head.fuse(features[0, :-1])
    drafts = head.draft(rows, tokens.tolist(), DRAFTS)
    assert set(drafts) <= set(ids.tolist())

    text = tokens.tolist()
    for step, draft in enumerate(drafts):
        embedded = target.embedding[torch.tensor([*text, *drafts[:step]])[1:]]
        known = torch.cat((features[0, :-1], torch.zeros(step, 144)))
        unrolled = trained.unroll(known[None], embedded[None], target.rotary, step + 1)[step][0, -1]
        scale = torch.rsqrt(unrolled.square().mean() + 1e-5)
        assert int(ids[(target.output[ids] @ (unrolled * scale * trained.norm)).argmax()]) == draft
