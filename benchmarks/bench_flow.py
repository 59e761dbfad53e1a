"""Training speed of the flow, side by side in one process: rows per second, and milliseconds per update.

    python benchmarks/bench_flow.py [--device cuda] [--repeats 7]

Columns:

- skflow: `skflow.flows._training.Trainer` on the published Glow (flat buffer, gradient written by hand) -
autograd: the same trainer with automatic differentiation - plain: the same model and recipe as one would
write it first: reversal by a dense permutation matrix, autograd,
  one optimizer call per tensor
- zuko NICE: 9 couplings with hidden layers of 32, torch's AdamW
- PCA: scikit-learn's PCA whitening fitted to the same rows, the floor (a closed form: it has no updates)

The variants take turns, `--repeats` times each; a figure is the median over the turns.
"""

import argparse
import math
import statistics
import time

import torch
from sklearn.decomposition import PCA
from torch import nn

from skflow.flows import Glow, _training
from skflow.flows._threads import one_thread
from skflow.flows._training import AutogradGradient, Trainer

RECIPE = {"learning_rate": 1e-3, "weight_decay": 0.01, "max_grad_norm": 1.0}
WIDTHS = (384, 768, 1024)
BATCHES = (64, 256, 1024)


class PlainStep(nn.Module):
    def __init__(self, width):
        super().__init__()
        half = width // 2
        self.register_buffer("reversal", torch.eye(width).flip(0))
        sizes = [(half, 32), (32, 32), (32, width - half)]
        self.weights = nn.ParameterList([torch.randn(o, i) * 0.05 for i, o in sizes])
        self.biases = nn.ParameterList([torch.zeros(width), *[torch.zeros(o) for _, o in sizes]])
        self.log_scales = nn.ParameterList([torch.zeros(width), *[torch.zeros(o) for _, o in sizes]])

    def forward(self, x):
        x = torch.exp(3 * self.log_scales[0]) * (x + self.biases[0])
        x = x @ self.reversal
        x1, x2 = x.chunk(2, dim=1)
        h = x1
        for i in range(3):
            h = torch.exp(3 * self.log_scales[i + 1]) * (h @ self.weights[i].T + self.biases[i + 1])
            if i < 2:
                h = torch.relu(h)
        return torch.cat([x1, x2 + h], dim=1), 3 * self.log_scales[0].sum()


class PlainGlow(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.levels = nn.ModuleList(
            nn.ModuleList(PlainStep(width >> level) for _ in range(3)) for level in range(3)
        )

    def log_prob(self, x):
        total, log_det = 0.0, 0.0
        n_features = x.shape[1]
        for level, steps in enumerate(self.levels):
            for step in steps:
                x, step_log_det = step(x)
                log_det = log_det + step_log_det
            if level < 2:
                x, final = x.chunk(2, dim=1)
                total = total + final.square().sum(dim=1)
        total = total + x.square().sum(dim=1)
        return log_det - 0.5 * (total + n_features * math.log(2 * math.pi))


def plain_updates(flow, device):
    """BERT-flow's recipe with one call of everything per tensor."""
    flow.to(device)
    parameters = list(flow.parameters())
    moments = [(torch.zeros_like(p), torch.zeros_like(p)) for p in parameters]

    def step(x):
        loss = -flow.log_prob(x).mean() / (x.shape[1] * math.log(2))
        for p in parameters:
            p.grad = None
        loss.backward()
        norm = torch.stack([p.grad.norm() for p in parameters]).norm()
        scale = min(1.0, 1.0 / (norm.item() + 1e-6))
        with torch.no_grad():
            for p, (first, second) in zip(parameters, moments, strict=True):
                grad = p.grad * scale
                first.mul_(0.9).add_(grad, alpha=0.1)
                second.mul_(0.999).addcmul_(grad, grad, value=0.001)
                p.sub_(1e-3 * (first / (second.sqrt() + 1e-6) + 0.01 * p))

    return step


def trainer_updates(width, device, gradient=None):
    flow = Glow(width, generator=torch.Generator().manual_seed(0)).to(device)
    flow.initialize(torch.randn(64, width, device=device))
    chosen = _training.gradient_of
    try:
        _training.gradient_of = gradient or chosen
        return Trainer(flow, **RECIPE).step
    finally:
        _training.gradient_of = chosen


def zuko_updates(width, device):
    import zuko

    flow = zuko.flows.NICE(width, transforms=9, hidden_features=(32, 32)).to(device)
    optimizer = torch.optim.AdamW(flow.parameters(), lr=1e-3)

    def step(x):
        optimizer.zero_grad()
        loss = -flow().log_prob(x).mean()
        loss.backward()
        nn.utils.clip_grad_norm_(flow.parameters(), 1.0)
        optimizer.step()

    return step


def seconds(step, x, device):
    """Time enough updates for a steady figure; return seconds per update."""
    n_updates = max(3, 1280 // len(x))
    if device == "cuda":
        torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(n_updates):
        step(x)
    if device == "cuda":
        torch.cuda.synchronize()
    return (time.perf_counter() - began) / n_updates


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--repeats", type=int, default=7)
    args = parser.parse_args()
    torch.manual_seed(0)
    print(f"torch {torch.__version__}, {args.device}, one thread on the cpu; rows/s (ms per update)")
    names = ("skflow", "autograd", "plain", "zuko NICE", "PCA")
    print(f"{'features':>8} {'batch':>6}", *(f"{name:>18}" for name in names), f"{'plain/skflow':>13}")
    for width in WIDTHS:
        steps = {
            "skflow": trainer_updates(width, args.device),
            "autograd": trainer_updates(width, args.device, AutogradGradient),
            "plain": plain_updates(PlainGlow(width), args.device),
            "zuko NICE": zuko_updates(width, args.device),
        }
        for batch in BATCHES:
            x = torch.randn(batch, width, device=args.device)
            times = {name: [] for name in names}
            with one_thread:
                for step in steps.values():
                    seconds(step, x, args.device)
                for _ in range(args.repeats):
                    for name, step in steps.items():
                        times[name].append(seconds(step, x, args.device))
                    rows = torch.randn(max(2 * width, batch), width).numpy()
                    began = time.perf_counter()
                    PCA(whiten=True, svd_solver="covariance_eigh").fit(rows)
                    times["PCA"].append((time.perf_counter() - began) * batch / len(rows))
            medians = {name: statistics.median(values) for name, values in times.items()}
            cells = (f"{batch / value:9.0f} ({value * 1e3:6.2f})" for value in medians.values())
            print(
                f"{width:>8} {batch:>6}", *cells, f"{medians['plain'] / medians['skflow']:13.1f}", flush=True
            )


if __name__ == "__main__":
    main()
