"""Chats that the model writes itself: some questions are ours, most are its own, and all answers are its own.

A chat that begins with the user's header gets a question from the model, which has learned chats from both sides. So
no text of anybody else is needed, and what the head learns is what it will have to guess.
"""

from collections.abc import Sequence
from itertools import product

import torch
from tokenizers import Tokenizer

from training.target import Target, Tensor

SYSTEM = "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
USER, ANSWER, END = "<|im_start|>user\n", "<|im_start|>assistant\n", "<|im_end|>\n"
END_IDS = (0, 2)
MAX_QUESTION, MAX_ANSWER = 120, 400
"""Most tokens of a question and of an answer that the model writes."""
QUESTION_TEMPERATURE = 0.85
OWN_QUESTIONS = 0.5
"""Part of the chats whose first question the model writes too."""
TEMPERATURES, TEMPERATURE_PARTS = (0.0, 0.7, 1.0), (0.45, 0.4, 0.15)

FORMS = (
    "What is {}?",
    "Explain {} to a child of ten.",
    "Explain {} in three sentences.",
    "How does one learn about {}?",
    "Write a short story about {}.",
    "Write a poem about {}.",
    "Give me five facts about {}.",
    "Why does {} matter?",
    "What are the advantages and disadvantages of {}?",
    "Write an email to a colleague about {}.",
    "List the steps to begin with {}.",
    "What is the history of {}?",
    "Tell me a joke about {}.",
    "Write a paragraph for a blog about {}.",
    "What mistakes do beginners make with {}?",
    "Summarise what is known about {}.",
    "Write a dialogue between two friends about {}.",
    "What questions should I ask an expert about {}?",
    "Compare {} with what people did a hundred years ago.",
    "Write a Python function that has to do with {}.",
)
TOPICS = (
    "photosynthesis", "the water cycle", "black holes", "vaccines", "earthquakes", "gravity", "the French Revolution",
    "ancient Rome", "the printing press", "chess", "football", "running a marathon", "baking bread", "making coffee",
    "growing tomatoes", "keeping bees", "dogs", "cats", "elephants", "the moon", "the ocean", "volcanoes", "rainbows",
    "electric cars", "bicycles", "trains", "aeroplanes", "bridges", "solar power", "nuclear power", "batteries",
    "computers", "programming", "databases", "sorting a list", "prime numbers", "fractions", "statistics",
    "machine learning", "the internet", "passwords", "email", "spreadsheets", "budgets", "saving money", "taxes",
    "inflation", "supply and demand", "democracy", "the climate", "recycling", "forests", "deserts", "rivers", "maps",
    "time zones", "languages", "grammar", "poetry", "novels", "films", "painting", "photography", "music", "the piano",
    "the guitar", "dancing", "sleep", "exercise", "healthy food", "vitamins", "the heart", "the brain", "stress",
    "friendship", "teaching", "a job interview", "teamwork", "public speaking", "travel", "a weekend in Paris",
    "camping", "cooking pasta", "soup", "chocolate", "tea", "winter", "summer", "a birthday party", "a wedding",
    "a lost key", "a dragon", "a robot", "a lighthouse", "a small village", "reading a file", "counting words",
    "temperature", "a calculator", "dates and calendars", "a to-do list", "a web page", "testing software",
)  # fmt: skip


def our_questions() -> list[str]:
    """Every form with every topic."""
    return [form.format(topic) for form, topic in product(FORMS, TOPICS)]


