"""Trains the head that drafts for the default model, on one GPU in about ten minutes.

python -m training --model FOLDER --out FOLDER         writes config.json, model.safetensors, training.json
python -m training --model FOLDER --out FOLDER --smoke    a few steps on a CPU: whether it runs

The model writes chats (``texts``), and the head learns to guess the model's distribution of the next tokens, up to four
in a row, each behind its own guesses (``head``). What it reaches is measured on questions that it has not seen.
"""

import argparse
import json
import math
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer
from torch.nn import functional

from training.head import Head
from training.target import Target, Tensor, norm
from training.texts import (
    ANSWER,
    END,
    SYSTEM,
    TEMPERATURE_PARTS,
    TEMPERATURES,
    USER,
    Drawing,
    openings_of,
    write,
)

CORPUS = Path(__file__).resolve().parents[1] / "benchmarks" / "corpora" / "chat.jsonl"
"""Questions that the head never learns from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much is written and learned."""

    seed: int = 20261118
    num_texts: int = 2048
    max_len: int = 768
    rounds: int = 12
    window: int = 512
    batch: int = 64
    steps: int = 2600
    warm_steps: int = 100
    rate: float = 1.2e-3
    unrolled: int = 4
    decay: float = 0.85
    """Weight of each later guess in a row against the one before."""
    inner: int = 768
    vocab: int = 8192
    seconds: float = 330.0
    """The rate falls to nothing by then at the latest."""


SMOKE = Sizes(num_texts=4, max_len=64, rounds=1, window=48, batch=2, steps=3, warm_steps=1, vocab=64, seconds=60)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--rounds", type=int, default=Sizes().rounds)
    parser.add_argument("--seconds", type=float, default=Sizes().seconds)
    options = parser.parse_args()
    sizes = SMOKE if options.smoke else Sizes(rounds=options.rounds, seconds=options.seconds)
    device = torch.device("cuda" if torch.cuda.is_available() and not options.smoke else "cpu")
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    torch.manual_seed(sizes.seed)
    started = time.monotonic()
    target = Target(options.model, device, max_len=sizes.max_len, dtype=dtype)
    tokenizer = Tokenizer.from_file(str(options.model / "tokenizer.json"))
    drawing = Drawing(target, sizes.num_texts)
    held = held_out(drawing, target, tokenizer, sizes)
    tokens, answers = write_all(drawing, target, tokenizer, sizes)
    print(f"{tokens.numel()} tokens, {int(answers.sum())} of answers, {time.monotonic() - started:.0f} s", flush=True)
    for row in range(3):
        print("----", tokenizer.decode(tokens[row, :200].tolist(), skip_special_tokens=False), flush=True)
    del drawing
    target.cache = Tensor()
    ids = commonest(tokens[answers], sizes.vocab, target.config["vocab_size"])
    covered = float(torch.isin(tokens[answers], ids).float().mean())
    print(f"{len(ids)} ids are {covered:.4f} of the answers", flush=True)
    head = Head(
        hidden=target.hidden,
        heads=target.heads,
        kv_heads=target.kv_heads,
        dim=target.dim,
        inner=sizes.inner,
        epsilon=target.epsilon,
    ).to(device)
    trainer = Trainer(target, head, ids.to(device), sizes)
    num_steps = trainer.train(tokens, answers, held)
    reached = {name: trainer.measure(*each) for name, each in held.items()}
    save(head, target, ids, options.out)
    facts = {
        "sizes": asdict(sizes),
        "steps_done": num_steps,
        "covered": covered,
        "reached": reached,
        "tokens_of_answers": int(answers.sum()),
        "device": torch.cuda.get_device_name() if device.type == "cuda" else "cpu",
        "seconds": round(time.monotonic() - started, 1),
    }
    (options.out / "training.json").write_text(json.dumps(facts, indent=2) + "\n")
    print(json.dumps(facts), flush=True)


