"""A conversation in the terminal. Knows a server's answers and a person's lines, nothing of HTTP."""

import shutil
import sys
import termios
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Protocol

from axon.errors import AxonError, NotFound

_HELP = """/model         which model answers, and which there are
/model NAME    talk to another one
/reset         forget the conversation
/help          this
/quit          leave (as ctrl-d does); ctrl-c stops an answer"""
_TOO_LONG = "context_length_exceeded"
MAX_TOKENS = 1024
"""Longest answer where the person names none."""
_CONTROL = dict.fromkeys((*range(32), *range(127, 160)), None) | {9: "\t", 10: "\n"}


class ChatServer(Protocol):
    """The operations of a server that a chat uses."""

    url: str

    def models(self) -> list[str]: ...

    def stream_chat(self, request: "ChatRequest") -> Generator["Piece", None, None]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """One request for an answer; ``temperature`` None leaves it to the server."""

    model: str
    messages: tuple[Mapping[str, str], ...]
    max_tokens: int | None
    """Longest answer; None for what the model's context has room for."""
    temperature: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A piece of an answer."""

    text: str
    is_cut: bool = False
    """Whether the answer ends here because it has reached ``max_tokens``."""


@dataclass(slots=True, kw_only=True)
class Conversation:
    """The messages so far, and the parameters of the next request."""

    system: str | None = None
    max_tokens: int | None = None
    """Longest answer; None for ``MAX_TOKENS``, or less where the model's context has room for less."""
    temperature: float | None = None
    messages: list[dict[str, str]] = field(default_factory=list)

    def request(self, model: str, question: str) -> ChatRequest:
        """The next request."""
        first = [{"role": "system", "content": self.system}] if self.system else []
        messages = (*first, *self.messages, {"role": "user", "content": question})
        max_tokens = self.max_tokens or MAX_TOKENS
        return ChatRequest(model=model, messages=messages, max_tokens=max_tokens, temperature=self.temperature)

    def remember(self, question: str, answer: str) -> None:
        self.messages += [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]


def talk(server: ChatServer, conversation: Conversation, *, model: str | None, history_file: Path) -> int:
    """Asks and answers until the lines end; returns the exit code."""
    chat = _Chat(server, conversation, _choose_model(server, model))
    if not sys.stdin.isatty():
        return chat.answer_lines(_decodable(line.rstrip("\n")) for line in sys.stdin)
    print(f"Talking to {chat.model} at {server.url}. /help lists the commands, ctrl-d leaves.")
    with _readline_history(history_file):
        chat.answer_lines(_typed_lines(), on_interrupt=lambda: print("\n(stopped)"))
    return 0


class _Chat:
    def __init__(self, server: ChatServer, conversation: Conversation, model: str) -> None:
        self._server = server
        self._conversation = conversation
        self.model = model
        self._is_full = False
        """Whether the last answer may be as long as the context has room for, which is less than usual."""

    def answer_lines(self, lines: Iterator[str], on_interrupt: Callable[[], None] | None = None) -> int:
        """1 when any line could not be answered. With ``on_interrupt``, ctrl-c stops one answer, not all."""
        code = 0
        for line in lines:
            if line.strip() in ("/quit", "/exit"):
                break
            try:
                self._handle(line.strip())
            except AxonError as error:
                print(f"axon: {error.message}", file=sys.stderr)
                code = 1
            except KeyboardInterrupt:
                if on_interrupt is None:
                    raise
                on_interrupt()
        return code

    def _handle(self, line: str) -> None:
        match line.split(maxsplit=1):
            case []:
                pass
            case ["/help"]:
                print(_HELP)
            case ["/reset"]:
                self._conversation.messages.clear()
                print("Forgotten.")
            case ["/model"]:
                for each in self._server.models():
                    print(f"{'*' if each == self.model else ' '} {each}")
            case ["/model", name]:
                self.model = _choose_model(self._server, name.strip())
                print(f"Talking to {self.model}.")
            case [word, *_] if word.startswith("/") and word.count("/") == 1:
                print(f"{word} is no command; /help lists them.")
            case _:
                self._ask(line)

    def _ask(self, question: str) -> None:
        """Prints the answer as it comes. What was said before it broke off stays part of the conversation."""
        pieces: list[str] = []
        request = self._conversation.request(self.model, question)
        with _Answer() as answer:
            try:
                with closing(self._pieces(request)) as stream:
                    for piece in stream:
                        pieces.append(piece.text)
                        answer.show(piece.text)
                        answer.is_cut |= piece.is_cut
            finally:
                if pieces:
                    self._conversation.remember(question, "".join(pieces))
        if answer.is_cut and self._is_full:
            print("(cut: the model's context is full; /reset begins anew)", file=sys.stderr)
        elif answer.is_cut:
            print(f"(cut after {request.max_tokens} tokens: --max-tokens allows more)", file=sys.stderr)

    def _pieces(self, request: ChatRequest) -> Generator[Piece, None, None]:
        """The answer. Where the context has no room for the usual length, it is as long as there is room for."""
        self._is_full = False
        try:
            yield from self._server.stream_chat(request)
        except AxonError as error:
            if error.code != _TOO_LONG or self._conversation.max_tokens is not None:
                raise
            self._is_full = True
            yield from self._server.stream_chat(replace(request, max_tokens=None))


