r"""Loss and gradient of the published Glow written out by hand, many times faster than autograd.

For small batches autograd spends nearly all of its time on bookkeeping: some thousand kernels for a
millisecond of arithmetic. Additive couplings and a fixed order of the features make the gradient short enough
to write down. With e = exp(3 s), each ActNorm y = e (x + b) and each dense layer y = e (W x + b) of the flow
has, given g = dL/dy,

    dL/db = e sum(g),    dL/dW = e g^T x,    dL/ds = 3 sum(g y),    dL/dx = g (e W)   or   e g,

sums over the rows of the batch. The additive coupling (x1, x2 + t(x1)) passes g on unchanged to the half that
it shifts, and the log-determinant is the sum of 3 s over the ActNorms of the flow.

The sums of g y need no pass over the batch, since all maps are linear but for the ReLU, whose g y is that of
what it was given. For output i of a dense layer, and for its input j,

    sum(g y)_i = sum_j W_ij dL/dW_ij + b_i dL/db_i,        sum(x dL/dx)_j = sum_i W_ij dL/dW_ij.

So on the way back from the latents, where g is z / (n d log 2), the sum of each feature changes at a coupling
by minus that of its output layer in the half that it shifts, and by plus that of the inputs of its first
layer in the half that it looks at; through an ActNorm it changes by -b dL/db.

A fixed random order of the features, between ActNorm and coupling, is an index: it moves the columns of the
batch, of g on its way back, and the sums.
"""

import math

import torch

from ._layers import LOG_SCALE_FACTOR

# Larger batches are computed in slices of so many rows, whose buffers stay in the processor's cache.
SLICE_ROWS = 512
# Other devices want much to do at once; here the bound is one of memory.
SLICE_ROWS_ELSEWHERE = 16_384


class _Step:
    """One step: which features its coupling looks at and changes, and its part of the level's arrays."""

    def __init__(self, step):
        self.order = self.inverse_order = None
        if step.mixing is not None:
            self.order, self.inverse_order = step.mixing.order, torch.argsort(step.mixing.order)
        self.is_coupled = step.coupling is not None
        if self.is_coupled:
            cut = step.coupling.n_conditioning
            self.conditioning, self.changed = slice(cut), slice(cut, None)
            if step.coupling.conditions_on_last:
                cut = len(step.actnorm.bias) - cut
                self.changed, self.conditioning = slice(cut), slice(cut, None)

    def bind(self, level, s):
        self.scale, self.shift = level.scale[0][s], level.shift[0][s]
        self.bias_grad = level.bias_grad[0][s]
        self.actnorm_sums = level.log_scale_grad[0][s]
        if self.is_coupled:
            self.hidden_shifts = [level.shift[1][s], level.shift[2][s]]
            self.weights = [weight[s] for weight in level.scaled_weight]
            self.transposed_weights = [weight.T for weight in self.weights]
            self.weight_grads = [grad[s] for grad in level.weight_grad]
            self.output_sums, self.input_sums = level.log_scale_grad[3][s], level.input_sums[s]
            self.sums_changed, self.sums_conditioning = (
                level.sums[self.changed],
                level.sums[self.conditioning],
            )