def write_all(drawing: Drawing, target: Target, tokenizer: Tokenizer, sizes: Sizes) -> tuple[Tensor, Tensor]:
    """Chats of several rounds."""
    random = torch.Generator().manual_seed(sizes.seed)
    parts = torch.tensor(TEMPERATURE_PARTS)
    rounds: list[tuple[Tensor, Tensor]] = []
    for number in range(sizes.rounds):
        chosen = torch.multinomial(parts, sizes.num_texts, replacement=True, generator=random)
        heats = torch.tensor(TEMPERATURES)[chosen]
        rounds.append(write(drawing, target, tokenizer, openings_of(sizes.num_texts, random), heats))
        print(f"round {number} written", flush=True)
    tokens, answers = (torch.cat(each) for each in zip(*rounds, strict=True))
    return tokens, answers


def held_out(drawing: Drawing, target: Target, tokenizer: Tokenizer, sizes: Sizes) -> dict[str, tuple[Tensor, Tensor]]:
    """Answers to the corpus, by temperature."""
    texts = [json.loads(line)["text"] for line in CORPUS.read_text().splitlines()]
    texts = [text for text in texts if len(text) < 400]
    found: dict[str, tuple[Tensor, Tensor]] = {}
    for name, heat in (("greedy", 0.0), ("0.7", 0.7)):
        asked = [texts[index % len(texts)] for index in range(drawing.num_texts)]
        openings = [f"{SYSTEM}{USER}{text}{END}{ANSWER}" for text in asked]
        tokens, answers = write(drawing, target, tokenizer, openings, torch.full((len(asked),), heat))
        length, num = min(sizes.window, target.max_len), min(len(texts), drawing.num_texts)
        found[name] = (tokens[:num, :length], answers[:num, :length])
    return found


def commonest(tokens: Tensor, num: int, vocab_size: int) -> Tensor:
    """The ids that answers have most often, and those that end them, in ascending order."""
    counts = torch.bincount(tokens, minlength=vocab_size)
    counts[[0, 2]] += counts.max() + 1
    return counts.topk(num).indices.sort().values


