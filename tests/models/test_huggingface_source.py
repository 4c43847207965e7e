"""Bad input of models of transformers: one sentence each, before anything is computed."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from exegete.base.errors import ExegeteError, UsageError
from exegete.models.huggingface import source
from exegete.models.huggingface.build import build_from_spec, wrap_classifier
from exegete.models.huggingface.source import comes_trained, find_model_files
from exegete.models.settings import MODELS
from tests.models.tiny import bert, bert_folder, saved, word_pieces


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return saved(*bert(), tmp_path / "model")


def changed(folder: Path, **facts: Any) -> Path:
    config = json.loads((folder / "config.json").read_text(encoding="utf8")) | facts
    (folder / "config.json").write_text(json.dumps(config), encoding="utf8")
    return folder


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"auto_map": {"AutoModel": "theirs.Model"}}, "remote=true"),
        ({"quantization_config": {"bits": 4}}, "quantised"),
        ({"model_type": "mamba"}, "state space"),
        ({"is_encoder_decoder": True}, "an encoder and a decoder"),
        ({"problem_type": "regression"}, "predicts a number"),
        ({"problem_type": "multi_label_classification"}, "several labels at once .* label=NAME, as label=no"),
    ],
)
def test_what_a_config_says_may_refuse_it(folder: Path, facts: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        find_model_files(f"hf:{changed(folder, **facts)}")


def test_code_that_comes_with_a_model_is_run_only_if_allowed(folder: Path) -> None:
    assert find_model_files(f"hf:{changed(folder, auto_map={})}:remote=true").is_classifier


def test_pickled_weights_are_refused(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(UsageError, match="save_pretrained"):
        find_model_files(f"hf:{folder}")
    (folder / "pytorch_model.bin").unlink()
    with pytest.raises(ExegeteError, match="has no weights"):
        find_model_files(f"hf:{folder}")


def test_damaged_weights_are_one_sentence(folder: Path) -> None:
    whole = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(whole[:1000])
    with pytest.raises(ExegeteError, match="damaged"):
        build_from_spec(f"hf:{folder}")


def test_weights_that_lack_a_part_are_refused(folder: Path) -> None:
    from safetensors.torch import load_file, save_file

    tensors = load_file(folder / "model.safetensors")
    del tensors["classifier.weight"]
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ExegeteError, match=r"lack 1 tensors \(classifier.weight"):
        build_from_spec(f"hf:{folder}")


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ExegeteError, match=r"config\.json"):
        find_model_files(f"hf:{tmp_path}")
    (tmp_path / "config.json").write_text("{", encoding="utf8")
    with pytest.raises(ExegeteError, match="can't be read"):
        find_model_files(f"hf:{tmp_path}")


def test_a_folder_has_no_revisions(folder: Path) -> None:
    with pytest.raises(UsageError, match="has no revisions"):
        find_model_files(f"hf:{folder}:revision=main")


def test_a_slow_tokenizer_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import transformers

    class Slow:
        is_fast = False

    monkeypatch.setattr(transformers.AutoTokenizer, "from_pretrained", lambda *a, **k: Slow())
    with pytest.raises(UsageError, match="no fast one"):
        build_from_spec(f"hf:{folder}")


def test_offline_says_how_to_go_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(ExegeteError, match="hf:FOLDER"):
        find_model_files("hf:nobody/has-this-model")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        ("GatedRepoError", "accept its terms"),
        ("RevisionNotFoundError", "no revision 'v9'"),
        ("RepositoryNotFoundError", "there is no model 'owner/name'"),
        ("EntryNotFoundError", "no model of transformers"),
    ],
)
def test_what_goes_wrong_at_the_hub_is_a_sentence(error: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub
    from huggingface_hub import errors

    kind = getattr(errors, error)

    def refuse(*arguments: Any, **more: Any) -> None:
        raise kind.__new__(kind)

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", refuse)
    with pytest.raises(ExegeteError, match=said):
        find_model_files("hf:owner/name:revision=v9")


def test_a_model_of_the_hub_is_pinned_to_its_commit(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    commit = folder.rename(folder.parent / "0123abcd")
    asked: list[Any] = []

    def download(name: str, file: str, revision: str | None) -> str:
        return str(commit / file)

    def snapshot(name: str, revision: str, allow_patterns: list[str]) -> str:
        asked.append((name, revision))
        assert "*.bin" not in allow_patterns
        return str(commit)

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot)
    place = find_model_files("hf:owner/name:revision=main").place
    assert place == "owner/name@0123abcd"
    assert asked == [("owner/name", "0123abcd")]


def test_a_bare_encoder_has_no_head_of_its_own(tmp_path: Path) -> None:
    base, tokenizer = bert()
    folder = saved(base.bert, tokenizer, tmp_path)
    with pytest.raises(UsageError, match="head=cls"):
        find_model_files(f"hf:{folder}:head=own")
    assert not comes_trained(f"hf:{folder}")
    assert comes_trained(f"hf:{bert_folder()}")
    assert not comes_trained(f"hf:{bert_folder()}:tune=true")
    assert not comes_trained(f"hf:{bert_folder()}:head=mean")


def test_settings_that_can_not_be_are_refused() -> None:
    with pytest.raises(UsageError, match="tune=true is for a model's own classifier"):
        MODELS.make("hf:x:head=cls,tune=true")
    with pytest.raises(UsageError, match="float32"):
        MODELS.make("hf:x:frozen=2,dtype=float16")
    with pytest.raises(UsageError, match="hf:NAME"):
        find_model_files("hf")


def test_only_classifiers_are_wrapped() -> None:
    base, tokenizer = bert()
    with pytest.raises(UsageError, match="gives no logits"):
        wrap_classifier(base.bert, tokenizer)
    with pytest.raises(UsageError, match="is no model of transformers"):
        wrap_classifier(torch.nn.Linear(2, 2), tokenizer)
    with pytest.raises(UsageError, match="no fast one"):
        wrap_classifier(base, object())


def test_the_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(ExegeteError, match=r"pip install .transformers"):
        find_model_files("hf:owner/name")
    assert source.INSTALL.startswith("pip")
    assert word_pieces().is_fast
