"""Load: a model of transformers and its tokenizer, from files that were checked (`source`)."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from exegete.base.errors import ExegeteError, UsageError
from exegete.models.huggingface.source import INSTALL, ModelFiles
from exegete.models.settings import HuggingFaceSettings

POOLER = "pooler"


class LoadedParts(NamedTuple):
    """What a model is made of."""

    base: Any  # transformers' model
    tokenizer: Any
    place: str  # what decides its files, or ""


def load_parts(source: ModelFiles, settings: HuggingFaceSettings, head: str) -> LoadedParts:
    """The model, with its own classifier or without, and its tokenizer."""
    with quiet(), _said_of(source):
        return LoadedParts(_base(source, settings, head), _tokenizer(source, settings), source.place)


def _base(source: ModelFiles, settings: HuggingFaceSettings, head: str) -> Any:
    import torch
    import transformers

    own = {"own": transformers.AutoModelForSequenceClassification, "lm": transformers.AutoModelForCausalLM}
    auto = own.get(head, transformers.AutoModel)
    base, report = auto.from_pretrained(
        source.folder,
        dtype=getattr(torch, settings.dtype),
        use_safetensors=True,
        local_files_only=True,
        trust_remote_code=settings.remote,
        output_loading_info=True,
    )
    missing = sorted(name for name in report["missing_keys"] if head in own or POOLER not in name)
    if missing:
        raise ExegeteError(
            f"the weights of {source.name} lack {len(missing)} tensors ({missing[0]}, …), which would be random: take "
            "a complete model"
        )
    if head not in own and getattr(base, POOLER, None) is not None:
        base.pooler = None  # nobody reads it: it would be trained, hashed and saved for nothing
    return base.eval()


def _tokenizer(source: ModelFiles, settings: HuggingFaceSettings) -> Any:
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(
        source.folder, local_files_only=True, trust_remote_code=settings.remote
    )
    check_tokenizer(tokenizer, source.name)
    return tokenizer


def check_tokenizer(tokenizer: Any, name: str) -> None:
    """Only a fast one says which pieces are of which word."""
    if not getattr(tokenizer, "is_fast", False):
        raise UsageError(
            f"the tokenizer of {name} is no fast one, and only these can be asked word by word: save it as "
            "tokenizer.json (AutoTokenizer with use_fast=True, then save_pretrained)"
        )


@contextmanager
def _said_of(source: ModelFiles) -> Iterator[None]:
    """What goes wrong in reading files, as one sentence."""
    from safetensors import SafetensorError

    try:
        import transformers  # noqa: F401
    except ImportError:
        raise ExegeteError(f"hf:{source.name} needs the package transformers: {INSTALL}") from None
    try:
        yield
    except SafetensorError as error:
        raise ExegeteError(f"the weights of {source.name} are damaged ({error}): get them again") from None
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ExegeteError(f"{source.name} can't be loaded by transformers: {first:.300}") from error


@contextmanager
def quiet() -> Iterator[None]:
    """Inside, transformers shows no bars and no reports: what matters is said by us."""
    try:
        from transformers.utils import logging
    except ImportError:
        yield
        return
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
