"""Writes torch-muon.safetensors: ten steps of torch.optim.Muon on small matrices, with both scalings.

    python3 tests/reference/make_torch_muon.py OUT

`expect.bfloat16.*` is what torch.optim.Muon computes. `expect.float32.*` is what the same code computes when
torch.bfloat16, the type in which it runs the Newton-Schulz iteration, stands for float32.
"""
import json
import sys
from unittest import mock

import torch
from safetensors.torch import save_file

STEPS, LR, DECAY, MOMENTUM = 10, 0.02, 0.1, 0.95
SHAPES = {"tall": (12, 5), "wide": (5, 12), "square": (8, 8)}


def parameters_after_each_step(start, gradients, scaling):
    parameters = {name: torch.nn.Parameter(tensor.clone()) for name, tensor in start.items()}
    optimizer = torch.optim.Muon(parameters.values(), lr=LR, weight_decay=DECAY, momentum=MOMENTUM,
                                 adjust_lr_fn=scaling)
    after = {name: [] for name in parameters}
    for step in range(STEPS):
        for name, parameter in parameters.items():
            parameter.grad = gradients[name][step].clone()
        optimizer.step()
        for name, parameter in parameters.items():
            after[name].append(parameter.detach().clone())
    return {name: torch.stack(list_) for name, list_ in after.items()}


torch.manual_seed(17)
start = {name: 0.3 * torch.randn(shape) for name, shape in SHAPES.items()}
# Of a size that changes from step to step, as gradients in training do.
gradients = {name: torch.randn(STEPS, *shape) * torch.logspace(-2, 0, STEPS)[torch.randperm(STEPS), None, None]
             for name, shape in SHAPES.items()}

tensors = {f"start.{name}": tensor for name, tensor in start.items()}
tensors |= {f"gradients.{name}": tensor for name, tensor in gradients.items()}
for scaling in ["original", "match_rms_adamw"]:
    for kind in [torch.bfloat16, torch.float32]:
        label = str(kind).removeprefix("torch.")
        with mock.patch.object(torch, "bfloat16", kind):
            for name, after in parameters_after_each_step(start, gradients, scaling).items():
                tensors[f"expect.{label}.{scaling}.{name}"] = after

settings = {"lr": LR, "weight_decay": DECAY, "momentum": MOMENTUM, "steps": STEPS}
save_file(tensors, sys.argv[1], metadata={"source": "torch.optim.Muon", "torch": torch.__version__,
                                          "optimizer": json.dumps(settings)})
