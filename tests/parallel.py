"""Several processes against one: the long batteries, each with its figures. Gloo, CPU, tiny models.

    python tests/parallel.py equal                  # every family and layout over 50 steps, two and four processes
    python tests/parallel.py checkpoints            # 2 -> 1 -> 2 -> 4 processes, bit for bit
    python tests/parallel.py kills --times 10       # SIGKILL at random moments, elastic restart by torchrun
    python tests/parallel.py namespaces             # two machines: network namespaces joined by a cable (as root)
    python tests/parallel.py scaling                # weak scaling: the same work for each process
    python tests/parallel.py xl --steps 1           # GPT-2 XL on two processes within 24 GB

It ends with exit code 1 if something does not hold.
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from rank_trainings import BLOCK, FAMILIES, Asked

HERE = Path(__file__).parent
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "TORCH_CPP_LOG_LEVEL": "ERROR",
    # Without it, the store of a worker group that died may be found by the next one, which then hangs.
    "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
    "PYTHONPATH": os.pathsep.join([str(HERE), str(HERE.parent / "src")]),
}


def start(processes: int, asked: Sequence[Asked], *more: str, before: Sequence[str] = ()) -> subprocess.Popen[str]:
    """Trainings one after the other; in one process without torchrun."""
    program = [str(HERE / "rank_trainings.py"), json.dumps([asdict(each) for each in asked])]
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(processes), *more]
    alone = processes == 1 and not more
    return subprocess.Popen(
        [*before, *([sys.executable] if alone else torchrun), *program],
        env=os.environ | ENVIRONMENT,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: subprocess.Popen[str]) -> None:
    told = process.communicate()[1]
    if process.returncode:
        raise SystemExit(f"a training ended with code {process.returncode}:\n{told[-3000:]}")


def run(processes: int, *asked: Asked) -> None:
    ended(start(processes, asked, *(["--standalone"] if processes > 1 else [])))


def losses(asked: Asked) -> dict[int, float]:
    told = json.loads((Path(asked.out) / "losses.json").read_text())
    return {int(step): loss for step, loss in told.items()}


def difference(one: Asked, other: Asked) -> float:
    ours, theirs = losses(one), losses(other)
    assert ours.keys() == theirs.keys()
    return max(abs(loss - theirs[step]) for step, loss in ours.items())


def equal(home: Path, arguments: argparse.Namespace) -> bool:
    """Losses of 50 steps, dropout off, and with dropout against two threads of one process."""
    once = {"train": {"validate_every": 50}}
    alone = {
        family: Asked(family, str(home / family), train=once["train"] | {"gradients": "plain"})
        for family in arguments.families
    }
    parts = once["train"] | {"gradients": "threads"}
    dropped = Asked("gpt", str(home / "gpt-dropout"), dropout=0.1, threads=2, train=parts)
    run(1, *alone.values(), dropped)
    good = True
    for processes, layouts in ((2, TWO), (4, FOUR)):
        if arguments.processes not in (0, processes):
            continue
        asked = {
            (family, name): Asked(family, str(home / f"{family}-{name}"), parallel=layout, train=once["train"])
            for name, layout in layouts.items()
            for family in arguments.families
            if name in (arguments.layouts or layouts)
            if family != "rnn" or "tensor" not in layout
        }
        more = replace(dropped, out=str(home / f"dropped-{processes}"), parallel={"sharded": 2, "data": 1}, threads=1)
        run(processes, *asked.values(), *([more] if processes == 2 else []))
        for (family, name), each in asked.items():
            bound, found = 1e-4 if "tensor" in each.parallel else 1e-5, difference(each, alone[family])
            good &= found < bound
            print(
                f"{processes} processes  {family:<12} {name:<22} largest difference of a loss {found:.1e}  < {bound:g}"
            )
        if processes == 2:
            found = difference(more, dropped)
            good &= found < 1e-5
            print(f"{processes} processes  gpt, dropout 0.1, sharded: {found:.1e} from one process with two threads")
    return good


TWO: dict[str, dict[str, Any]] = {
    "DDP": {"data": 2},
    "FSDP2": {"sharded": 2},
    "FSDP2, checkpointing": {"sharded": 2, "checkpointing": "full"},
    "tensor": {"tensor": 2},
}
BOTH = {"sharded": 2, "tensor": 2}
FOUR: dict[str, dict[str, Any]] = {
    "sharded x tensor": BOTH,
    "data x sharded": {"data": 2, "sharded": 2},
    "data x tensor": {"data": 2, "tensor": 2},
}


def checkpoints(home: Path, arguments: argparse.Namespace) -> bool:
    """One training on 2, 1, 2 and 4 processes: what each one has read is what the one before has written."""
    import torch

    from saccade.train.checkpoint import Checkpoint, read_checkpoint
    from saccade.train.checkpoint import checkpoints as found_in

    way: list[tuple[int, dict[str, int]]] = [(2, {"sharded": 2}), (1, {}), (2, {"tensor": 2}), (4, BOTH), (1, {})]
    good, home, kept = True, home / "gpt", list[Checkpoint]()
    for number, (processes, layout) in enumerate(way):
        asked = Asked("gpt", str(home), 30, layout, resume=number > 0, stop=3 * (number + 1))
        asked = replace(asked, train={"validate_every": 3})
        run(processes, *([replace(asked, echo=True)] if number else []), asked)
        if number:
            written, read = kept[-1], read_checkpoint(found_in(home / "echo")[-1])
            same = written.state["sampler"] == read.state["sampler"]
            for here, there in ((written.weights, read.weights), (written.training, read.training)):
                same &= here.keys() == there.keys()
                same &= all(torch.equal(value, there[name]) for name, value in here.items())
            good &= same
            told = f"{len(written.weights)} weights, {len(written.training)} tensors of the optimiser"
            print(
                f"step {written.step}: {way[number - 1]} -> {way[number]}: {told} {'bit-equal' if same else 'DIFFER'}"
            )
        kept.append(read_checkpoint(found_in(home / "checkpoints")[-1]))
    return good


def kills(home: Path, arguments: argparse.Namespace) -> bool:
    """A worker is killed at a random moment, again and again; torchrun starts all again, and they go on."""
    asked = Asked(
        "gpt", str(home / "calm"), 60, {"sharded": 2}, dropout=0.1, seen=True, slow=0.1, train={"validate_every": 4}
    )
    undisturbed = start(2, [asked], "--standalone")
    _wait_for_the_first_batch(asked, undisturbed)
    began = time.perf_counter()
    ended(undisturbed)
    calm = time.perf_counter() - began
    good, chance = True, random.Random(arguments.seed)
    for number in range(arguments.times):
        struck = replace(asked, out=str(home / f"struck-{number}"), resume=True)
        process = start(2, [struck], "--max-restarts", "3", "--standalone")
        _wait_for_the_first_batch(struck, process)
        time.sleep(chance.uniform(0.0, 0.9) * calm)
        rank, step = chance.randrange(2), _last_step(Path(struck.out))
        killed = _kill_worker(process.pid, rank)
        ended(process)
        found, twice = difference(struck, asked), _seen_otherwise(Path(struck.out), Path(asked.out))
        same = found < 1e-5 and not twice
        good &= same
        told = f"killed process {rank} in step {step} of {asked.steps}" if killed else "was faster than the signal"
        print(f"{number + 1}: {told}: losses within {found:.1e}, {twice} batches seen otherwise", flush=True)
    return good


def _wait_for_the_first_batch(asked: Asked, process: subprocess.Popen[str]) -> None:
    while not _last_step(Path(asked.out)) and process.poll() is None:
        time.sleep(0.05)


def _last_step(out: Path) -> int:
    notes = out / "seen-0.jsonl"
    return len(notes.read_text().splitlines()) if notes.exists() else 0


def _kill_worker(torchrun: int, rank: int) -> bool:
    """SIGKILL to one of the processes that torchrun has started."""
    children = Path(f"/proc/{torchrun}/task/{torchrun}/children").read_text().split()
    workers = [int(pid) for pid in children if b"rank_trainings" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    if len(workers) <= rank:
        return False
    os.kill(workers[rank], signal.SIGKILL)
    return True


def _seen_otherwise(struck: Path, calm: Path) -> int:
    """Batches whose examples are not those of the undisturbed training; what was done again after a kill replaces
    what was lost. Together the batches of an epoch hold every example once."""
    wrong = 0
    for rank in range(2):
        ours, theirs = (_examples(out / f"seen-{rank}.jsonl") for out in (struck, calm))
        wrong += sum(ours.get(at) != examples for at, examples in theirs.items()) + len(ours.keys() - theirs.keys())
    epochs = Counter(
        (json.loads(at)["epoch"], example)
        for rank in range(2)
        for at, examples in _examples(struck / f"seen-{rank}.jsonl").items()
        for example in examples
    )
    return wrong + sum(times > 1 for times in epochs.values())


def _examples(file: Path) -> dict[str, list[int]]:
    found = {}
    for line in file.read_text().splitlines():
        try:
            note = json.loads(line)
        except ValueError:
            continue  # cut short by the signal
        found[json.dumps(note["at"])] = note["examples"]
    return found


def namespaces(home: Path, arguments: argparse.Namespace) -> bool:
    """Two machines: network namespaces with a cable between them, a process in each, started by a torchrun each."""
    names, good = ("saccade-one", "saccade-two"), True
    alone = Asked("gpt", str(home / "alone"), 50, train={"validate_every": 50, "gradients": "plain"})
    run(1, alone)
    ip = shutil.which("ip") or "/usr/sbin/ip"
    try:
        for name in names:
            subprocess.run([ip, "netns", "add", name], check=True)
        subprocess.run([ip, "link", "add", "cable1", "type", "veth", "peer", "name", "cable2"], check=True)
        for number, name in enumerate(names, 1):
            inside = [ip, "-n", name]
            subprocess.run([ip, "link", "set", f"cable{number}", "netns", name], check=True)
            subprocess.run([*inside, "addr", "add", f"10.77.0.{number}/24", "dev", f"cable{number}"], check=True)
            for device in ("lo", f"cable{number}"):
                subprocess.run([*inside, "link", "set", device, "up"], check=True)
        for layout in ({"data": 2}, {"sharded": 2}):
            asked = Asked("gpt", str(home / next(iter(layout))), 50, layout, train={"validate_every": 50})
            both = [
                start(
                    1, [asked], "--nnodes", "2", "--node-rank", str(number), "--master-addr", "10.77.0.1",
                    "--master-port", "29400",
                    before=[ip, "netns", "exec", name, "env", f"GLOO_SOCKET_IFNAME=cable{number + 1}"],
                )
                for number, name in enumerate(names)
            ]  # fmt: skip
            for process in both:
                ended(process)
            found = difference(asked, alone)
            good &= found < 1e-5
            print(f"two namespaces, {layout}: largest difference of a loss {found:.1e}")
    finally:
        for name in names:
            subprocess.run([ip, "netns", "delete", name], check=False, stderr=subprocess.DEVNULL)
    return good


def scaling(home: Path, arguments: argparse.Namespace) -> bool:
    """The same work for each process: with two processes, batches twice as large."""
    sizes = BLOCK | {"layers": 4, "width": 128, "feedforward": 512, "context": 128}
    seconds = {}
    for processes, layout in ((1, {}), (2, {"data": 2}), (2, {"sharded": 2})):
        train = {"batch_tokens": 1024 * processes, "validate_every": 10**6, "gradients": "auto"}
        asked = Asked("gpt", str(home / f"{processes}{layout}"), 12, layout, sizes, train)
        began = time.perf_counter()
        run(processes, replace(asked, steps=2, out=asked.out + "-start"))
        start_seconds = time.perf_counter() - began
        began = time.perf_counter()
        run(processes, asked)
        seconds[f"{processes} {layout}"] = (time.perf_counter() - began - start_seconds) / 10
    first = next(iter(seconds.values()))
    for name, each in seconds.items():
        print(f"processes {name:<16} {each:.3f} s a step: {first / each:.0%} of the speed of one for each process")
    return True


def xl(home: Path, arguments: argparse.Namespace) -> bool:
    """GPT-2 XL, 1.56 billion weights, built on meta, each process its part; memory as measured and as planned."""
    program = [
        str(HERE / "large_step.py"),
        json.dumps({name: getattr(arguments, name) for name in ("steps", "preset", "layers")}),
    ]
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    return subprocess.run([*torchrun, *program], env=os.environ | ENVIRONMENT, check=False).returncode == 0


BATTERIES = {one.__name__: one for one in (equal, checkpoints, kills, namespaces, scaling, xl)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("battery", choices=BATTERIES)
    parser.add_argument("--families", nargs="+", choices=FAMILIES, default=list(FAMILIES), help="equal: only these")
    parser.add_argument("--layouts", nargs="+", choices=[*TWO, *FOUR], help="equal: only these")
    parser.add_argument("--processes", type=int, choices=(0, 2, 4), default=0, help="equal: only so many; 0: both")
    parser.add_argument("--times", type=int, default=10, help="kills")
    parser.add_argument("--seed", type=int, default=1, help="of the moments of the kills")
    parser.add_argument("--steps", type=int, default=1, help="of a large model")
    parser.add_argument("--preset", default="gpt2-xl", help="the large model")
    parser.add_argument("--layers", type=int, default=0, help="of it, to try it out; 0: all")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        good = BATTERIES[arguments.battery](Path(folder), arguments)
    print("all held" if good else "SOMETHING DID NOT HOLD")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