class _Level:
    """The steps of one level, whose parameters lie side by side as arrays with the step as first axis.

    There are vectors of the ActNorms and of the three dense layers of the couplings, and matrices of the
    latter; only the ActNorms' where the level has one feature.
    """

    def __init__(self, steps, kept, final):
        self.width = len(steps[0].actnorm.bias)
        self.kept, self.final = kept, final
        self.steps = [_Step(step) for step in steps]
        layers = [[step.actnorm for step in steps]]
        if self.steps[0].is_coupled:
            networks = [[*step.coupling.hidden, step.coupling.output] for step in steps]
            layers += [list(kind) for kind in zip(*networks, strict=True)]
        self.biases = [layer.bias for kind in layers for layer in kind]
        self.log_scales = [layer.log_scale for kind in layers for layer in kind]
        self.weights = [layer.weight for kind in layers[1:] for layer in kind]
        self._vectors = [(len(steps), len(kind[0].bias)) for kind in layers]
        self._matrices = [(len(steps), *kind[0].weight.shape) for kind in layers[1:]]
        self.n_actnorm = math.prod(self._vectors[0])
        self.n_hidden = 2 * math.prod(self._vectors[1]) if self._matrices else 0
        if self._matrices:
            # For each step the features, in the order of its ActNorm, that its coupling changes.
            as_they_are = torch.arange(self.width, device=self.biases[0].device)
            orders = [as_they_are if step.order is None else step.order for step in self.steps]
            changed = [order[step.changed] for order, step in zip(orders, self.steps, strict=True)]
            self.changed = torch.stack(changed)

    def bind(self, vectors, matrices):
        """Take the level's part of buffers with a number for each bias, and for each weight."""
        for name, flat in vectors.items():
            setattr(self, name, _parts(flat, self._vectors))
        for name, flat in matrices.items():
            setattr(self, name, _parts(flat, self._matrices))
        self.weight_scale = [scale.unsqueeze(2) for scale in self.scale[1:]]
        self.hidden_bias_grad = vectors["bias_grad"][self.n_actnorm : self.n_actnorm + self.n_hidden]
        self.sums = self.scale[0].new_zeros(self.width)
        self.sums_kept, self.sums_final = self.sums[self.kept], self.sums[self.final]
        if self._matrices:
            n_steps, _, n_inputs = self._matrices[0]
            self.input_sums = self.scale[0].new_zeros(n_steps, n_inputs)
        for s, step in enumerate(self.steps):
            step.bind(self, s)


def _parts(flat, shapes):
    """Return consecutive parts of a flat buffer as views of the given shapes."""
    sizes = [math.prod(shape) for shape in shapes]
    return [part.view(shape) for part, shape in zip(flat.split(sizes), shapes, strict=True)]


