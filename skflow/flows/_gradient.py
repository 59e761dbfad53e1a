"""Loss and gradient of the published Glow written out by hand, several times faster than autograd.

For small batches autograd spends nearly all of its time on bookkeeping: some thousand kernels for a
millisecond of arithmetic. Additive couplings and reversed feature order make the gradient short enough to
write down. With e = exp(3 s), each ActNorm y = e (x + b) and each dense layer y = e (W x + b) of the flow
has, given g = dL/dy,

    dL/db = e sum(g),    dL/ds = 3 sum(g y),    dL/dW = (e g)^T x,    dL/dx = (e g) W   or   e g,

sums over the rows of the batch. So one matrix holds, side by side, the `g` of every layer and another the `y`
(of an ActNorm the `x`: its y is overwritten by the coupling), and all sums of a kind are one kernel. The
additive coupling passes g on unchanged to the half that it shifts. The log-determinant is the sum of 3 s over
the ActNorms of the flow.
"""

import math

import torch

from ._layers import LOG_SCALE_FACTOR

# Larger batches are computed in slices of so many rows, whose buffers stay in the processor's cache.
SLICE_ROWS = 128


class _Step:
    """Where one step finds its parameters among all of them, and its columns among those of all layers."""

    def __init__(self, step, level, is_last_of_level):
        self.level = level
        self.is_last_of_level = is_last_of_level
        self.width = len(step.actnorm.bias)
        self.dense = [] if step.coupling is None else [*step.coupling.hidden, step.coupling.output]
        if self.dense:
            n_changed = self.width - step.coupling.n_conditioning
            if step.coupling.conditions_on_last:
                self.changed, self.conditioning = slice(n_changed), slice(n_changed, None)
            else:
                n_conditioning = step.coupling.n_conditioning
                self.conditioning, self.changed = slice(n_conditioning), slice(n_conditioning, None)


class _Views:
    """What one step reads and writes in the buffers of a batch."""

    def __init__(self, step, values, grads, end, products):
        self.x = values[:, step.columns]
        self.g = grads[:, step.columns]
        self.y = end
        if step.dense:
            self.changed = self.y[:, step.changed]
            self.g_changed = self.g[:, step.changed]
            self.g_conditioning = self.g[:, step.conditioning]
            self.out = [values[:, c] for c in step.dense_columns]
            self.g_out = [grads[:, c] for c in step.dense_columns]
            self.inputs = [self.y[:, step.conditioning], *self.out[:-1]]
            self.scaled_g_out = [products[:, c].T for c in step.dense_columns]


class _Workspace:
    """Buffers for one number of rows, so that a step allocates next to nothing."""

    def __init__(self, steps, n_rows, n_columns, like):
        self.values = like.new_zeros(n_rows, n_columns)
        self.grads = like.new_zeros(n_rows, n_columns)
        self.products = like.new_zeros(n_rows, n_columns)
        self.ones = like.new_ones(n_rows)
        self.ends = [like.new_zeros(n_rows, step.width) for step in steps if step.is_last_of_level]
        self.steps = []
        for step, following in zip(steps, [*steps[1:], None], strict=True):
            end = self.ends[step.level] if step.is_last_of_level else self.values[:, following.columns]
            self.steps.append(_Views(step, self.values, self.grads, end, self.products))


