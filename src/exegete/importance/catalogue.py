"""All importances by name: to add one, write its file and a line here, or call `IMPORTANCES.add` from your own code."""

from exegete.base.catalogue import Catalogue, Entry

_ROOM = "exegete.importance"

IMPORTANCES = Catalogue(
    "importance",
    {
        "attention": Entry(f"{_ROOM}.attention:Attention", "the model's own attention weights"),
        "attention_x_gradient": Entry(
            f"{_ROOM}.attention_x_gradient:AttentionXGradient", "weight · derivative of the prediction by the weight"
        ),
        "attention_x_norm": Entry(
            f"{_ROOM}.attention_x_norm:AttentionXNorm", "weight · length of the state that it multiplies"
        ),
        "rollout": Entry(f"{_ROOM}.rollout:Rollout", "weights multiplied down the layers (Abnar & Zuidema 2020)"),
        "flow": Entry(f"{_ROOM}.flow:Flow", "maximum flow from a word to the output; slow (Abnar & Zuidema 2020)"),
        "reading": Entry(
            f"{_ROOM}.reading:Reading",
            "weights of one layer, head or query, or the mean of several: reading:site=every",
        ),
        "value_zeroing": Entry(
            f"{_ROOM}.value_zeroing:ValueZeroing",
            "change of states without a word's value, followed down the layers (Mohebbi et al. 2023)",
        ),
        "alti": Entry(
            f"{_ROOM}.alti:Alti", "a word's part of the states that attention makes, followed (Ferrando et al. 2022)"
        ),
        "globenc": Entry(
            f"{_ROOM}.globenc:GlobEnc", "length of what a word gives to states, followed (Modarressi et al. 2022)"
        ),
        "contribution": Entry(
            f"{_ROOM}.contribution:Contribution",
            "length of weight · value as the last layer adds it (Kobayashi et al. 2020)",
        ),
        "gradient": Entry(f"{_ROOM}.gradient:Gradient", "|gradient · embedding|, or the gradient's L1 or L2 norm"),
        "gradient_x_input": Entry(
            f"{_ROOM}.gradient_x_input:GradientXInput", "gradient · embedding, for or against the class"
        ),
        "smoothgrad": Entry(f"{_ROOM}.smoothgrad:SmoothGrad", "mean gradient over noisy copies (Smilkov et al. 2017)"),
        "integrated_gradients": Entry(
            f"{_ROOM}.integrated_gradients:IntegratedGradients",
            "the prediction shared out on the way from an empty text (Sundararajan et al. 2017)",
        ),
        "lrp": Entry(f"{_ROOM}.lrp:Lrp", "the logit handed back to the words, layer by layer (Arras et al. 2017)"),
        "deeplift": Entry(
            f"{_ROOM}.deeplift:DeepLift",
            "difference to an empty text, through average or cnn (Shrikumar et al. 2017)",
        ),
        "occlusion": Entry(f"{_ROOM}.occlusion:Occlusion", "loss of the prediction with the word's embedding zeroed"),
        "leave_one_out": Entry(
            f"{_ROOM}.leave_one_out:LeaveOneOut",
            "change of the prediction with the word deleted: its size (TVD); with of=logit a signed loss",
        ),
        "replacement": Entry(f"{_ROOM}.replacement:Replacement", "loss of the prediction with the word made unknown"),
        "blocking": Entry(
            f"{_ROOM}.blocking:Blocking", "loss of the prediction with nobody looking at the word (Geva et al. 2023)"
        ),
        "lime": Entry(f"{_ROOM}.lime:Lime", "weighted ridge regression on many erased texts (Ribeiro et al. 2016)"),
        "kernel_shap": Entry(f"{_ROOM}.kernel_shap:KernelShap", "Shapley values by regression (Lundberg & Lee 2017)"),
        "given": Entry(f"{_ROOM}.given:Given", "scores that another tool computed: given:file=scores.parquet"),
        "random": Entry(f"{_ROOM}.random:RandomImportance", "keyed noise: the level that knowing nothing gives"),
    },
)


def computable() -> list[str]:
    """The importances that can score any text; not those that were computed elsewhere."""
    return [name for name in IMPORTANCES if name != "given"]
