"""`python -m saccade`, the form in which torchrun starts the command line."""

import os

from saccade.cli.main import main

if __name__ == "__main__":
    # PyTorch's C++ half warns in every process of things that are meant, such as weights that a batch may leave out.
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    main()
