"""Rules of relevance for torch's own functions: inside `relevant`, gradient × input of any transformer is its LRP.

Every function is taken for a linear map, whose coefficients are what it computes for this text, so that relevance is
the gradient of that map times its input (LRP-0), and adds up:

- *Activation* y = f(x), one by one: y = (f(x) / x) · x, the ratio a constant (Achtibat et al. 2024).
- *Layer norm*: mean and learnt scale as they are, the deviation that it divides by a constant (Ali et al. 2022, rule
  LN); an RMS norm has no mean. So is every signal that another one is divided by.
- *Attention* Σ_j α_ij v_j: weights are gates, constants that get nothing (Ali et al. 2022, rule AH). Or half: of the
  product of weight and value each gets one half, and the softmax hands its half on to scores by its derivative
  (Achtibat et al. 2024, AttnLRP); that is not conserved. All other softmaxes and sigmoids are gates, too.
- *Product* of two signals, such as in gated feed-forward layers: one half each (Achtibat et al. 2024).

Constants that are added (biases, positions, types of tokens) keep what they get; `Rules.absorbed` counts it.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

GateRule = Literal["gates", "half"]

ACTIVATIONS = frozenset({"gelu", "silu", "relu", "relu_", "tanh", "leaky_relu", "elu", "selu", "mish", "hardswish"})
GATES = frozenset({"sigmoid", "rsqrt"})  # what they give multiplies a signal
SUMS = {"add": 1, "__add__": 1, "__radd__": 1, "add_": 1, "__iadd__": 1, "sub": -1, "__sub__": -1, "sub_": -1}
PRODUCTS = frozenset({"mul", "__mul__", "__rmul__", "mul_", "__imul__", "multiply"})
MATRIX_PRODUCTS = frozenset({"matmul", "__matmul__", "bmm", "einsum"})
QUOTIENTS = frozenset({"div", "__truediv__", "div_", "true_divide"})
BIASED = {"linear": 2, "conv1d": 2, "addmm": 0}  # where their bias stands among their arguments
MODULES = ("transformers.activations", "torch.nn.modules.activation")  # where classes of activations are written


class Rules(TorchFunctionMode):
    """While it is on, functions of signals (tensors with a gradient) have the gradients of their rules."""

    def __init__(self, attention: GateRule, texts: int) -> None:
        super().__init__()
        self.attention = attention
        self.absorbed = torch.zeros(texts, dtype=torch.float64)  # of the constants of every text, after going back
        self.whole = 0  # functions inside an activation are not functions by themselves

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        del types
        more: dict[str, Any] = kwargs or {}
        if self.whole or not any(map(_signal, args)):
            return func(*args, **more)
        return self._ruled(str(getattr(func, "__name__", "")), func, args, more)

    def _ruled(self, name: str, func: Callable[..., Any], args: tuple[Any, ...], more: dict[str, Any]) -> Any:
        if name in ACTIVATIONS:
            return scale_input(args[0], func(args[0].detach(), *args[1:], **more))
        if name in GATES or (name == "softmax" and self._gate(args[0])) or (name == "pow" and _inverse(args[1:])):
            return func(*args, **more).detach()
        if name in ("layer_norm", "rms_norm"):
            return self._normed(name, *args, **more)
        if name in QUOTIENTS and _signal(args[1]):
            return func(args[0], args[1].detach(), **more)
        if name in PRODUCTS | MATRIX_PRODUCTS and sum(map(_signal, args)) == 2:
            return func(*(_halved(each) if _signal(each) else each for each in args), **more)
        return self._counted(name, func(*args, **more), args, more)

    def _gate(self, scores: Tensor) -> bool:
        """Weights of an attention are [batch, head, query, key]; other softmaxes choose between parts."""
        return self.attention == "gates" or scores.dim() != 4

    def _normed(
        self, name: str, x: Tensor, shape: Any, weight: Any = None, bias: Any = None, eps: Any = None, *more: Any
    ) -> Tensor:
        del more
        if name == "rms_norm":
            bias, eps = None, bias if eps is None else eps
        dims = tuple(range(-len(shape), 0))
        centred = x - x.mean(dims, keepdim=True) if name == "layer_norm" else x
        eps = torch.finfo(x.dtype).eps if eps is None else eps
        y = centred * (centred.detach().square().mean(dims, keepdim=True) + eps).rsqrt()
        y = y if weight is None else y * weight
        return y if bias is None else self._noted(y + bias, bias)

    def _counted(self, name: str, found: Any, args: tuple[Any, ...], more: dict[str, Any]) -> Any:
        """What was computed; of a constant that was added to signals, its part is noted."""
        if name in SUMS:
            constants = [(place, each) for place, each in enumerate(args[:2]) if not _signal(each)]
            for place, constant in constants:
                found = self._noted(found, constant * more.get("alpha", 1) * (SUMS[name] if place else 1))
        elif name in BIASED:
            place = BIASED[name]
            bias = args[place] if len(args) > place else more.get("bias")
            if bias is not None and not _signal(bias):
                found = self._noted(found, bias[:, None] if name == "conv1d" else bias)
        return found

    def _noted(self, found: Tensor, constant: Tensor | float) -> Tensor:
        """A sum as it is; going back, the part of its constant is added to those of its text."""

        def note(slope: Tensor) -> None:
            part = slope.double() * torch.as_tensor(constant).to(slope)
            # Some models lay the tokens of all texts in one row, text after text.
            self.absorbed += part.reshape(len(self.absorbed), -1).sum(-1).to(self.absorbed)

        found.register_hook(note)
        return found


def _halved(x: Tensor) -> Tensor:
    """x as it is; going back, half of what it would get."""
    half = x / 2
    return half + half.detach()


def _signal(x: Any) -> bool:
    return isinstance(x, Tensor) and x.requires_grad


def _inverse(exponent: tuple[Any, ...]) -> bool:
    return bool(exponent) and isinstance(exponent[0], int | float) and exponent[0] < 0


def scale_input(x: Tensor, y: Tensor) -> Tensor:
    """y = f(x) as a multiple of x, whose factor is a constant; where x is 0, f must be 0."""
    there = x.detach() != 0
    return x * torch.where(there, y.detach() / x.detach().where(there, 1.0), 0.0)


def activations(parts: Iterable[nn.Module]) -> Iterator[nn.Module]:
    """The modules that are activations, with f(0) = 0: what gives something for nothing is a gate, not a signal."""
    for part in parts:
        known = type(part).__module__ in MODULES or type(part).__name__.lower().endswith("gelu")
        if known and not any(True for _ in part.parameters()) and not bool(part(torch.zeros(1)).any()):
            yield part


@contextmanager
def relevant(parts: Iterable[nn.Module], attention: GateRule, texts: int) -> Iterator[Rules]:
    """Inside, what these modules compute has the gradients of the rules; parameters are constants meanwhile."""
    modules = list(parts)
    learning = [each for part in modules for each in part.parameters(recurse=False) if each.requires_grad]
    rules = Rules(attention, texts)

    def enter(module: nn.Module, given: Any) -> None:
        del module, given
        rules.whole += 1

    def leave(module: nn.Module, given: Any, found: Tensor) -> Tensor:
        del module
        rules.whole -= 1
        return scale_input(given[0], found) if _signal(given[0]) else found

    with ExitStack() as stack:
        for part in activations(modules):
            stack.callback(part.register_forward_pre_hook(enter).remove)
            stack.callback(part.register_forward_hook(leave).remove)
        for parameter in learning:
            parameter.requires_grad_(False)
            stack.callback(parameter.requires_grad_, True)
        stack.enter_context(rules)
        yield rules
