"""The command that prints a completion script for a shell."""

from typing import Literal


def completion(shell: Literal["bash", "zsh", "fish"], /) -> int:
    """Print a completion script for a shell, so that Tab completes commands, options, models and recipes.

    For example, until the shell is closed:

        source <(saccade completion bash)

    For every new shell:

        saccade completion bash > ~/.local/share/bash-completion/completions/saccade
        saccade completion zsh > ~/.zfunc/_cyclopts_saccade
        saccade completion fish > ~/.config/fish/completions/saccade.fish

    bash reads that folder if the package bash-completion is installed; otherwise add the line with `source` to
    ~/.bashrc. zsh needs that file name, and `fpath+=(~/.zfunc)` before `compinit` in ~/.zshrc. The folders must exist.

    Parameters
    ----------
    shell:
        The shell that will read the script.
    """
    from saccade.cli.main import app  # the table of commands, which this command is part of

    print(app.generate_completion(shell=shell), end="")
    return 0
