"""`saccade completion SHELL`: its shell understands the script, and Tab then offers what the command takes."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from saccade.cli.completion import completion
from saccade.cli.main import app
from saccade.pipelines.load import bundled_models
from saccade.pipelines.table import TASKS
from tiny import ask

COMMANDS = [name for name in app if not name.startswith("-")]

# What bash does when Tab is pressed after the last word.
PRESS_TAB = """
source saccade.bash
for line in "$@"; do
  IFS=' ' read -ra COMP_WORDS <<< "$line"
  [[ $line == *" " ]] && COMP_WORDS+=("")
  COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMPREPLY=()
  $(complete -p saccade | sed 's/.*-F \\([^ ]*\\).*/\\1/') saccade
  echo "${COMPREPLY[*]}"
done
"""


def pressed(folder: Path, *lines: str) -> list[list[str]]:
    """What bash offers for each line, in a folder, with this interpreter's `saccade`."""
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("bash is not installed")
    (folder / "saccade.bash").write_text(ask("completion", "bash").out)
    program = folder / "bin" / "saccade"
    program.parent.mkdir()
    program.write_text(
        f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -c "from saccade.cli.main import main; main()" "$@"\n'
    )
    program.chmod(0o755)
    ended = subprocess.run(
        [bash, "--norc", "-c", PRESS_TAB, "bash", *lines],
        cwd=folder,
        env=os.environ | {"PATH": f"{program.parent}:{os.environ['PATH']}"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert ended.stderr == ""
    return [line.split() for line in ended.stdout.splitlines()]


def test_bash_completes_commands_options_models_and_recipes(tmp_path: Path) -> None:
    for model in ("runs/essay", "my-model"):
        (tmp_path / model).mkdir(parents=True)
        (tmp_path / model / "config.json").write_text("{}")
    (tmp_path / "mine.toml").write_text("")
    commands, few, options, formats, models, own, below, recipes, files = pressed(
        tmp_path,
        "saccade ",
        "saccade tra",
        "saccade translate --be",
        "saccade tag --format ",
        "saccade translate --model en",
        "saccade show my",
        "saccade evaluate ./ru",
        "saccade train ",
        "saccade train classification mi",
    )
    assert sorted(commands) == sorted(COMMANDS)
    assert sorted(few) == ["train", "transcribe", "transfer", "translate"]
    assert sorted(options) == ["--beam", "--best"]
    assert formats == ["text", "json", "conllu"]
    assert models == [path.name for path in bundled_models() if path.name.startswith("en")]
    assert own == ["my-model"]
    assert below == ["./runs/essay"]
    assert {"en-es", "mine.toml", *TASKS} <= set(recipes)
    assert files == ["mine.toml"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_of_its_shell_and_knows_every_command(shell: str) -> None:
    said = ask("completion", shell)
    assert (said.code, said.err) == (0, "")
    assert all(command in said.out for command in COMMANDS)
    if (program := shutil.which(shell)) is not None:
        subprocess.run([program, "-n"], input=said.out, text=True, check=True, timeout=60)


def test_zsh_finds_the_function_in_the_file_that_the_help_names() -> None:
    # zsh loads a function from a file of its name; under another name the script would define it and complete nothing.
    assert completion.__doc__ is not None
    name = completion.__doc__.partition("~/.zfunc/")[2].split()[0]
    assert f"\n{name}() {{" in ask("completion", "zsh").out


def test_an_unknown_shell_is_one_line() -> None:
    said = ask("completion", "tcsh")
    assert said.code == 2
    assert said.err.count("\n") == 1
    assert "bash" in said.err


def test_pressing_tab_imports_neither_numpy_nor_torch() -> None:
    code = (
        "import sys; from saccade.cli.main import main\n"
        "try: main(['__complete', 'translate', '--model', 'e'])\n"
        "finally: print([name for name in ('numpy', 'torch') if name in sys.modules])"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert "en-es" in ended.stdout
    assert ended.stdout.endswith("[]\n")