class _LevelBuffers:
    """What the steps of one level read and write for a batch: results y, gradients g, hidden units."""

    def __init__(self, level, like):
        n_rows = len(like)
        # Where the order changes, what goes into a step and what comes out need a buffer each.
        g = [like.new_zeros(n_rows, level.width) for _ in range(1 if level.steps[0].order is None else 2)]
        hidden, self.g_hidden = (like.new_zeros(n_rows, level.n_hidden) for _ in range(2))
        self.steps = [
            _StepBuffers(step, g[s % len(g)], g[(s + 1) % len(g)]) for s, step in enumerate(level.steps)
        ]
        n_steps = len(level.steps)
        for s, step in enumerate(self.steps if level.n_hidden else ()):
            # First come the units of all first layers, then those of all second ones.
            step.hidden, step.g_hidden = (
                h.split(level.n_hidden // (2 * n_steps), dim=1)[s::n_steps] for h in (hidden, self.g_hidden)
            )
            step.g_hidden_T = [g.T for g in step.g_hidden]
        self.kept, self.z = self.steps[-1].y[:, level.kept], self.steps[-1].y[:, level.final]
        g = self.steps[-1].g
        self.g_kept, self.g_z = g[:, level.kept], g[:, level.final]
        self.z_g_z = torch.zeros_like(self.z)


class _StepBuffers:
    def __init__(self, step, g, g_ordered):
        self.y = torch.zeros_like(g)
        self.g = g  # of y
        self.g_ordered = g_ordered  # the same in the order of the ActNorm
        self.g_ordered_T = g_ordered.T
        if step.is_coupled:
            self.y_changed, self.y_conditioning = self.y[:, step.changed], self.y[:, step.conditioning]
            self.g_changed, self.g_conditioning = g[:, step.changed], g[:, step.conditioning]
            self.g_changed_T = self.g_changed.T


class GlowGradient:
    """Loss of a :class:`Glow` with additive couplings, reversed or in random order, and its gradient.

    Parameters
    ----------
    flow : Glow

    Attributes
    ----------
    parameters : list of Parameter
        In the order in which they are to lie in one flat buffer: all biases, all log scales, all weights. Of
        each of these, level by level, those of the ActNorms come first, then those of the first, the second
        and the output layers of the couplings. So what is done to all alike is one kernel.
    """

    def __init__(self, flow):
        self._n_features = flow.n_features
        self._levels = [_Level(steps, *flow._halves(index)) for index, steps in enumerate(flow.levels)]
        kinds = [
            [getattr(level, kind) for level in self._levels] for kind in ("biases", "log_scales", "weights")
        ]
        self._sizes = [[sum(p.numel() for p in of_level) for of_level in kind] for kind in kinds]
        self.parameters = [p for kind in kinds for of_level in kind for p in of_level]
        self._buffers = {}

    def bind(self, flat, grad):
        """Take the two flat buffers that :attr:`parameters` and their gradients have become views of."""
        totals = [sum(sizes) for sizes in self._sizes]
        self._bias, self._log_scale, self._weight = flat.split(totals)
        self._bias_grad, self._log_scale_grad, self._weight_grad = grad.split(totals)
        self._scale, self._shift = torch.empty_like(self._bias), torch.empty_like(self._bias)
        self._scaled_weight = torch.empty_like(self._weight)
        vectors = {
            "bias_grad": self._bias_grad,
            "log_scale": self._log_scale,
            "log_scale_grad": self._log_scale_grad,
            "scale": self._scale,
            "shift": self._shift,
        }
        matrices = {
            "weight": self._weight,
            "weight_grad": self._weight_grad,
            "scaled_weight": self._scaled_weight,
        }
        for index, level in enumerate(self._levels):
            level.bind(
                {name: flat.split(self._sizes[0])[index] for name, flat in vectors.items()},
                {name: flat.split(self._sizes[2])[index] for name, flat in matrices.items()},
            )
        self._latent_sums = flat.new_zeros(self._n_features)
        self._latent_sums_of = self._latent_sums.split([len(level.sums_final) for level in self._levels])

    def __call__(self, x):
        """Return the loss on the batch `x` in bits per dimension and leave its gradient in every `.grad`."""
        n_rows, n_features = x.shape
        self._prepare()
        weight = 1.0 / (n_rows * n_features * math.log(2))
        n_at_once = SLICE_ROWS if x.device.type == "cpu" else SLICE_ROWS_ELSEWHERE
        for index, rows in enumerate(x.split(n_at_once)):
            buffers = self._buffers_for(rows)
            self._forward(rows, buffers)
            self._backward(buffers, weight, beta=min(index, 1))
        # sum of squares over 2 n d log 2
        loss = 0.5 * self._latent_sums.sum() + 0.5 * math.log2(2 * math.pi)
        self._finish(n_features)
        for level in self._levels:
            loss = loss - level.log_scale[0].sum() * (LOG_SCALE_FACTOR / (n_features * math.log(2)))
        return loss

    def _buffers_for(self, rows):
        n_rows = len(rows)
        if n_rows not in self._buffers:
            # Slices come in few sizes, each met many times: the last two are kept.
            self._buffers = dict(list(self._buffers.items())[-1:])
            levels = [_LevelBuffers(level, rows) for level in self._levels]
            self._buffers[n_rows] = levels, rows.new_ones(n_rows)
        return self._buffers[n_rows]

    def _prepare(self):
        torch.mul(self._log_scale, LOG_SCALE_FACTOR, out=self._scale).exp_()
        torch.mul(self._scale, self._bias, out=self._shift)
        for level in self._levels:
            for i, weight in enumerate(level.weight):
                torch.mul(weight, level.weight_scale[i], out=level.scaled_weight[i])
            if level.n_hidden:
                # The output layer's shift is the same for every row: ActNorm applies it.
                level.shift[0].scatter_add_(1, level.changed, level.shift[3])

    def _forward(self, x, buffers):
        for level, of_level in zip(self._levels, buffers[0], strict=True):
            for step, b in zip(level.steps, of_level.steps, strict=True):
                if step.order is None:
                    torch.addcmul(step.shift, x, step.scale, out=b.y)
                else:
                    torch.addcmul(step.shift, x, step.scale, out=b.g_ordered)
                    torch.index_select(b.g_ordered, 1, step.order, out=b.y)
                if step.is_coupled:
                    first, second, output = step.transposed_weights
                    h1, h2 = b.hidden
                    torch.addmm(step.hidden_shifts[0], b.y_conditioning, first, out=h1).relu_()
                    torch.addmm(step.hidden_shifts[1], h1, second, out=h2).relu_()
                    b.y_changed.addmm_(h2, output)
                x = b.y
            x = of_level.kept

    def _backward(self, buffers, weight, beta):
        """Compute the gradient of the outputs of every layer, and its sums over the rows.

        With `beta` 1, add them to those of the slices before. What is in the places for gradients afterwards
        lacks the factors of :meth:`_finish`.
        """
        levels, ones = buffers
        following = None
        for index in reversed(range(len(levels))):
            level, of_level = self._levels[index], levels[index]
            torch.mul(of_level.z, weight, out=of_level.g_z)
            torch.mul(of_level.z, of_level.g_z, out=of_level.z_g_z)
            self._latent_sums_of[index].addmv_(of_level.z_g_z.T, ones, beta=beta)
            if following is not None:
                torch.mul(levels[index + 1].steps[0].g_ordered, following.scale, out=of_level.g_kept)
                following = None
            for step, b in zip(reversed(level.steps), reversed(of_level.steps), strict=True):
                if following is not None:
                    b.g.mul_(following.scale)
                if step.is_coupled:
                    first, second, output = step.weights
                    h1, h2 = b.hidden
                    g1, g2 = b.g_hidden
                    torch.mm(b.g_changed, output, out=g2).mul_(h2.sign())
                    torch.mm(g2, second, out=g1).mul_(h1.sign())
                    b.g_conditioning.addmm_(g1, first)
                    step.weight_grads[0].addmm_(b.g_hidden_T[0], b.y_conditioning, beta=beta)
                    step.weight_grads[1].addmm_(b.g_hidden_T[1], h1, beta=beta)
                    step.weight_grads[2].addmm_(b.g_changed_T, h2, beta=beta)
                if step.order is not None:
                    torch.index_select(b.g, 1, step.inverse_order, out=b.g_ordered)
                step.bias_grad.addmv_(b.g_ordered_T, ones, beta=beta)
                following = step
            if level.n_hidden:
                level.hidden_bias_grad.addmv_(of_level.g_hidden.T, ones, beta=beta)

    def _finish(self, n_features):
        """Turn sums over the rows into gradients: see the top of this file."""
        for level in self._levels:
            if level.n_hidden:
                torch.gather(level.bias_grad[0], 1, level.changed, out=level.bias_grad[3])
        self._bias_grad.mul_(self._scale)
        for level in self._levels:
            for i, grad in enumerate(level.weight_grad):
                grad.mul_(level.weight_scale[i])
        # The scaled weights have done their work: their buffer, still in the cache, takes the products.
        torch.mul(self._weight, self._weight_grad, out=self._scaled_weight)
        torch.mul(self._bias, self._bias_grad, out=self._log_scale_grad)
        following = None
        for index in reversed(range(len(self._levels))):
            level = self._levels[index]
            for i, products in enumerate(level.scaled_weight):
                level.log_scale_grad[i + 1].add_(products.sum(2))
            if level.scaled_weight:
                torch.sum(level.scaled_weight[0], 1, out=level.input_sums)
            level.sums_final.copy_(self._latent_sums_of[index])
            if following is not None:
                level.sums_kept.copy_(following.sums)
            for step in reversed(level.steps):
                if step.is_coupled:
                    step.sums_changed.sub_(step.output_sums)
                    step.sums_conditioning.add_(step.input_sums)
                if step.order is not None:
                    level.sums.copy_(level.sums.index_select(0, step.inverse_order))
                # Of the ActNorm's y; then, without b dL/db, of its x.
                level.sums.sub_(step.actnorm_sums)
                step.actnorm_sums.add_(level.sums)
            following = level
        self._log_scale_grad.mul_(LOG_SCALE_FACTOR)
        for level in self._levels:
            level.log_scale_grad[0].sub_(LOG_SCALE_FACTOR / (n_features * math.log(2)))
