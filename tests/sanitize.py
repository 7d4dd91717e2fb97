"""The C kernels under the sanitizers of addresses and of undefined behaviour: their tests, and random calls.

    python tests/sanitize.py                     # the engine's tests and 2,000 calls
    python tests/sanitize.py --calls 20000       # more of them
    python tests/sanitize.py --no-tests          # calls only

Builds into a cache of its own. Ends with 0 if nothing was reported.
"""

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

TESTS = (
    *("test_kernels.py", "test_kernel_stacks.py", "test_kernel_prompts.py"),
    *("test_loss.py", "test_dropout.py", "test_split_heads.py"),
)
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer", "-g"]
HERE = Path(__file__).parent


def runtime() -> str | None:
    """The sanitizers' libraries, which must be loaded before Python itself; None where there are none."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return None
    found = []
    for name in ("libasan.so", "libubsan.so"):
        command = [compiler, f"-print-file-name={name}"]
        path = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
        if not os.path.isabs(path):
            return None
        found.append(path)
    return " ".join(found)


def run(code: str, cache: Path) -> subprocess.CompletedProcess[str]:
    """Python code in a process whose kernels are built with the sanitizers."""
    environment = os.environ | {
        "LD_PRELOAD": runtime() or "",
        "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=0:exitcode=99",
        "UBSAN_OPTIONS": "print_stacktrace=1:exitcode=99",
        "XDG_CACHE_HOME": str(cache),
        "OMP_NUM_THREADS": "2",
        "PYTHONPATH": os.pathsep.join([str(HERE), *sys.path]),
    }
    prepare = f"import sys; from saccade import native; native.FLAGS[:] = {flags()!r}\n"
    command = [sys.executable, "-c", prepare + code]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def flags() -> list[str]:
    from saccade import native

    # More than one level of optimisation would only hide what the source says.
    return [flag if flag != "-O3" else "-O1" for flag in native.FLAGS if flag not in SANITIZERS] + SANITIZERS


def fuzz(calls: int, seed: int) -> None:
    """Random calls of the library; called in the process that has the sanitizers."""
    from fuzzed_calls import CALLS

    chance = random.Random(seed)
    for _ in range(calls):
        chance.choice(CALLS)(chance)
    print(f"{calls:,} calls")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tests", action=argparse.BooleanOptionalAction, default=True)
    options = parser.parse_args()
    if runtime() is None:
        print("no sanitizers here: their libraries come with gcc", file=sys.stderr)
        return 2
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        work = [("fuzzed calls", f"import sanitize; sanitize.fuzz({options.calls}, {options.seed})")]
        if options.tests:
            files = [str(HERE / name) for name in TESTS]
            work.append(
                ("tests", f"import pytest; sys.exit(pytest.main(['-q', '-x', '-p', 'no:cacheprovider', *{files}]))")
            )
        for name, code in work:
            done = run(code, Path(folder))
            print(f"{name}: {'nothing reported' if done.returncode == 0 else f'exit code {done.returncode}'}")
            print(done.stdout[-2000:])
            if done.returncode:
                print(done.stderr[-6000:], file=sys.stderr)
                failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
