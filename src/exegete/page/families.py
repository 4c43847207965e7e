"""Families: what a method looks at, and the colour that it has everywhere."""

from exegete.base.names import parse
from exegete.page.theme import NEUTRAL, PALETTE

FAMILIES = {
    "attention": ("attention", "attention_x_gradient", "attention_x_norm", "rollout", "flow"),
    "gradients": ("gradient", "gradient_x_input", "smoothgrad", "integrated_gradients"),
    "relevance": ("lrp", "deeplift"),
    "erasure": ("occlusion", "leave_one_out", "replacement", "lime", "kernel_shap"),
    "other": (),
    "random": ("random",),
}
ATTENTION, RANDOM = "attention", "random"
COLOURS = dict(zip(FAMILIES, (*PALETTE, NEUTRAL), strict=True))


def family(method: str) -> str:
    """What a method looks at.

    >>> family("leave_one_out:of=logit"), family("my_own")
    ('erasure', 'other')
    """
    return next((name for name, members in FAMILIES.items() if parse(method).name in members), "other")