class Writing:
    """Chats that grow by one token a step, all at the same position. What is forced on a chat it takes as it is."""

    def __init__(
        self, tokenizer: Tokenizer, openings: Sequence[str], temperatures: Tensor, device: torch.device
    ) -> None:
        self._behind_question = self._ids(tokenizer, END + ANSWER)
        self._behind_answer = self._ids(tokenizer, END + USER)
        ids = [self._ids(tokenizer, opening) for opening in openings]
        longest = max(len(each) for each in ids)
        self._forced = torch.zeros((len(ids), longest), dtype=torch.long)
        for row, each in enumerate(ids):
            self._forced[row, : len(each)] = torch.tensor(each)
        self._forced = self._forced.to(device)
        self._num_forced = torch.tensor([len(each) for each in ids], device=device)
        self._next_forced = torch.zeros_like(self._num_forced)
        self._answers = torch.tensor([opening.endswith(ANSWER) for opening in openings], device=device)
        self._written = torch.zeros_like(self._num_forced)
        self._temperatures = temperatures.to(device)
        self._ends = torch.tensor(END_IDS, device=device)
        self._turns = torch.zeros((2, longest), dtype=torch.long, device=device)
        self._turn_lengths = torch.tensor([len(self._behind_question), len(self._behind_answer)], device=device)
        self._turns[0, : len(self._behind_question)] = torch.tensor(self._behind_question, device=device)
        self._turns[1, : len(self._behind_answer)] = torch.tensor(self._behind_answer, device=device)

    @property
    def temperatures(self) -> Tensor:
        """Of each chat's next token."""
        return torch.where(self._answers, self._temperatures, QUESTION_TEMPERATURE)

    def take(self, drawn: Tensor) -> tuple[Tensor, Tensor]:
        """The next token of each chat, and whether it is the model's own and of an answer."""
        forced = self._next_forced < self._num_forced
        index = self._next_forced.clamp(max=self._forced.shape[1] - 1)
        own = torch.isin(drawn, self._ends)
        self._written = torch.where(forced, 0, self._written + 1)
        most = torch.where(self._answers, MAX_ANSWER, MAX_QUESTION)
        ends = ~forced & (own | (self._written >= most))
        token = torch.where(forced, self._forced.gather(1, index[:, None])[:, 0], torch.where(ends, END_IDS[1], drawn))
        is_answer = ~forced & self._answers
        self._next_forced = self._next_forced + forced.long()
        # An end brings the other side's header; the end's own token is the header's first and was just taken.
        which = self._answers.long()
        self._forced = torch.where(ends[:, None], self._turns[which], self._forced)
        self._num_forced = torch.where(ends, self._turn_lengths[which], self._num_forced)
        self._next_forced = torch.where(ends, 1, self._next_forced)
        self._answers = torch.where(ends, ~self._answers, self._answers)
        return token, is_answer

    @staticmethod
    def _ids(tokenizer: Tokenizer, text: str) -> list[int]:
        ids: list[int] = tokenizer.encode(text, add_special_tokens=False).ids
        return ids


def openings_of(num: int, random: torch.Generator) -> list[str]:
    """How chats begin: with a question of ours, or with the header of one that is still to be written."""
    questions = our_questions()
    chosen = torch.randint(len(questions), (num,), generator=random).tolist()
    own = (torch.rand(num, generator=random) < OWN_QUESTIONS).tolist()
    return [
        SYSTEM + USER if is_own else f"{SYSTEM}{USER}{questions[index]}{END}{ANSWER}"
        for index, is_own in zip(chosen, own, strict=True)
    ]


class Drawing:
    """Draws a token for each of many texts; on a GPU by graphs, one for each stretch of positions."""

    def __init__(self, target: Target, num_texts: int, stretch: int = 128) -> None:
        self._target, self.num_texts, self._stretch = target, num_texts, stretch
        device = target.device
        self._tokens = torch.zeros(num_texts, dtype=torch.long, device=device)
        self._temperatures = torch.zeros(num_texts, device=device)
        self._position = torch.zeros(1, dtype=torch.long, device=device)
        self._graphs: dict[int, tuple[torch.cuda.CUDAGraph, Tensor]] = {}
        target.open_cache(num_texts)

    def draw(self, tokens: Tensor, position: int, temperatures: Tensor) -> Tensor:
        """The tokens behind ``tokens``, which stand at ``position``."""
        length = min((position // self._stretch + 1) * self._stretch, self._target.max_len)
        if self._target.device.type == "cuda" and length not in self._graphs:
            self._graphs[length] = self._record(length)
        self._tokens.copy_(tokens)
        self._temperatures.copy_(temperatures)
        self._position.fill_(position)
        if self._target.device.type != "cuda":
            return self._step(length)
        graph, drawn = self._graphs[length]
        graph.replay()
        return drawn

    def _record(self, length: int) -> tuple[torch.cuda.CUDAGraph, Tensor]:
        self._position.fill_(length - 1)  # what is written there is written again before it is read
        side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            self._step(length)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            drawn = self._step(length)
        return graph, drawn

    def _step(self, length: int) -> Tensor:
        logits = self._target.step(self._tokens, self._position, length).float()
        noise = -torch.empty_like(logits).exponential_().log_()
        return (logits + self._temperatures[:, None] * noise).argmax(-1)


def write(
    drawing: Drawing, target: Target, tokenizer: Tokenizer, openings: Sequence[str], temperatures: Tensor
) -> tuple[Tensor, Tensor]:
    """Writes chats to the target's longest length: tokens, and which of them are drawn for answers."""
    writing = Writing(tokenizer, openings, temperatures, target.device)
    shape = (len(openings), target.max_len)
    tokens = torch.zeros(shape, dtype=torch.long, device=target.device)
    answers = torch.zeros(shape, dtype=torch.bool, device=target.device)
    tokens[:, 0], answers[:, 0] = writing.take(tokens[:, 0])
    for position in range(target.max_len - 1):
        drawn = drawing.draw(tokens[:, position], position, writing.temperatures)
        tokens[:, position + 1], answers[:, position + 1] = writing.take(drawn)
    return tokens.cpu(), answers.cpu()