class Wrapped:
    """Breaks a text that comes in pieces into lines of whole words, for a terminal. No I/O: gives back what to print.

    Every character is printed at once; a word that reaches the edge is erased there and printed on the next line.
    """

    def __init__(self, columns: int) -> None:
        self._columns = columns
        self._column = 0
        """Columns of the current line in use."""
        self._word = ""
        """The word so far; all of it is printed."""

    def feed(self, piece: str) -> str:
        """Returns the characters to print for this piece."""
        return "".join(self._take(character) for character in piece)

    def _take(self, character: str) -> str:
        if character.isspace():
            return self._take_blank(character)
        self._word += character
        if self._column < self._columns:
            self._column += 1
            return character
        num_printed = len(self._word) - 1
        if num_printed >= self._columns:  # no line holds this word: the terminal breaks it
            self._column = 1
            return character
        self._column = len(self._word)
        erase = f"\x1b[{num_printed}D\x1b[K" if num_printed else ""
        return f"{erase}\n{self._word}"

    def _take_blank(self, character: str) -> str:
        self._word = ""
        if character == "\n":
            self._column = 0
        elif self._column < self._columns:
            self._column += 1
        else:
            return ""  # the next word begins a line, where no blank is wanted
        return character


class _Answer:
    """An answer on its way to the screen: at a terminal in whole words, without echo of what is typed meanwhile."""

    def __init__(self) -> None:
        self.is_cut = False
        self._wrapped = Wrapped(shutil.get_terminal_size().columns) if sys.stdout.isatty() else None
        self._quiet = _without_echo()

    def __enter__(self) -> "_Answer":
        self._quiet.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._quiet.__exit__(kind, error, trace)
        if kind is None:
            print()

    def show(self, piece: str) -> None:
        text = _printable(piece)
        print(self._wrapped.feed(text) if self._wrapped else text, end="", flush=True)


@contextmanager
def _without_echo() -> Iterator[None]:
    """Keeps the terminal from showing what is typed; the next prompt gets it."""
    try:
        settings = termios.tcgetattr(sys.stdin)
    except (OSError, ValueError, termios.error):  # no terminal
        yield
        return
    quiet = [*settings[:3], settings[3] & ~termios.ECHO, *settings[4:]]
    termios.tcsetattr(sys.stdin, termios.TCSANOW, quiet)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSANOW, settings)


def _choose_model(server: ChatServer, wanted: str | None) -> str:
    names = server.models()
    if wanted is None and names:
        return names[0]
    if wanted is not None and wanted in names:
        return wanted
    raise NotFound(f"The server has no model {wanted or 'yet'}; it has: {', '.join(names) or 'none'}.")


def _typed_lines() -> Iterator[str]:
    while True:
        try:
            yield _decodable(input("> "))
        except KeyboardInterrupt:
            print()
        except EOFError:
            print()
            return


def _decodable(line: str) -> str:
    """Replaces surrogates of undecodable input by U+FFFD, because no request can carry them."""
    return line.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _printable(text: str) -> str:
    """A model must not be able to steer the terminal."""
    return text.translate(_CONTROL) if sys.stdout.isatty() else text


@contextmanager
def _readline_history(path: Path) -> Iterator[None]:
    """Lines of earlier chats under the arrow keys, in a file for its owner only; without it where there is none."""
    try:
        import readline

        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.touch(mode=0o600)
        readline.read_history_file(path)
        readline.set_history_length(1000)
    except (ImportError, OSError):
        yield
        return
    try:
        yield
    finally:
        readline.write_history_file(path)
