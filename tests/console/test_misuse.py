"""What the program says to whoever calls it wrongly: one line that names the flag and what it takes."""

import pytest

from tests.console.program import Axon


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["serve", "--port", "abc"], "'--port'"),
        (["serve", "--log-level", "loud"], "'--log-level'"),
        (["serve", "--prot", "1"], "--prot"),
        (["chat", "--temperature", "5"], "'--temperature'"),
        (["chat", "--max-tokens", "0"], "'--max-tokens'"),
        (["sreve"], "Did you mean"),
        (["keys", "rotate"], "ID"),
    ],
)
def test_a_bad_option_is_one_line_on_stderr_with_exit_code_2(axon: Axon, arguments: list[str], said: str) -> None:
    ran = axon(*arguments)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith("axon: ")
    assert said in ran.stderr
    assert "--help" in ran.stderr
    assert len(ran.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["serve", "--port", "99999"], "--port must be a port from 0 to 65535, not 99999."),
        (["worker", "--metrics-port", "-1"], "--metrics-port must be a port from 0 to 65535, not -1."),
        (["serve", "--set", "gateway.port=99999"], "--set gateway.port must be a port from 0 to 65535, not 99999."),
        (["serve", "--port", "9000", "--metrics-port", "9000"], "--port and --metrics-port are both 9000."),
    ],
)
def test_a_setting_out_of_its_range_is_told_by_the_flag_that_was_given(
    axon: Axon, arguments: list[str], said: str
) -> None:
    ran = axon(*arguments)
    assert ran.returncode == 2
    assert ran.stderr.startswith(f"axon: {said}")
    assert len(ran.stderr.splitlines()) == 1


def test_a_group_of_commands_alone_lists_them(axon: Axon) -> None:
    ran = axon("keys")
    assert "rotate" in ran.stdout + ran.stderr
    assert "axon:" not in ran.stderr


def test_the_version_is_a_flag_too(axon: Axon) -> None:
    ran = axon("--version")
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == axon("version").stdout
