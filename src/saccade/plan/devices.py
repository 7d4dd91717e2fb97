"""Devices: what they compute, hold, exchange, draw and cost, and where that is written. Prices are list prices of one
day, for an hour of one device; they change, and --price says another one."""

from pydantic import Field

from saccade.config import Record
from saccade.errors import WrongUse, did_you_mean


class DeviceRecord(Record):
    """One accelerator, or one machine without any."""

    name: str
    teraflops: float = Field(gt=0)
    """Peak of matrix products in training precision, in 10^12 operations a second."""
    memory: float = Field(gt=0)
    """Gigabytes (10^9 bytes)."""
    bandwidth: float = Field(gt=0)
    """Of that memory, in gigabytes a second."""
    link: float = Field(gt=0)
    """Gigabytes a second that one device sends to others of its node."""
    node: int = Field(ge=1)
    """Devices that have such a link."""
    network: float = Field(gt=0)
    """Gigabytes a second that one device sends to other nodes."""
    watts: float = Field(gt=0)
    """At work."""
    price: float | None = Field(None, gt=0)
    """Dollars an hour; none where no price is known to us."""
    efficiency: float = Field(0.4, gt=0, le=1)
    """Share of the peak that one device reaches in training, before it waits for others: an assumption."""
    source: str = ""
    """Where the figures are written."""
    assumed: str = ""
    """Where the efficiency comes from."""


def _nvidia(name: str, link: float, node: int, network: float, **more: object) -> DeviceRecord:
    return DeviceRecord.model_validate({"name": name, "link": link, "node": node, "network": network} | more)


GOOGLE = "cloud.google.com/tpu/docs"
DEVICES = {
    device.name: device
    for device in [
        _nvidia(
            "p100", 80, 8, 6.25, teraflops=9.5, memory=16, bandwidth=732, watts=300, price=1.46, efficiency=0.4,
            source="float32 peak of Vaswani et al. 2017, 6.1; NVIDIA data sheet; Google Cloud list price 2021",
            assumed="no source: as of larger GPUs",
        ),
        _nvidia(
            "v100", 150, 16, 6.25, teraflops=125, memory=32, bandwidth=900, watts=300, price=2.48, efficiency=0.312,
            source="NVIDIA data sheet (SXM, 32 GB); nodes of 16 with 100 GB/s (DGX-2H); Google Cloud list price 2021",
            assumed="39 TFLOP/s of a 1.2 B model on one V100 (Shoeybi et al. 2019, 5.1)",
        ),
        _nvidia(
            "a100", 300, 8, 25, teraflops=312, memory=80, bandwidth=2039, watts=400, efficiency=0.48,
            source="NVIDIA data sheet (SXM, 80 GB); a 200 Gb/s adapter for each",
            assumed="137 to 163 of 312 TFLOP/s (Narayanan et al. 2021, table 1)",
        ),
        _nvidia(
            "h100", 450, 8, 50, teraflops=989, memory=80, bandwidth=3350, watts=700, efficiency=0.4,
            source="NVIDIA data sheet (SXM, dense bfloat16); a 400 Gb/s adapter for each",
            assumed="38 to 43 % of the peak (Grattafiori et al. 2024, table 4)",
        ),
        _nvidia(
            "rtx-4090", 25, 8, 1.25, teraflops=165, memory=24, bandwidth=1008, watts=450, efficiency=0.4,
            source="NVIDIA data sheet (dense bfloat16, sums in float32); PCIe 4",
            assumed="no source: as of larger GPUs",
        ),
        DeviceRecord(
            name="tpu-v2", teraflops=45, memory=16, bandwidth=700, link=62, node=256, network=3, watts=220, price=1.125,
            efficiency=0.37, source=f"{GOOGLE}/v2; list price 2021", assumed="as TPU v3",
        ),
        DeviceRecord(
            name="tpu-v3", teraflops=123, memory=32, bandwidth=900, link=332, node=1024, network=6.25, watts=220,
            price=2.0, efficiency=0.37,
            source=f"{GOOGLE}/v3: 340 TB/s of all-reduce and 6.4 TB/s of bisection in a pod of 1,024; list price 2021",
            assumed="45.6 of 123 TFLOP/s of T5 on TPU v3 (Patterson et al. 2021, table 4)",
        ),
        DeviceRecord(
            name="tpu-v4", teraflops=275, memory=32, bandwidth=1200, link=268, node=4096, network=5.9, watts=170,
            price=3.22, efficiency=0.46,
            source=f"{GOOGLE}/v4: 1.1 PB/s of all-reduce and 24 TB/s of bisection in a pod of 4,096; list price 2022",
            assumed="46.2 % of the peak of PaLM (Chowdhery et al. 2022, table 3)",
        ),
        DeviceRecord(
            name="cpu", teraflops=0.15, memory=32, bandwidth=27, link=1, node=1, network=0.125, watts=65,
            efficiency=0.45,
            source="two cores with AVX2: products at 140 to 170 GFLOP/s, memory at 25 to 29 GB/s, as measured",
            assumed="34 to 46 % of the peak of products, as measured for batches of equal length",
        ),
    ]
}  # fmt: skip


def device_named(name: str) -> DeviceRecord:
    if name not in DEVICES:
        raise WrongUse(f"no device {name!r}{did_you_mean(name, DEVICES)}; the devices are {', '.join(DEVICES)}")
    return DEVICES[name]
