"""Markdown to HTML: what comes out is of a short list, whatever goes in."""

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axon.gateway.pages.rendering.allowed import ATTRIBUTES, TAGS, only_allowed
from axon.gateway.pages.rendering.markdown import render

_OWN = {"class", "target", "rel"}
"""Attributes that we write ourselves: the class of a cell, and those of every link."""
PAYLOADS = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg/onload=alert(1)>",
    "<svg><script>alert(1)</script></svg>",
    "<math><mtext><table><mglyph><style><img src=x onerror=alert(1)>",
    "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
    "<a href='javascript:alert(1)'>x</a>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](java\tscript:alert(1))",
    "[x](&#106;avascript:alert(1))",
    "[x](data:text/html;base64,PHNjcmlwdD4=)",
    "[x](vbscript:msgbox(1))",
    "[x](//evil.example/)",
    "[x](\x01javascript:alert(1))",
    "![x](javascript:alert(1))",
    "![x](https://evil.example/pixel.png)",
    '![x"onerror="alert(1)](https://evil.example/)',
    "<javascript:alert(1)>",
    "[x]: javascript:alert(1)\n\n[x]",
    '[x](https://a.example/"onmouseover="alert(1))',
    "[x](https://a.example/ '\" onclick=\"alert(1)')",
    '```html"onmouseover="alert(1)\n<b>\n```',
    "```<script>alert(1)</script>\nx\n```",
    "`<script>alert(1)</script>`",
    "```python\n'</code></pre><script>alert(1)</script>'\n```",
    "$<script>alert(1)</script>$",
    r"$\text{<img src=x onerror=alert(1)>}$",
    r"$\href{javascript:alert(1)}{x}$",
    r"$$\begin{matrix}<svg onload=alert(1)>\end{matrix}$$",
    r"$\style{background:url(//evil.example)}{x}$",
    r"$\color{red;background:url(//evil.example)}{x}$",
    r"$\class{x}{y}\id{z}$",
    r"\(<script>alert(1)</script>\)",
    "| <script> |\n|---|\n| <img src=x onerror=alert(1)> |",
    "<style>@import '//evil.example/x.css'</style>",
    "<base href=//evil.example/>",
    "<form action=//evil.example><input name=q></form>",
    "<meta http-equiv=refresh content=0;url=//evil.example>",
    "<!--<img src='--><img src=x onerror=alert(1)>'-->",
    "<![CDATA[<script>alert(1)</script>]]>",
    "<?xml version='1.0'?><x>",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "\x00<script\x00>alert(1)</script>",
    "</div></body><script>alert(1)</script>",
]


