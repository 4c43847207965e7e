"""What the server says is what Python computes: explanations, weights, permutations, adversaries."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

import exegete
from exegete.answers.explain import example_of, explain_prediction
from exegete.base.errors import ExegeteError, UsageError
from exegete.experiments.common.counterfactuals import furthest
from exegete.interventions.permute import permuted_together
from exegete.interventions.search import Search, find
from exegete.measures.divergence import jsd, tvd
from exegete.models.openings import opened
from exegete.training.checkpoint import load_checkpoint
from exegete.wings.explorer.lab import Lab, open_lab
from tests.answers.explained_model import TEXT
from tests.wings.explorer.serving import Running

pytestmark = pytest.mark.slow  # a server, a model and a run of their own

STEPS = 40


def pool(folder: Path, text: str = TEXT) -> Any:
    kept = load_checkpoint(folder)
    with torch.no_grad():  # other kernels than with gradients, which differ in the eighth place
        return opened(kept.classifier, kept.model.collate([example_of(kept, (text,))]))


def test_models_say_what_they_are(server: Running) -> None:
    first, second = server.client.get("/api/models").json()
    assert (first["state"], first["labels"], first["sites"]) == ("ready", ["no", "yes"], ["attention"])
    assert second["sites"] == ["encoder.0", "encoder.1", "attention"]
    cheap = [method["name"] for method in first["methods"] if method["cheap"]]
    assert "attention" in cheap
    assert "lime" not in cheap


def test_an_explanation_is_that_of_explain(server: Running, folders: tuple[Path, Path]) -> None:
    found = server.post("explain", text=TEXT)
    methods = [method["name"] for method in found["explanation"]["methods"]]
    ours = json.loads(json.dumps(explain_prediction(folders[0], TEXT, methods).to_json()))
    for each in (*found["explanation"]["methods"], *ours["methods"]):
        del each["milliseconds"]
    assert found["explanation"] == ours
    assert 'class="exegete-heatmap"' in found["html"]
    assert "<style>" not in found["html"]


def test_dear_methods_are_followed(server: Running) -> None:
    refused = server.client.post("/api/explain", json={"model": 0, "text": TEXT, "methods": ["lime"]})
    assert refused.status_code == 400
    assert "take long" in refused.json()["error"]
    *told, (kind, found) = server.follow("explain", text=TEXT, methods=["lime", "attention"])
    assert [each for each, _ in told] == ["told"] * len(told)
    assert kind == "found"
    assert {method["name"] for method in found["explanation"]["methods"]} == {"lime", "attention"}
    assert told
    again = server.follow("explain", text=TEXT, methods=["lime", "attention"])
    assert again == [("found", found)]  # kept by content


def test_two_texts_are_those_of_explain(server: Running, folders: tuple[Path, Path]) -> None:
    methods = ["attention", "gradient_x_input"]
    found = server.post("differ", text=TEXT, second="b a c d", methods=methods)
    first = explain_prediction(folders[0], TEXT, methods)
    ours = first.difference(explain_prediction(folders[0], "b a c d", methods, first.target)).to_json()
    assert found["difference"]["differences"] == ours["differences"]
    assert found["difference"]["words"] == json.loads(json.dumps(ours["words"]))
    refused = server.client.post("/api/differ", json={"model": 0, "text": TEXT, "second": "a", "methods": ["lime"]})
    assert refused.status_code == 400
    assert "/api/follow/differ" in refused.json()["error"]
    assert server.follow("differ", text=TEXT, second="b a c d", methods=["lime"])[-1][0] == "found"


def test_who_predicts_a_class_writes_nothing(server: Running) -> None:
    assert server.post("write", text=TEXT) == {"pieces": [], "text": ""}
    refused = server.client.post("/api/explain", json={"model": 0, "text": TEXT, "step": 2})
    assert refused.status_code == 400
    assert "writes no words" in refused.json()["error"]


def test_own_weights_and_prediction(server: Running, folders: tuple[Path, Path]) -> None:
    found, own = server.post("open", text=TEXT), pool(folders[0])
    assert found["keys"] == ["b", "a", "c", "!", "d", "e", "a", "?", "f", "g"]
    assert found["rows"] == own.weights[0].tolist()
    assert list(found["probabilities"].values()) == pytest.approx(own.own[0].softmax(-1).tolist(), abs=1e-12)
    assert (found["pools"], found["heads"], found["queries"]) == (True, 1, [""])


def test_other_weights_give_what_python_gives(server: Running, folders: tuple[Path, Path]) -> None:
    own = pool(folders[0])
    weights = torch.rand(1, 10, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    weights /= weights.sum()
    found = server.post("weigh", text=TEXT, rows=[{"row": 0, "weights": weights[0].tolist()}])
    ours = own.logits(weights[None, None])[0, 0].softmax(-1).detach()
    assert list(found["probabilities"].values()) == pytest.approx(ours.tolist(), abs=1e-12)
    assert found["tvd"] == pytest.approx(float(tvd(ours, own.own[0].detach().softmax(-1))), abs=1e-12)
    assert found["jsd"] == pytest.approx(float(jsd(weights, own.weights[0])), abs=1e-12)
    assert found["flipped"] == bool(ours.argmax() != own.own[0].argmax())
    halved = server.post("weigh", text=TEXT, rows=[{"row": 0, "weights": (weights[0] / 2).tolist()}])
    assert halved["jsd"] is None  # no distribution any more
    assert halved["probabilities"] != found["probabilities"]


def test_dragging_never_encodes_again(folders: tuple[Path, Path]) -> None:
    kept = load_checkpoint(folders[0])
    encode, counted = kept.model.encode, []  # type: ignore[attr-defined]
    kept.model.encode = lambda *given, **named: counted.append(1) or encode(*given, **named)  # type: ignore
    bench = Lab(kept)
    bench.attack(TEXT)
    opened_once = len(counted)
    assert opened_once >= 1
    for place in range(10):
        bench.attack(TEXT).weigh({0: [float(place == key) for key in range(10)]})
    assert len(counted) == opened_once
    assert bench.openings == 1


def test_the_server_counts_the_same(server: Running) -> None:
    before = server.post("weigh", text="a b c d e f")["openings"]
    for place in range(5):
        row = {"row": 0, "weights": [float(place == key) for key in range(6)]}
        assert server.post("weigh", text="a b c d e f", rows=[row])["openings"] == before


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ({"how": "uniform"}, lambda own: [1 / len(own)] * len(own)),
        ({"how": "reverse"}, lambda own: own[::-1]),
        ({"how": "zero"}, lambda own: [0.0] * len(own)),
        ({"how": "remove"}, lambda own: [0 if w == max(own) else w / (sum(own) - max(own)) for w in own]),
        ({"how": "without", "key": 1}, lambda own: [0 if i == 1 else w / (1 - own[1]) for i, w in enumerate(own)]),
    ],
)
def test_presets_written_slowly(server: Running, how: dict[str, Any], expected: Any) -> None:
    own = server.post("open", text=TEXT)["rows"][0]
    found = server.post("rewrite", text=TEXT, **how)
    assert found["rows"][0]["weights"] == pytest.approx(expected(own), abs=1e-12)
    again = server.post("weigh", text=TEXT, rows=found["rows"])
    assert again["probabilities"] == pytest.approx(found["probabilities"], abs=1e-12)


def test_a_permuted_row_has_the_same_weights(server: Running) -> None:
    own = server.post("open", text=TEXT)["rows"][0]
    first, second = (
        server.post("rewrite", text=TEXT, how="permute", draw=draw)["rows"][0]["weights"] for draw in (0, 1)
    )
    assert sorted(first) == pytest.approx(sorted(own))
    assert first != second


def test_permutations_are_those_of_the_experiment(server: Running, folders: tuple[Path, Path]) -> None:
    own = pool(folders[0])
    found = server.post("permute", text=TEXT, count=20)
    draws = permuted_together(own.weights, own.movable, own.ids, 0, 20)
    ours = own.logits(draws)[0].softmax(-1)
    assert found["tvd"] == pytest.approx((ours - own.own.softmax(-1)).abs().sum(-1).div(2).tolist(), abs=1e-12)
    assert found["median"] == pytest.approx(sorted(found["tvd"])[9] / 2 + sorted(found["tvd"])[10] / 2)
    later = server.post("permute", text=TEXT, first=10, count=10)
    assert later["tvd"] == pytest.approx(found["tvd"][10:])


@pytest.mark.parametrize("model", [0, 1])
def test_an_adversary_is_that_of_the_search(server: Running, folders: tuple[Path, Path], model: int) -> None:
    own = pool(folders[model])
    *told, (kind, last) = server.follow("adversary", model=model, text=TEXT, steps=STEPS, epsilon=0.05)
    assert kind == "found"
    assert [said["step"] for _, said in told] == [10, 20, 30, 40]
    ours = furthest(own.weights, find(own, Search(steps=STEPS)), 0.05)
    assert last["jsd"] == pytest.approx(float(ours.jsd), abs=1e-9)
    assert last["rows"][0] == pytest.approx(ours.weights[0, 0].tolist(), abs=1e-9)


def test_layers_are_matrices_and_what_follows_can_be_held(server: Running, folders: tuple[Path, Path]) -> None:
    kept = load_checkpoint(folders[1])
    found = server.post("open", model=1, text=TEXT, site="encoder.0")
    assert (found["heads"], len(found["queries"]), len(found["rows"]), found["pools"]) == (2, 10, 20, False)
    flat = [{"row": row, "weights": [0.1] * 10} for row in range(20)]
    weighed = server.post("weigh", model=1, text=TEXT, site="encoder.0", rows=flat)
    batch = kept.model.collate([example_of(kept, (TEXT,))])
    own = kept.model.trace(batch).attention

    def uniform(site: Any) -> Any:
        return torch.full_like(site.weights, 0.1) if site.name == "encoder.0" else site.weights

    def held(site: Any) -> Any:
        return torch.full_like(site.weights, 0.1) if site.name == "encoder.0" else own[site.name]

    for said, ours in ((weighed["probabilities"], uniform), (weighed["frozen"], held)):
        expected = kept.classifier.logits(batch, intervene=ours).double().softmax(-1)[0].tolist()
        assert list(said.values()) == pytest.approx(expected, abs=1e-6)
    assert weighed["probabilities"] != weighed["frozen"]


def test_a_head_is_ablated(server: Running, folders: tuple[Path, Path]) -> None:
    kept = load_checkpoint(folders[1])
    batch = kept.model.collate([example_of(kept, (TEXT,))])

    def second_head_gone(site: Any) -> Any:
        kept_heads = torch.tensor([1.0, 0.0]).view(1, 2, 1, 1)
        return site.weights * kept_heads if site.name == "encoder.1" else site.weights

    found = server.post("rewrite", model=1, text=TEXT, site="encoder.1", how="zero", over=list(range(10, 20)))
    expected = kept.classifier.logits(batch, intervene=second_head_gone).double().softmax(-1)[0].tolist()
    assert list(found["probabilities"].values()) == pytest.approx(expected, abs=1e-6)
    assert found["jsd"] is None


def without_looks(weights: torch.Tensor, word: int, by: int | None) -> torch.Tensor:
    """Slowly: every row that looked at the word shares what it gave among the others."""
    made = weights.clone()
    for head in range(weights.shape[1]):
        for query in range(weights.shape[2]) if by is None else [by]:
            if query != word:
                row = made[0, head, query]
                row[word] = 0.0
                row /= row.sum()
    return made


@pytest.mark.parametrize(
    ("cut", "sites"),
    [
        ({"word": 3}, ("encoder.0", "encoder.1")),
        ({"word": 3, "by": 7}, ("encoder.0", "encoder.1")),
        ({"word": 0, "first": 1}, ("encoder.1",)),
        ({"word": 9, "by": 0, "last": 0}, ("encoder.0",)),
    ],
)
def test_a_word_is_knocked_out(
    server: Running, folders: tuple[Path, Path], cut: dict[str, int], sites: tuple[str, ...]
) -> None:
    kept = load_checkpoint(folders[1])
    batch = kept.model.collate([example_of(kept, (TEXT,))])

    def knocked(site: Any) -> Any:
        return without_looks(site.weights, cut["word"], cut.get("by")) if site.name in sites else site.weights

    with torch.no_grad():
        expected = kept.classifier.logits(batch, intervene=knocked).double().softmax(-1)[0].tolist()
    found = server.post("cut", model=1, text=TEXT, **cut)
    own = list(server.post("open", model=1, text=TEXT)["probabilities"].values())
    assert list(found["probabilities"].values()) == pytest.approx(expected, abs=1e-6)
    assert found["tvd"] == pytest.approx(sum(abs(p - q) for p, q in zip(expected, own, strict=True)) / 2, abs=1e-6)
    assert expected != pytest.approx(own, abs=1e-5)


@pytest.mark.parametrize(
    ("model", "cut", "said"),
    [
        (0, {"word": 0}, "no layers of self-attention"),
        (1, {"word": 0, "last": 2}, "it has layers 0 to 1"),
        (1, {"word": 0, "first": 1, "last": 0}, "from layer 1 to layer 0"),
        (1, {"word": 10}, "there is no token 10: this text has 10"),
        (1, {"word": 2, "by": 2}, "its look at itself"),
    ],
)
def test_what_can_not_be_cut_is_one_sentence(server: Running, model: int, cut: dict[str, int], said: str) -> None:
    answer = server.client.post("/api/cut", json={"model": model, "text": TEXT} | cut)
    assert answer.status_code == 400
    assert said in answer.json()["error"]


def test_sinks_are_removed(server: Running) -> None:
    own = server.post("open", model=1, text=TEXT, site="encoder.0")["rows"]
    found = server.post("rewrite", model=1, text=TEXT, site="encoder.0", how="sinks")["rows"]
    for row, before in zip(found, own, strict=True):  # this model has no symbols: its sink is the first word
        assert row["weights"] == pytest.approx([0.0, *(w / (1 - before[0]) for w in before[1:])], abs=1e-6)
    answer = server.client.post("/api/rewrite", json={"model": 0, "text": TEXT, "how": "sinks"})
    assert "none is a sink" in answer.json()["error"]


def test_what_python_gives_by_itself(folders: tuple[Path, Path]) -> None:
    found = exegete.lab(folders[0], TEXT)
    assert found.weigh({}).tvd == pytest.approx(0, abs=1e-12)
    assert found.own.tolist() == pool(folders[0]).weights[0].tolist()
    page = found._repr_html_()
    assert page.count('scope="row"') == 1 + 10  # a head, and a line for each word
    assert "encoder.0, head 2" in exegete.lab(exegete.load(folders[1]), TEXT, site="encoder.0")._repr_html_()
    with pytest.raises(UsageError, match="unknown site"):
        exegete.lab(folders[0], TEXT, site="nowhere")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"text": " "}, "is empty"),
        ({"text": TEXT, "question": "why?"}, "reads one text"),
        ({"text": "a " * 1_001}, "up to 1000 words"),
        ({"text": TEXT, "site": "nowhere"}, "unknown site"),
        ({"text": TEXT, "rows": [{"row": 3, "weights": [1.0]}]}, "open it again"),
    ],
)
def test_what_can_not_be_asked_is_one_sentence(server: Running, asked: dict[str, Any], said: str) -> None:
    answer = server.client.post("/api/weigh", json={"model": 0} | asked)
    assert answer.status_code == 400
    assert said in answer.json()["error"]


def test_a_matrix_has_a_limit(server: Running) -> None:
    answer = server.client.post("/api/open", json={"model": 1, "text": "a " * 65, "site": "encoder.0"})
    assert "up to 64 words" in answer.json()["error"]


def test_a_run_is_a_source(tmp_path: Path) -> None:
    (tmp_path / "study.json").write_text("{}")  # as a run that is being written
    with pytest.raises(ExegeteError, match="not complete"):
        open_lab(tmp_path)
