"""Maximum likelihood on minibatches: one flat parameter buffer, BERT-flow's Adam, and the training step."""

import math

import torch

from ._glow import Glow
from ._gradient import GlowGradient

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-6


class AutogradGradient:
    """Loss of a flow and its gradient by automatic differentiation: works for any module with `log_prob`."""

    def __init__(self, flow):
        self.flow = flow
        self.parameters = [p for p in flow.parameters() if p.requires_grad]

    def bind(self, flat, grad):
        """Take the two flat buffers that :attr:`parameters` and their gradients have become views of."""
        self._grad = grad

    def __call__(self, x):
        """Return the loss on the batch `x` in bits per dimension and leave its gradient in every `.grad`."""
        self._grad.zero_()
        with torch.enable_grad():
            loss = -self.flow.log_prob(x).mean() / (x.shape[1] * math.log(2))
            loss.backward()
        return loss.detach()


def gradient_of(flow):
    """Return the callable that computes a flow's loss and gradient, the analytic one where there is one."""
    if type(flow) is Glow and flow.coupling == "additive" and flow.permutation == "reverse":
        return GlowGradient(flow)
    return AutogradGradient(flow)


class Trainer:
    """Fits a flow to batches by maximum likelihood.

    The loss is minus the log2-likelihood per dimension, averaged over the batch. The update is that of the
    released BERT-flow code: the gradient, scaled by min(1, max_grad_norm / (norm + 1e-6)), goes into Adam
    without bias correction, with epsilon 1e-6 outside the root and decoupled weight decay, p -= rate * (m /
    (sqrt(v) + 1e-6) + weight_decay * p).

    All parameters are moved into one flat buffer (`flow`'s own become views of it), so that an update is a
    handful of kernels. An update whose loss or gradient is not finite is left out and counted in `n_skipped`:
    parameters and moments stay finite, since a clipped Adam step is bounded.

    Parameters
    ----------
    flow : torch.nn.Module
        With a method `log_prob`, initialised from data if it needs to be.
    learning_rate, weight_decay, max_grad_norm : float
    moments : tuple of two arrays, default=None
        First and second moments to go on with, as :attr:`moments` returned them.
    """

    def __init__(self, flow, *, learning_rate, weight_decay, max_grad_norm, moments=None):
        self.flow = flow
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.max_grad_norm = max_grad_norm
        self.n_skipped = 0
        self.grad_norm = math.nan
        self._graphs = {}
        self._gradient = gradient_of(flow)
        parameters = self._gradient.parameters
        self._flat = torch.cat([p.detach().reshape(-1) for p in parameters])
        self._grad, self._first, self._second, self._work = (torch.zeros_like(self._flat) for _ in range(4))
        sizes = [p.numel() for p in parameters]
        for p, value, grad in zip(parameters, self._flat.split(sizes), self._grad.split(sizes), strict=True):
            p.data = value.view_as(p)
            p.grad = grad.view_as(p)
        self._gradient.bind(self._flat, self._grad)
        if moments is not None:
            for buffer, moment in zip((self._first, self._second), moments, strict=True):
                buffer.copy_(torch.as_tensor(moment))

    @property
    def moments(self):
        """Adam's moments as numpy arrays."""
        return self._first.cpu().numpy().copy(), self._second.cpu().numpy().copy()

    def snapshot(self):
        """Return a copy of the parameters, for :meth:`restore`."""
        return self._flat.clone()

    @torch.no_grad()
    def restore(self, snapshot):
        """Set the parameters to what they were at a snapshot."""
        self._flat.copy_(snapshot)

    @torch.no_grad()
    def step(self, x):
        """Do one update on the batch `x` and return its loss, in bits per dimension, before the update."""
        if x.device.type == "cuda":
            loss, grad_norm = self._captured(x)
            loss, self.grad_norm = loss.item(), grad_norm.item()
            is_finite = math.isfinite(loss) and math.isfinite(self.grad_norm)
        else:
            loss = self._gradient(x).item()
            self.grad_norm = torch.linalg.vector_norm(self._grad).item()
            is_finite = math.isfinite(loss) and math.isfinite(self.grad_norm)
            if is_finite:
                self._grad.mul_(min(1.0, self.max_grad_norm / (self.grad_norm + EPSILON)))
                self._first.lerp_(self._grad, 1 - BETA1)
                self._second.mul_(BETA2).addcmul_(self._grad, self._grad, value=1 - BETA2)
                torch.sqrt(self._second, out=self._work).add_(EPSILON)
                self._flat.mul_(1 - self.learning_rate * self.weight_decay)
                self._flat.addcdiv_(self._first, self._work, value=-self.learning_rate)
        self.n_skipped += not is_finite
        return loss

    def _step_without_branches(self, x):
        """Do the same without asking the device for a number; return loss and gradient norm as tensors."""
        loss = self._gradient(x)
        grad_norm = torch.linalg.vector_norm(self._grad)
        is_finite = torch.isfinite(loss) & torch.isfinite(grad_norm)
        self._grad.mul_(torch.clamp(self.max_grad_norm / (grad_norm + EPSILON), max=1.0))
        first = torch.lerp(self._first, self._grad, 1 - BETA1)
        second = (self._second * BETA2).addcmul_(self._grad, self._grad, value=1 - BETA2)
        flat = self._flat * (1 - self.learning_rate * self.weight_decay)
        flat.addcdiv_(first, second.sqrt().add_(EPSILON), value=-self.learning_rate)
        for buffer, updated in ((self._first, first), (self._second, second), (self._flat, flat)):
            torch.where(is_finite, updated, buffer, out=buffer)
        return loss, grad_norm

    def _captured(self, x):
        """Do the step by replaying it as one CUDA graph, since launching the kernels would take longer."""
        if not isinstance(self._gradient, GlowGradient):
            return self._step_without_branches(x)
        if len(x) not in self._graphs:
            buffers = (self._flat, self._first, self._second)
            before = [buffer.clone() for buffer in buffers]
            static = x.clone()
            # A step before the capture, on another stream, allocates what the kernels work in.
            stream = torch.cuda.Stream()
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                self._step_without_branches(static)
            torch.cuda.current_stream().wait_stream(stream)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                results = self._step_without_branches(static)
            for buffer, value in zip(buffers, before, strict=True):
                buffer.copy_(value)
            self._graphs = {**dict(list(self._graphs.items())[-1:]), len(x): (graph, static, results)}
        graph, static, results = self._graphs[len(x)]
        static.copy_(x)
        graph.replay()
        return results
