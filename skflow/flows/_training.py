"""Maximum likelihood on minibatches: one flat parameter buffer, BERT-flow's Adam, and the training step."""

import functools
import math

import torch

from ._cuda import GraphedStep, can_capture
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
    if type(flow) is Glow and flow.coupling == "additive" and flow.permutation != "lu":
        return GlowGradient(flow)
    return AutogradGradient(flow)


def reading_is_free(device):
    """Return whether a number can be read without waiting for the device."""
    return device.type == "cpu"


class Adam:
    """BERT-flow's Adam on flat buffers: parameters, their gradient, and its first and second moments."""

    def __init__(self, flat, *, learning_rate, weight_decay, max_grad_norm):
        self.learning_rate, self.weight_decay = learning_rate, weight_decay
        self.max_grad_norm = max_grad_norm
        self.flat = flat
        self.grad, self.first, self.second, self._work = (torch.zeros_like(flat) for _ in range(4))

    def update(self, loss):
        """Update by the gradient, unless it or the loss is not finite; return both, loss and norm."""
        if reading_is_free(self.flat.device):
            return self._update_by_branch(loss)
        return self.update_without_reading(loss)

    def _update_by_branch(self, loss):
        loss, grad_norm = loss.item(), torch.linalg.vector_norm(self.grad).item()
        if math.isfinite(loss) and math.isfinite(grad_norm):
            self.grad.mul_(min(1.0, self.max_grad_norm / (grad_norm + EPSILON)))
            self.first.lerp_(self.grad, 1 - BETA1)
            self.second.mul_(BETA2).addcmul_(self.grad, self.grad, value=1 - BETA2)
            torch.sqrt(self.second, out=self._work).add_(EPSILON)
            self.flat.mul_(1 - self.learning_rate * self.weight_decay)
            self.flat.addcdiv_(self.first, self._work, value=-self.learning_rate)
        return torch.tensor([loss, grad_norm], dtype=torch.float64)

    def update_without_reading(self, loss):
        """Do the same without asking the device for a number."""
        grad_norm = torch.linalg.vector_norm(self.grad)
        is_finite = torch.isfinite(loss) & torch.isfinite(grad_norm)
        self.grad.mul_(torch.clamp(self.max_grad_norm / (grad_norm + EPSILON), max=1.0))
        first = torch.lerp(self.first, self.grad, 1 - BETA1)
        second = (self.second * BETA2).addcmul_(self.grad, self.grad, value=1 - BETA2)
        flat = self.flat * (1 - self.learning_rate * self.weight_decay)
        flat.addcdiv_(first, second.sqrt().add_(EPSILON), value=-self.learning_rate)
        for buffer, updated in ((self.first, first), (self.second, second), (self.flat, flat)):
            torch.where(is_finite, updated, buffer, out=buffer)
        return torch.stack([loss.to(grad_norm.dtype), grad_norm])


def _step(adam, gradient, x):
    """Do an update without asking the device for a number."""
    return adam.update_without_reading(gradient(x))


def _new_step(flow, adam):
    """Return the step with a gradient of its own, whose working memory no other batch changes."""
    gradient = gradient_of(flow)
    gradient.bind(adam.flat, adam.grad)
    return functools.partial(_step, adam, gradient)


class Trainer:
    """Fits a flow to batches by maximum likelihood.

    The loss is minus the log2-likelihood per dimension, averaged over the batch. The update is that of the
    released BERT-flow code: the gradient, scaled by min(1, max_grad_norm / (norm + 1e-6)), goes into Adam
    without bias correction, with epsilon 1e-6 outside the root and decoupled weight decay, p -= rate * (m /
    (sqrt(v) + 1e-6) + weight_decay * p).

    All parameters are moved into one flat buffer (`flow`'s own become views of it), so that an update is a
    handful of kernels. An update whose loss or gradient is not finite is left out: parameters and moments
    stay finite, since a clipped Adam step is bounded. On the cpu that is a branch, elsewhere a choice between
    new and old that nobody waits for. On cuda an update of a Glow is replayed as one graph; other modules,
    which may branch on values, are not captured.

    Parameters
    ----------
    flow : torch.nn.Module
        With a method `log_prob`, initialized from data if it needs to be.
    learning_rate, weight_decay, max_grad_norm : float
    moments : tuple of two arrays, default=None
        First and second moments to go on with, as :attr:`moments` returned them.
    """

    def __init__(self, flow, *, moments=None, **options):
        self._gradient = gradient_of(flow)
        parameters = self._gradient.parameters
        self._adam = adam = Adam(torch.cat([p.detach().reshape(-1) for p in parameters]), **options)
        sizes = [p.numel() for p in parameters]
        for p, value, grad in zip(parameters, adam.flat.split(sizes), adam.grad.split(sizes), strict=True):
            p.data = value.view_as(p)
            p.grad = grad.view_as(p)
        self._gradient.bind(adam.flat, adam.grad)
        if moments is not None:
            for buffer, moment in zip((adam.first, adam.second), moments, strict=True):
                buffer.copy_(torch.as_tensor(moment))
        self._graphed_step = None
        if type(flow) is Glow and can_capture(adam.flat.device):
            self._graphed_step = GraphedStep(
                functools.partial(_step, adam, self._gradient),
                functools.partial(_new_step, flow, adam),
                [adam.flat, adam.first, adam.second],
            )

    @property
    def n_replays(self):
        """Updates that were done by a CUDA graph."""
        return 0 if self._graphed_step is None else self._graphed_step.n_replays

    @property
    def moments(self):
        """Adam's moments as numpy arrays."""
        return self._adam.first.cpu().numpy().copy(), self._adam.second.cpu().numpy().copy()

    def snapshot(self):
        """Return a copy of the parameters, for :meth:`restore`."""
        return self._adam.flat.clone()

    @torch.no_grad()
    def restore(self, snapshot):
        """Set the parameters to what they were at a snapshot."""
        self._adam.flat.copy_(snapshot)

    @torch.no_grad()
    def step(self, x):
        """Do one update.

        Parameters
        ----------
        x : Tensor of shape (n, d)
            The batch.

        Returns
        -------
        result : Tensor of shape (2,)
            The loss in bits per dimension before the update, and the norm of its gradient; on the device,
            which is not waited for. The update was left out if one of them is not finite. Good until the next
            call.
        """
        if self._graphed_step is not None:
            return self._graphed_step(x)
        return self._adam.update(self._gradient(x))
