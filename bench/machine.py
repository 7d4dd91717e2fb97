"""The machine's limits, looked up in the same run as what is measured against them."""

from typing import Any

from bench.console import say
from bench.process import measure_apart

SPEEDS = ("gigaflops", "gigabytes", "int16", "int8")


class Machine:
    """Asked once or once a round; remembers the best, since a limit is what happens when nothing disturbs."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.limits: dict[str, Any] = dict.fromkeys(SPEEDS, 0.0)

    def look(self, place: str) -> "Machine":
        found = measure_apart("bench.limits", threads=self.threads)
        say(
            f"{place}  limits: {found['gigaflops']:.0f} GFLOP/s matmul, {found['gigabytes']:.1f} GB/s memory, "
            f"{found['int16']:.0f} G 16-bit multiply-adds/s"
        )
        self.limits = found | {speed: max(found[speed], self.limits[speed]) for speed in SPEEDS}
        return self

    @property
    def gigaflops(self) -> float:
        return float(self.limits["gigaflops"])

    def __str__(self) -> str:
        return (
            f"Limits of this machine in the same run, {self.limits['instructions']}, threads: {self.threads}, torch "
            f"{self.limits['torch']}: {self.limits['gigaflops']:.0f} GFLOP/s (best fp32 matmul), "
            f"{self.limits['gigabytes']:.1f} GB/s (memory), {self.limits['int16']:.0f} and {self.limits['int8']:.0f} G "
            "multiply-adds/s of 16-bit and 8-bit integers (a C loop in registers)."
        )
