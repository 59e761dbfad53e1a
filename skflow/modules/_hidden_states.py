"""Chosen hidden states of a Hugging Face model, computed no further than needed."""

import inspect
from collections import defaultdict

import torch


class _Reached(Exception):  # noqa: N818 - a signal, not an error
    """Raised by a hook to leave the forward pass once the highest wanted layer is known."""


class HiddenStates:
    """Entries of a model's ``hidden_states``, with the forward pass stopped at the highest one wanted.

    Hugging Face counts 0 for the input of the first block, i for the input of block i (the output of block
    i - 1), and L for the model's output, after a final norm where the architecture has one. So every entry
    but the last is what some block is called with, and a hook on the blocks can take it and leave. Which
    modules are the blocks is found by running the model once and comparing what each kind of repeated module
    was called with to the ``hidden_states`` that the model reports. Where nothing agrees exactly, the whole
    tuple is asked of the model: correct, without the saving.

    Parameters
    ----------
    model : transformers.PreTrainedModel
        The model, in evaluation mode.
    example : dict of str to torch.Tensor
        Input of one short text, of a length that no window or block divides.

    Attributes
    ----------
    widths : list of int
        Number of features of each hidden state.

    Raises
    ------
    ValueError
        If the model does not run on the example, or has no hidden state for each token.
    """

    def __init__(self, model, example):
        self._model = model
        accepted = inspect.signature(model.forward).parameters
        # FNet, for one, knows no attention mask.
        self._takes_mask = "attention_mask" in accepted or "kwargs" in accepted
        candidates = defaultdict(list)
        for module in model.modules():
            if isinstance(module, torch.nn.ModuleList):
                for child in module:
                    # One module may stand for several layers, as in ALBERT.
                    if child not in candidates[type(child)]:
                        candidates[type(child)].append(child)
        calls = defaultdict(list)

        def record(module, args, kwargs):
            calls[type(module)].append(_first_tensor(args, kwargs))

        modules = [child for children in candidates.values() for child in children]
        kind = type(model).__name__
        try:
            with _hooks(modules, record):
                output = self._run(example, output_hidden_states=True)
        except Exception as error:  # whatever an architecture demands of its input
            raise ValueError(f"{kind} cannot embed a short text, so it is not supported: {error}") from error
        states = output.hidden_states
        shape = example["input_ids"].shape
        if any(state.shape[:2] != shape for state in states):
            raise ValueError(f"{kind} has no hidden state for each token, so it is not supported")
        self.n_layers = len(states) - 1
        self.widths = [state.shape[-1] for state in states]
        self._blocks = None
        if _same(states[-1], output.last_hidden_state):
            for kind, inputs in calls.items():
                if len(inputs) == self.n_layers and all(map(_same, inputs, states)):
                    self._blocks = candidates[kind]
                    break

    def __call__(self, wanted, inputs):
        """Return the hidden states `wanted`, non-negative and in increasing order, of a batch."""
        if self._blocks is None:
            states = self._run(inputs, output_hidden_states=True).hidden_states
            return [states[layer] for layer in wanted]
        taken = []
        n_calls = 0

        def take(module, args, kwargs):
            nonlocal n_calls
            if n_calls in wanted:
                taken.append(_first_tensor(args, kwargs))
                if n_calls == wanted[-1]:
                    raise _Reached
            n_calls += 1

        try:
            with _hooks(self._blocks, take):
                output = self._run(inputs)
        except _Reached:
            pass
        else:
            taken.append(output.last_hidden_state)
        return taken

    def _run(self, inputs, **options):
        if not self._takes_mask:
            inputs = {name: value for name, value in inputs.items() if name != "attention_mask"}
        return self._model(**inputs, **options)


class _hooks:  # noqa: N801 - used like a function
    """Call `hook` before the forward pass of each of `modules`, within a with block."""

    def __init__(self, modules, hook):
        self._modules, self._hook = modules, hook

    def __enter__(self):
        self._handles = [m.register_forward_pre_hook(self._hook, with_kwargs=True) for m in self._modules]

    def __exit__(self, *exception):
        for handle in self._handles:
            handle.remove()


def _first_tensor(args, kwargs):
    return next((value for value in (*args, *kwargs.values()) if isinstance(value, torch.Tensor)), None)


def _same(a, b):
    return a is not None and a.shape == b.shape and torch.equal(a, b)
