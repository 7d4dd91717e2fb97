"""onnxruntime on graphs that `bench.readers.same` exported: its own optimizer fused attention, norms and GELU."""

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from bench.measuring import read_arguments
from bench.readers.contract import SIZES, Read, measure_reader, padded_ways
from saccade.runtime.contract import Booleans, Floats, Ids

INPUTS, OUTPUT = ("tokens", "mask"), "states"


def export(model: Any, folder: Path) -> None:
    """Write a Hugging Face BERT as `onnx-float32.onnx`, and that with int8 weights as `onnx-int8.onnx`."""
    import torch
    from onnx import TensorProto
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from onnxruntime.transformers.optimizer import optimize_model

    class States(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, tokens_BT: torch.Tensor, mask_BT: torch.Tensor) -> torch.Tensor:
            states: torch.Tensor = self.model(input_ids=tokens_BT, attention_mask=mask_BT).last_hidden_state
            return states

    # The optimizer knows the pattern of eager attention.
    model.set_attn_implementation("eager")
    tokens_BT = torch.ones(2, 8, dtype=torch.int64)
    mask_BT = torch.ones_like(tokens_BT)
    mask_BT[1, 5:] = 0
    plain, fused = folder / "onnx-plain.onnx", folder / "onnx-float32.onnx"
    torch.onnx.export(
        States().eval(),
        (tokens_BT, mask_BT),
        str(plain),
        dynamo=False,
        opset_version=17,
        input_names=list(INPUTS),
        output_names=[OUTPUT],
        dynamic_axes={name: {0: "batch", 1: "length"} for name in (*INPUTS, OUTPUT)},
    )
    heads, width = model.config.num_attention_heads, model.config.hidden_size
    optimized = optimize_model(str(plain), model_type="bert", num_heads=heads, hidden_size=width)
    fusions = optimized.get_fused_operator_statistics()
    if fusions["Attention"] != model.config.num_hidden_layers:
        raise SystemExit(f"onnxruntime fused {fusions['Attention']} of {model.config.num_hidden_layers} attentions")
    optimized.save_model_to_file(str(fused))
    # Its settings as they come: one scale a matrix, eight bits. The kind of a fused operator's output it cannot infer.
    told = {"DefaultTensorType": TensorProto.FLOAT}
    quantize_dynamic(fused, folder / "onnx-int8.onnx", weight_type=QuantType.QInt8, extra_options=told)
    plain.unlink()


def open_encoder(folder: Path, compute: str, threads: int) -> Read:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = threads, 3
    session = onnxruntime.InferenceSession(folder / f"onnx-{compute}.onnx", options, providers=["CPUExecutionProvider"])

    def read(tokens_BT: Ids, mask_BT: Booleans | None) -> Floats:
        mask = np.ones_like(tokens_BT) if mask_BT is None else mask_BT.astype(np.int64)
        states_BTD: Floats = session.run([OUTPUT], dict(zip(INPUTS, (tokens_BT, mask), strict=True)))[0]
        return states_BTD

    return read


def main() -> None:
    given = read_arguments(SIZES, "folder", "compute")
    read = open_encoder(Path(given.folder), given.compute, given.threads)
    title = f"onnxruntime {onnxruntime.__version__}, {given.compute}, threads: {given.threads}"
    measure_reader(title, read, padded_ways(read), given.calls)


if __name__ == "__main__":
    main()
