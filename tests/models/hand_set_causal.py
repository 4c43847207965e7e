"""A language model set by hand: the last word looks at the cue alone, and says what the cue stands for.

One layer, one head, no feed-forward layer. An embedding has its word at 0…V−1 (one-hot), a flag where the word is a
cue, and a ballast, so that all have one norm and the RMS norm changes nothing but their scale. Queries read the
ballast, keys the flag: all weight goes to cues. Values carry the word to V…2V−1, where the vocabulary reads what a cue
stands for.
"""

from typing import Any

import torch
from tokenizers import Tokenizer, decoders, pre_tokenizers
from tokenizers.models import WordLevel

WORDS = ("[PAD]", "yes", "no", "good", "bad", "film", "a", "was", "the", "it", "so", "and")
CUES = {"good": "yes", "bad": "no"}
BALLAST, SHARP = 4.0, 30.0


def copying() -> tuple[Any, Any]:
    """The model and its tokenizer, which cuts at white space."""
    import transformers

    count = len(WORDS)
    size = 2 * count + 4  # a flag, a ballast, and what makes all norms equal
    flag, ballast, rest = 2 * count, 2 * count + 1, 2 * count + 2
    config = transformers.LlamaConfig(
        vocab_size=count, hidden_size=size, num_hidden_layers=1, num_attention_heads=1, head_dim=size,
        intermediate_size=4, max_position_embeddings=64, pad_token_id=0, bos_token_id=None, eos_token_id=None,
        tie_word_embeddings=False, rope_parameters={"rope_type": "default", "rope_theta": 1e30},
    )  # fmt: skip
    base = transformers.LlamaForCausalLM(config).eval()
    norm = ((2 + BALLAST**2) / size) ** 0.5  # of every embedding
    with torch.no_grad():
        for parameter in base.parameters():
            parameter.zero_()
        for part in base.modules():
            if type(part).__name__ == "LlamaRMSNorm":
                part.weight.fill_(norm)
        table, layer = base.get_input_embeddings().weight, base.model.layers[0].self_attn
        table[:, ballast] = BALLAST
        for row, word in enumerate(WORDS):
            table[row, row] = 1.0
            table[row, flag if word in CUES else rest] = 1.0
        pair = size // 2 - 1  # a dimension that hardly turns with its place
        layer.q_proj.weight[pair, ballast] = SHARP
        layer.k_proj.weight[pair, flag] = 1.0
        for row in range(count):
            layer.v_proj.weight[row, row] = layer.o_proj.weight[count + row, row] = 1.0
        for row in range(count):  # other words say next to nothing, where they are looked at
            base.lm_head.weight[WORDS.index("the"), count + row] = 0.01 * row
        for cue, answer in CUES.items():
            base.lm_head.weight[WORDS.index(answer), count + WORDS.index(cue)] = 10.0
    cutter = Tokenizer(WordLevel({word: row for row, word in enumerate(WORDS)}, unk_token="[PAD]"))
    cutter.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    cutter.decoder = decoders.WordPiece(prefix="##", cleanup=False)
    return base, transformers.PreTrainedTokenizerFast(tokenizer_object=cutter, pad_token="[PAD]")