class Trainer:
    """Trains a head on chats of its target."""

    def __init__(self, target: Target, head: Head, ids: Tensor, sizes: Sizes) -> None:
        self._target, self._head, self._ids, self._sizes = target, head, ids, sizes
        self._output = target.output[ids]
        self._is_drafted = torch.zeros(target.config["vocab_size"], dtype=torch.bool, device=ids.device)
        self._is_drafted[ids] = True

    def train(self, tokens: Tensor, answers: Tensor, held: dict[str, tuple[Tensor, Tensor]]) -> int:
        """Returns the number of steps that were done in the time."""
        sizes, device = self._sizes, self._target.device
        optimiser = torch.optim.AdamW(self._head.parameters(), lr=sizes.rate, betas=(0.9, 0.95), weight_decay=0.01)
        random = torch.Generator().manual_seed(sizes.seed + 1)
        started, order = time.monotonic(), torch.empty(0, dtype=torch.long)
        for step in range(sizes.steps):
            if len(order) < sizes.batch:
                order = torch.randperm(len(tokens), generator=random)
            chosen, order = order[: sizes.batch], order[sizes.batch :]
            done = max(step / sizes.steps, (time.monotonic() - started) / sizes.seconds)
            if done >= 1:
                return step
            rate = (
                sizes.rate
                * min(1.0, (step + 1) / sizes.warm_steps)
                * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * done)))
            )
            for group in optimiser.param_groups:
                group["lr"] = rate
            first = int(torch.randint(sizes.max_len - sizes.window + 1, (1,), generator=random))
            loss = self._loss(tokens[chosen].to(device), answers[chosen].to(device), first)
            optimiser.zero_grad(set_to_none=True)
            torch.autograd.backward(loss)
            torch.nn.utils.clip_grad_norm_(self._head.parameters(), 1.0)
            optimiser.step()
            if step % 200 == 0 or step == 20:
                greedy = self.measure(*held["greedy"])
                print(
                    f"step {step} loss {loss.item():.4f} rate {rate:.2e} {time.monotonic() - started:.0f} s {greedy}",
                    flush=True,
                )
        return sizes.steps

    def _loss(self, tokens: Tensor, answers: Tensor, first: int) -> Tensor:
        features, last = self._target.read(tokens)
        window = slice(first, first + self._sizes.window)
        tokens, answers, features, last = (each[:, window] for each in (tokens, answers, features, last))
        with torch.no_grad():
            likeliest = (last[:, 1:-1] @ self._target.output.T).argmax(-1)
            wanted = (last[:, 1:-1] @ self._output.T).float().softmax(-1).to(last.dtype)
            counted = self._is_drafted[likeliest] & answers[:, 2:]
        total = torch.zeros((), device=tokens.device)
        for step, logits in enumerate(self._guesses(features, tokens)):
            losses = -(wanted * functional.log_softmax(logits.float(), -1)).sum(-1)
            mask = counted[:, step:].float()
            total = total + self._sizes.decay**step * (losses[:, step:] * mask).sum() / mask.sum().clamp(min=1)
        return total

    def _guesses(self, features: Tensor, tokens: Tensor) -> list[Tensor]:
        """Logits over the draft's ids, [text, pair, id] for each guess in a row; pair p guesses token p + 2."""
        with torch.autocast(features.device.type, torch.bfloat16, enabled=features.device.type == "cuda"):
            embedded = self._target.embedding[tokens[:, 1:-1]]
            rows = self._head.unroll(features[:, :-2], embedded, self._target.rotary, self._sizes.unrolled)
            return [
                norm(each, self._head.norm, self._head.epsilon).to(features.dtype) @ self._output.T for each in rows
            ]

    @torch.no_grad()
    def measure(self, tokens: Tensor, answers: Tensor) -> list[float]:
        """How often each guess in a row is right where all before it were; by the likeliest id."""
        right, tried = torch.zeros(self._sizes.unrolled), torch.zeros(self._sizes.unrolled)
        for start in range(0, len(tokens), 32):
            some, counted = (each[start : start + 32].to(self._target.device) for each in (tokens, answers))
            features, _ = self._target.read(some)
            still = counted[:, 2:]
            for step, logits in enumerate(self._guesses(features, some)):
                hits = self._ids[logits.argmax(-1)] == some[:, 2:]
                if step:
                    still = torch.cat((torch.zeros_like(still[:, :1]), still[:, :-1]), 1) & counted[:, 2:]
                tried[step] += still.sum().cpu()
                still = still & hits
                right[step] += still.sum().cpu()
        return [round(float(each), 4) for each in right / tried.clamp(min=1)]


def save(head: Head, target: Target, ids: Tensor, folder: Path) -> None:
    """Writes the head as EAGLE-3 heads are published; the target's own output rows serve as its ``lm_head``."""
    folder.mkdir(parents=True, exist_ok=True)
    named = {name: each.detach().to("cpu", torch.bfloat16).contiguous() for name, each in head.named().items()}
    named["d2t"] = ids.cpu() - torch.arange(len(ids))
    save_file(named, folder / "model.safetensors", metadata={"format": "pt"})
    config = {
        "architectures": ["LlamaForCausalLMEagle3"],
        "model_type": "llama",
        "hidden_size": target.hidden,
        "num_hidden_layers": 1,
        "num_attention_heads": head.heads,
        "num_key_value_heads": head.kv_heads,
        "head_dim": head.dim,
        "intermediate_size": head.gate.out_features,
        "vocab_size": target.config["vocab_size"],
        "draft_vocab_size": len(ids),
        "rms_norm_eps": target.epsilon,
        "rope_theta": target.config["rope_theta"],
        "max_position_embeddings": target.config["max_position_embeddings"],
        "tie_word_embeddings": True,
    }
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")


if __name__ == "__main__":
    main()