class Reader(HTMLParser):
    """Notes what a browser would be told."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.problems: list[str] = []
        self.open: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in TAGS:
            self.problems.append(f"tag {tag}")
        for name, value in attrs:
            if name not in ATTRIBUTES.get(tag, {}) and name not in _OWN:
                self.problems.append(f"attribute {name} of {tag}")
            if name == "href" and not re.match(r"(https?://|mailto:)", value or "", re.IGNORECASE):
                self.problems.append(f"address {value}")
        if tag == "a" and dict(attrs).get("href") and "noopener nofollow" not in (dict(attrs).get("rel") or ""):
            self.problems.append("a link that tells where it came from")
        if tag not in ("br", "hr"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.problems.append(f"</{tag}> closes nothing")

    def handle_comment(self, data: str) -> None:
        self.problems.append("comment")

    def handle_decl(self, decl: str) -> None:
        self.problems.append("declaration")

    def handle_pi(self, data: str) -> None:
        self.problems.append("processing instruction")

    def unknown_decl(self, data: str) -> None:
        self.problems.append("unknown declaration")


def check(html: str) -> None:
    reader = Reader(html)
    assert not reader.problems, html
    assert not reader.open, html


@pytest.mark.parametrize("payload", PAYLOADS)
def test_no_payload_comes_out_as_anything_but_text(payload: str) -> None:
    check(render(payload))
    check(render(f"> - {payload}\n>   **{payload}**"))
    check(only_allowed(payload))


_MARKS = ["<", ">", '"', "'", "&", "`", "```", "\n", "\n\n", "|", "-", "[", "](", ")", "!", "$", "$$", "\\", "**"]
_TAGS = [
    "<a ",
    "href=",
    "on",
    "style=",
    "</",
    "/>",
    "<!--",
    "-->",
    "<math>",
    "<pre>",
    "# ",
    "> ",
    "1. ",
    " ",
    "\t",
    "é",
]
_PIECES = st.sampled_from([*PAYLOADS, *_MARKS, *_TAGS])


@given(st.lists(_PIECES | st.text(max_size=5), max_size=25).map("".join))
@settings(deadline=None)
def test_no_tag_or_attribute_outside_of_the_list_ever_comes_out(text: str) -> None:
    check(render(text))
    check(only_allowed(text))


def test_what_models_write_is_shown_as_they_mean_it() -> None:
    html = render(
        "# Title\n\n| a | b |\n|:--|--:|\n| 1 | ~~2~~ |\n\n```python\nprint('x < y')\n```\n\n$x^2$ costs $5 and $6.\n\n"
        "\\[ \\frac{1}{2} \\]\n\nSee <https://a.example/x?y=1&z=2> or ![a picture](http://b.example/p.png)."
    )
    assert html.startswith("<h3>Title</h3>")  # the page has headings of its own above it
    assert '<td class="right"><s>2</s></td>' in html
    assert '<pre class="code" data-language="python"><code><span class="nb">print</span>' in html
    assert "<msup><mi>x</mi><mn>2</mn></msup>" in html
    assert "costs $5 and $6." in html
    assert '<math display="block"><mrow><mfrac>' in html
    assert 'href="https://a.example/x?y=1&amp;z=2" target="_blank" rel="noopener nofollow noreferrer"' in html
    assert ">a picture</a>" in html
    assert "<img" not in html


def test_headings_begin_below_the_pages_own_and_leave_out_no_level() -> None:
    html = render("## a\n\n#### b\n\n# c\n\n### d\n\n###### e\n\n##### f")
    assert re.findall(r"<(h\d)>(\w)", html) == [
        ("h3", "a"),
        ("h4", "b"),
        ("h3", "c"),
        ("h4", "d"),
        ("h5", "e"),
        ("h5", "f"),
    ]


def test_lines_stay_lines_and_a_very_long_paragraph_is_cut_into_pieces() -> None:
    assert render("one\ntwo") == "<p>one<br>\ntwo</p>\n"
    lines = [f"line {number} *of* many" for number in range(1_000)]
    html = render("before\n\n" + "\n".join(lines) + "\n\nafter *all*")
    check(html)
    assert html.count('<p class="piece">') == 20
    assert re.findall(r"line \d+ \*of\* many", html) == lines
    assert html.endswith("<p>after <em>all</em></p>\n")
    check(render("# " + "x" * 20_000))


@pytest.mark.parametrize(
    ("formula", "shown"),
    [
        (r"\text{if a<b and c>d}", "if\xa0a&lt;b\xa0and\xa0c&gt;d</mtext>"),
        (r"\mbox{x<y}", ">x&lt;y</mtext>"),
        (r"\textbf{<table><tr>}", ">&lt;table&gt;&lt;tr&gt;</mtext>"),
        (r"\text{a & b &lt;}", ">a\xa0&amp;\xa0b\xa0&amp;lt;</mtext>"),
        (r"\verb|<i>|", ">&lt;i&gt;</mtext>"),
        ("a<b", "<mi>a</mi><mo>&lt;</mo><mi>b</mi>"),
        (r"\mathbb{R}", "<mi>ℝ</mi>"),
    ],
)
def test_less_than_in_a_formula_is_no_tag_and_nothing_is_lost(formula: str, shown: str) -> None:
    assert shown in render(f"${formula}$")


@pytest.mark.parametrize(("language", "word"), [("r", "$("), ("sql", "a:"), ("go", "<a "), ("lua", "a ")])
def test_code_of_so_many_words_that_its_colours_cost_too_much_is_shown_without_them(language: str, word: str) -> None:
    many, few = word * (39_000 // len(word)), "x = 1"
    html = render(f"```{language}\n{many}\n```\n\n```python\n{few}\n```\n", extras_s=600.0)
    first, second = html.split("</pre>")[:2]
    assert "<span" not in first
    assert "<span" in second
    assert len(html) < 5 * len(many)


def test_a_formula_that_cannot_be_read_is_shown_as_it_is() -> None:
    assert "<code>\\frac{</code>" in render(r"$\frac{$")


@pytest.mark.parametrize("text", ["[" * 50_000, "![[" * 20_000, "*a " * 30_000, ">" * 50_000, "$a " * 20_000])
def test_a_long_run_of_marks_stays_text(text: str) -> None:
    html = render(text)
    assert "<a" not in html
    assert len(html) >= len(text) // 2 or text.startswith(">")