class GlowGradient:
    """Loss of a :class:`Glow` with additive couplings and reversed feature order, and its gradient.

    Parameters
    ----------
    flow : Glow

    Attributes
    ----------
    parameters : list of Parameter
        In the order in which they are to lie in one flat buffer: all biases, all log scales in the same
        order, all weights. The first two groups are computed with as one vector each.
    """

    def __init__(self, flow):
        self._flow = flow
        self._steps = []
        layers = []
        n_columns = 0
        for level, steps in enumerate(flow.levels):
            for index, step in enumerate(steps):
                layers.append(step.actnorm)
                plan = _Step(step, level, is_last_of_level=index == len(steps) - 1)
                plan.columns = slice(n_columns, n_columns + plan.width)
                n_columns += plan.width
                self._steps.append(plan)
        self._n_actnorm = n_columns
        for plan in self._steps:
            plan.dense_columns = []
            for layer in plan.dense:
                plan.dense_columns.append(slice(n_columns, n_columns + len(layer.bias)))
                n_columns += len(layer.bias)
            layers += plan.dense
        self._n_columns = n_columns
        self.parameters = [layer.bias for layer in layers] + [layer.log_scale for layer in layers]
        self.parameters += [layer.weight for plan in self._steps for layer in plan.dense]
        self._workspaces = {}

    def bind(self, flat, grad):
        """Take the two flat buffers that :attr:`parameters` and their gradients have become views of."""
        n = self._n_columns
        self._bias, self._log_scale = flat[:n], flat[n : 2 * n]
        self._bias_grad, self._log_scale_grad = grad[:n], grad[n : 2 * n]
        self._scale, self._shift = torch.empty_like(self._bias), torch.empty_like(self._bias)
        for plan in self._steps:
            plan.scale, plan.shift = self._scale[plan.columns], self._shift[plan.columns]
            plan.weights = [layer.weight.data for layer in plan.dense]
            plan.weight_grads = [layer.weight.grad for layer in plan.dense]
            plan.scaled_weights = [torch.empty_like(weight) for weight in plan.weights]
            plan.dense_scales = [self._scale[c].unsqueeze(1) for c in plan.dense_columns]
            plan.dense_shifts = [self._shift[c] for c in plan.dense_columns]

    def __call__(self, x):
        """Return the loss on the batch `x` in bits per dimension and leave its gradient in every `.grad`."""
        n_rows, n_features = x.shape
        self._prepare()
        weight = 1.0 / (n_rows * n_features * math.log(2))
        sum_of_squares = 0.0
        for index, rows in enumerate(x.split(SLICE_ROWS)):
            buffers = self._buffers(rows)
            self._forward(rows, buffers)
            sum_of_squares = sum_of_squares + self._backward(buffers, weight)
            self._collect(buffers, beta=min(index, 1))
        self._finish(n_features)
        log_det = LOG_SCALE_FACTOR * self._log_scale[: self._n_actnorm].sum()
        return (
            0.5 * weight * sum_of_squares
            + 0.5 * math.log2(2 * math.pi)
            - log_det / (n_features * math.log(2))
        )

    def _buffers(self, rows):
        n_rows = len(rows)
        if n_rows not in self._workspaces:
            # Slices come in few sizes, each met many times: the last two are kept.
            self._workspaces = dict(list(self._workspaces.items())[-1:])
            self._workspaces[n_rows] = _Workspace(self._steps, n_rows, self._n_columns, rows)
        return self._workspaces[n_rows]

    def _prepare(self):
        torch.mul(self._log_scale, LOG_SCALE_FACTOR, out=self._scale).exp_()
        torch.mul(self._scale, self._bias, out=self._shift)
        for step in self._steps:
            layers = zip(step.weights, step.dense_scales, step.scaled_weights, strict=True)
            for weight, scale, scaled in layers:
                torch.mul(weight, scale, out=scaled)

    def _forward(self, x, buffers):
        buffers.steps[0].x.copy_(x)
        for step, views, following in zip(
            self._steps, buffers.steps, [*buffers.steps[1:], None], strict=True
        ):
            torch.addcmul(step.shift, views.x, step.scale, out=views.y)
            if step.dense:
                for i, scaled in enumerate(step.scaled_weights):
                    torch.addmm(step.dense_shifts[i], views.inputs[i], scaled.T, out=views.out[i])
                    if i < 2:
                        views.out[i].relu_()
                views.changed.add_(views.out[-1])
            if step.is_last_of_level and following is not None:
                following.x.copy_(self._flow._split(views.y, step.level)[0])

    def _backward(self, buffers, weight):
        """Fill `buffers.grads`; return the sum of squares of the latents."""
        sum_of_squares = 0.0
        following = None
        for step, views in zip(reversed(self._steps), reversed(buffers.steps), strict=True):
            if step.is_last_of_level:
                torch.mul(views.y, weight, out=views.g)
                final = views.y
                if following is not None:
                    final = self._flow._split(views.y, step.level)[1]
                    torch.mul(
                        following[1].g, following[0].scale, out=self._flow._split(views.g, step.level)[0]
                    )
                sum_of_squares = sum_of_squares + torch.linalg.vector_norm(final).double().square()
            else:
                torch.mul(following[1].g, following[0].scale, out=views.g)
            if step.dense:
                views.g_out[2].copy_(views.g_changed)
                for i in (1, 0):
                    torch.mm(views.g_out[i + 1], step.scaled_weights[i + 1], out=views.g_out[i])
                    views.g_out[i].mul_(views.out[i].sign())
                views.g_conditioning.addmm_(views.g_out[0], step.scaled_weights[0])
            following = step, views
        return sum_of_squares

    def _collect(self, buffers, beta):
        """Sum over the rows; with `beta` 1, add to the sums of the slices before."""
        self._bias_grad.addmv_(buffers.grads.T, buffers.ones, beta=beta)
        torch.mul(buffers.grads, buffers.values, out=buffers.products)
        self._log_scale_grad.addmv_(buffers.products.T, buffers.ones, beta=beta)
        torch.mul(buffers.grads, self._scale, out=buffers.products)
        for step, views in zip(self._steps, buffers.steps, strict=True):
            for i, grad in enumerate(step.weight_grads):
                grad.addmm_(views.scaled_g_out[i], views.inputs[i], beta=beta)

    def _finish(self, n_features):
        """Turn the sums of g and of g y (of an ActNorm: g x) into the gradients of biases and log scales."""
        n = self._n_actnorm
        # sum(g y) = e sum(g x) + e b sum(g)
        self._log_scale_grad[:n].mul_(self._scale[:n]).addcmul_(self._shift[:n], self._bias_grad[:n])
        self._log_scale_grad.mul_(LOG_SCALE_FACTOR)
        self._log_scale_grad[:n].sub_(LOG_SCALE_FACTOR / (n_features * math.log(2)))
        self._bias_grad.mul_(self._scale)
