"""One prediction, all methods: every number is computed again here, literally."""

import json
import math
from itertools import combinations
from pathlib import Path
from statistics import median

import polars as pl
import pytest
import torch
from scipy.stats import kendalltau

import exegete
from exegete.answers.comparison import Removals
from exegete.answers.explain import explain_all, explain_file, explain_prediction
from exegete.answers.explanation import Explanation, Method
from exegete.answers.question import Contrast, read_texts
from exegete.answers.text_verdict import TextVerdict, read_verdict
from exegete.base.errors import ExegeteError, UsageError
from exegete.base.noise import stable_seed, uniform
from exegete.importance.catalogue import IMPORTANCES, computable
from exegete.importance.contract import Target
from exegete.models.contract import Predictor
from exegete.models.ours.classifier import PoolingClassifier
from exegete.tasks.example import Example
from tests.answers.explained_model import TEXT, checkpoint, saved

FEW = ("attention", "gradient:norm=l2", "leave_one_out:of=logit", "random")
TEXTS = (TEXT, "a b", "b c d a e f", "d j a f c h", "f e j i h g b c")


def logits(model: Predictor, words: tuple[str, ...]) -> torch.Tensor:
    with torch.no_grad():
        return model.trace(model.collate([Example(0, (words,), 0)])).logits[0].double()


@pytest.fixture(scope="module")
def found() -> Explanation:
    return explain_prediction(checkpoint(), TEXT, FEW)


def test_the_text_is_read_as_the_task_read_it(found: Explanation) -> None:
    assert found.words == ("b", "a", "c", "!", "d", "e", "a", "?", "f", "g")
    assert found.unknown == (3, 7)
    assert any("2 of 10 words are unknown" in note for note in found.notes)
    assert found.sentences == (0, 0, 0, 0, 1, 1, 1, 1, 2, 2)


def test_prediction_and_probabilities(found: Explanation) -> None:
    p = logits(checkpoint().classifier, found.words).softmax(-1)
    assert list(found.probabilities) == ["no", "yes"]
    assert list(found.probabilities.values()) == pytest.approx(p.tolist(), abs=1e-6)
    assert found.prediction == found.target == ("no", "yes")[int(p.argmax())]


def test_scores_are_those_of_the_importance(found: Explanation) -> None:
    model = checkpoint().classifier
    batch = model.collate([Example(0, (found.words,), 0)])
    target = Target(torch.tensor([model.labels.index(found.target)]))
    for name in ("attention", "gradient:norm=l2", "leave_one_out:of=logit"):
        assert found[name].scores == pytest.approx(
            IMPORTANCES.make(name)(model, batch, target).values[0].tolist(), abs=1e-5
        )


def test_agreement_is_kendalls_tau_b_of_every_pair(found: Explanation) -> None:
    table = found.agreement
    assert set(table.names) == set(FEW)
    for a, b in combinations(table.names, 2):
        one, other = found[a], found[b]
        sizes = not (one.signed and other.signed)
        x, y = ([abs(v) if sizes else v for v in m.scores] for m in (one, other))
        assert table.between(a, b) == pytest.approx(kendalltau(x, y).statistic)
        assert table.between(a, b) == table.between(b, a)
        assert table.by[table.names.index(a)][table.names.index(b)] == ("magnitude" if sizes else "score")


def test_two_signed_methods_are_compared_with_their_signs() -> None:
    shown = explain_prediction(checkpoint(), TEXT, ("leave_one_out:of=logit", "occlusion"))
    x, y = (shown[name].scores for name in ("leave_one_out", "occlusion"))
    assert min(x) < 0 < max(x)
    assert shown.agreement.between("leave_one_out:of=logit", "occlusion") == pytest.approx(kendalltau(x, y).statistic)
    assert kendalltau(x, y).statistic != pytest.approx(kendalltau(*[[abs(v) for v in z] for z in (x, y)]).statistic)


def in_order(method: Method) -> list[int]:
    assert len(set(method.scores)) == len(method.scores), "a tie leaves the order open"
    return sorted(range(len(method.scores)), key=lambda place: -method.scores[place])


def literally_deleted(words: tuple[str, ...], gone: list[int]) -> tuple[str, ...]:
    return tuple(word for place, word in enumerate(words) if place not in gone)


@pytest.mark.parametrize("text", TEXTS)
def test_flips_are_counted_by_deleting_word_after_word(text: str) -> None:
    model = checkpoint().classifier
    shown = explain_prediction(checkpoint(), text, ("leave_one_out:of=logit", "gradient:norm=l2", "attention"))
    for method in shown.methods:
        order, n = in_order(method), len(shown.words)
        classes = [int(logits(model, literally_deleted(shown.words, order[:k])).argmax()) for k in range(1, n)]
        predicted = model.labels.index(shown.prediction)
        assert method.flip == next((k for k, c in enumerate(classes, 1) if c != predicted), None)


@pytest.mark.parametrize("text", TEXTS)
def test_random_orders_are_counted_until_their_median_is_known(text: str) -> None:
    model, shown = checkpoint().classifier, explain_prediction(checkpoint(), text, ("attention",))
    n, predicted = len(shown.words), model.labels.index(shown.prediction)
    noise = uniform(stable_seed("reading"), stable_seed(shown.words), torch.arange(20)[:, None], torch.arange(n))
    counts = []
    for order in noise.argsort(-1, descending=True).tolist():
        classes = [int(logits(model, literally_deleted(shown.words, order[:k])).argmax()) for k in range(1, n)]
        counts.append(next((k for k, c in enumerate(classes, 1) if c != predicted), math.inf))
    middle = median(counts)
    assert shown.reading is not None
    assert shown.reading.random_flip == (None if middle == math.inf else middle)


def test_some_text_flips_and_some_does_not() -> None:
    counts = [each["leave_one_out"].flip for each in explain_all(checkpoint(), TEXTS, ("leave_one_out:of=logit",))]
    assert None in counts
    assert any(count is not None for count in counts)


def test_comprehensiveness_is_the_mean_loss_of_probability(found: Explanation) -> None:
    model, label = checkpoint().classifier, ("no", "yes").index(found.target)
    whole = float(logits(model, found.words).softmax(-1)[label])
    for method in found.methods:
        order = in_order(method)
        left = [
            float(logits(model, literally_deleted(found.words, order[: math.ceil(q * 10 - 1e-9)])).softmax(-1)[label])
            for q in (0.01, 0.05, 0.1, 0.2, 0.5)
        ]
        assert method.comprehensiveness == pytest.approx(sum(whole - p for p in left) / 5, abs=1e-5)


def test_without_a_run_this_text_orders_the_methods(found: Explanation) -> None:
    shown = [method.comprehensiveness for method in found.methods]
    assert shown == sorted(shown, reverse=True)
    assert "no run vouches" in found.trust.sentence


def test_a_text_is_the_same_alone_and_among_others() -> None:
    alone = explain_prediction(checkpoint(), TEXT, ("random", "lime"))
    _, among = explain_all(checkpoint(), ["a b c", TEXT], ("random", "lime"))
    assert [m.scores for m in alone.methods] == [m.scores for m in among.methods]


def test_start_and_end_symbols_are_not_shown() -> None:
    wrapped = explain_prediction(checkpoint(wrap=True), TEXT, FEW)
    assert all(len(method.scores) == len(wrapped.words) == 10 for method in wrapped.methods)


def test_all_methods_by_default_and_refusals_are_told() -> None:
    shown = exegete.explain(checkpoint(), "a b c d e")
    asked = {name.partition(":")[0] for name in (*(m.name for m in shown.methods), *shown.refused)}
    assert asked == set(computable())
    assert "gradient:norm=l2" in [m.name for m in shown.methods]
    assert "leave_one_out:of=logit" in [m.name for m in shown.methods]
    assert "deeplift" in shown.refused  # gates multiply signals in a BiLSTM
    assert any("not for this model: " in note and "DeepLIFT" in note for note in shown.heatmap().notes)


def test_a_methods_own_quantity_wins() -> None:
    words = ["a", "b", "c", "d", "e"]
    shown = explain_prediction(checkpoint(), "a b c d e", ("leave_one_out:of=probability", "leave_one_out:of=logit"))
    model, label = checkpoint().classifier, ("no", "yes").index(shown.target)
    for of in ("probability", "logit"):
        whole, *without = (
            float((z.softmax(-1) if of == "probability" else z)[label])
            for z in (logits(model, tuple(words[:i] + words[i + 1 :])) for i in (len(words), *range(len(words))))
        )
        assert shown[f"leave_one_out:of={of}"].scores == pytest.approx([whole - left for left in without], abs=1e-5)


def test_a_given_class_is_explained() -> None:
    ours = explain_prediction(checkpoint(), TEXT, ("leave_one_out:of=logit", "attention"))
    other = next(label for label in ours.probabilities if label != ours.prediction)
    theirs = explain_prediction(checkpoint(), TEXT, ("leave_one_out:of=logit", "attention"), target=other)
    assert (theirs.target, theirs.prediction) == (other, ours.prediction)
    # One output, so that what speaks for a class speaks against the other.
    assert theirs["leave_one_out"].scores == pytest.approx([-v for v in ours["leave_one_out"].scores], abs=1e-6)
    assert theirs.reading is not None
    assert theirs.reading.carries is None


def test_a_class_is_set_against_another() -> None:
    methods = ("leave_one_out:of=logit", "attention")
    ours = explain_prediction(checkpoint(), TEXT, methods)
    other = next(label for label in ours.probabilities if label != ours.prediction)
    theirs = explain_prediction(checkpoint(), TEXT, methods, target=other)
    both = exegete.explain(checkpoint(), TEXT, methods, contrast=other)
    assert (both.target, both.contrast, ours.contrast) == (ours.prediction, other, None)
    pairs = zip(ours["leave_one_out"].scores, theirs["leave_one_out"].scores, strict=True)
    assert both["leave_one_out"].scores == pytest.approx([a - b for a, b in pairs], abs=1e-6)
    assert both["attention"].scores == ours["attention"].scores
    assert f"Explained: the logit of {both.target} minus that of {other}." in both.heatmap().title
    assert both.to_json()["contrast"] == other
    for target, sentence in ((None, "is what the model predicts"), (ours.prediction, "can't be set against itself")):
        with pytest.raises(UsageError, match=sentence):
            explain_prediction(checkpoint(), TEXT, methods, target=Contrast(target, ours.prediction))


@pytest.mark.parametrize(
    ("text", "asked", "sentence"),
    [
        ("", {}, "the text is empty"),
        (" \n ", {}, "the text is empty"),
        ("a b", {"target": "maybe"}, "no class 'maybe': choose from no, yes"),
        ("a b", {"target": Contrast("no", "maybe")}, "no class 'maybe': choose from no, yes"),
        ("a b", {"methods": ["atention"]}, "did you mean 'attention'"),
        ("a b", {"methods": ["gradient:norn=l2"]}, "did you mean 'norm'"),
        ("a b", {"methods": []}, "at least one method"),
        ("a b", {"methods": ["deeplift"]}, "no method is left: deeplift"),
        ("a b", {"of": "los"}, "unknown quantity 'los'"),
    ],
)
def test_wrong_questions_are_one_sentence(text: str, asked: dict[str, object], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        explain_prediction(checkpoint(), text, **asked)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["a", "zzz", "zzz yyy zzz", "a a a a a a", "e " * 80])
def test_odd_texts_have_no_nan_and_say_what_is_odd(text: str) -> None:
    shown = explain_prediction(checkpoint(), text, (*FEW, "occlusion"))
    json.dumps(shown.to_json("sentence"), allow_nan=False)
    assert shown.html()
    said = " ".join(shown.notes)
    assert ("no word of this text is in the model's vocabulary" in said) == ("z" in text)
    assert ("nothing to rank" in said) == (len(shown.words) == 1)
    if len(shown.words) < 5:
        assert shown.reading is not None
        assert "too short" in shown.reading.sentences[0]


def test_half_characters_are_replaced_so_that_a_page_can_be_written(tmp_path: Path) -> None:
    shown = explain_prediction(checkpoint(), "a \ud800 b", FEW)
    assert shown.words == ("a", "\ufffd", "b")
    shown.save(tmp_path / "page.html")


def test_a_text_without_spaces_is_told_to_be_one_word() -> None:
    said = " ".join(explain_prediction(checkpoint(), "这部电影的情节很精彩", FEW).notes)
    assert "the text has no spaces between words" in said
    assert "tokenizer=characters" in said


def test_a_model_that_ignores_its_input_is_told() -> None:
    deaf = checkpoint()
    assert isinstance(deaf.classifier, PoolingClassifier)
    with torch.no_grad():
        deaf.classifier.decoder.weight.zero_()
    shown = explain_prediction(deaf, TEXT, (*FEW, "gradient_x_input"))
    assert any("nothing to explain" in note for note in shown.notes)
    assert shown["gradient"].complaints
    assert "this text" in shown["gradient"].complaints[0]
    assert not shown["attention"].complaints
    json.dumps(shown.to_json(), allow_nan=False)


def test_a_saturated_probability_offers_the_logit() -> None:
    sure = checkpoint()
    assert isinstance(sure.classifier, PoolingClassifier)
    with torch.no_grad():
        sure.classifier.decoder.weight.mul_(500)
    shown = explain_prediction(sure, TEXT, ("gradient:norm=l2", "attention"), of="probability")
    assert any("of=logit" in said for said in (*shown.notes, *shown["gradient"].complaints))
    assert not any("saturated" in note for note in explain_prediction(sure, TEXT, ("attention",)).notes)


def test_frame_and_files(found: Explanation, tmp_path: Path) -> None:
    assert found.frame.columns == ["position", "word", "method", "score"]
    assert len(found.frame) == 10 * len(FEW)
    for name in ("it.json", "it.html", "it.csv"):
        found.save(tmp_path / name)
    assert json.loads((tmp_path / "it.json").read_text())["words"] == list(found.words)
    assert (tmp_path / "it.html").read_text().startswith("<!doctype html>")
    assert pl.read_csv(tmp_path / "it.csv")["method"].n_unique() == len(FEW)
    with pytest.raises(UsageError, match=r"\.json, \.html or \.csv"):
        found.save(tmp_path / "it.xlsx")
    assert found._repr_html_().startswith("<section")


def test_hostile_words_are_escaped() -> None:
    shown = explain_prediction(checkpoint(), "a <script>alert(1)</script> b", ("attention", "random"))
    assert "<script" not in shown.html()
    assert "&lt;" in shown.html()


def test_sentences_are_sums_of_their_words(found: Explanation) -> None:
    told = found.to_json("sentence")["sentences"]
    assert [each["text"] for each in told] == ["b a c !", "d e a ?", "f g"]
    scores = found["leave_one_out"].scores
    assert told[1]["scores"]["leave_one_out:of=logit"] == pytest.approx(sum(scores[4:8]))
    assert len(found.heatmap("sentence").words) == 3


def test_texts_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "texts.txt"
    path.write_text("a b c\n\nd e\n")
    assert [each.words for each in explain_file(checkpoint(), path, ("attention",))] == [("a", "b", "c"), ("d", "e")]
    path.write_text("\n \n")
    with pytest.raises(UsageError, match="has no text"):
        read_texts(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ExegeteError, match="UTF-8"):
        read_texts(path)
    with pytest.raises(ExegeteError, match="there is no file"):
        read_texts(tmp_path / "none.txt")


def test_a_missing_or_damaged_checkpoint_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ExegeteError, match="there is no checkpoint folder"):
        explain_prediction(tmp_path / "none", "a")
    folder = saved(tmp_path / "model")
    assert explain_prediction(folder, "a b", ("attention",)).words == ("a", "b")
    (folder / "model.safetensors").write_bytes(b"")
    with pytest.raises(ExegeteError, match="damaged"):
        explain_prediction(str(folder), "a")


def reading(**numbers: object) -> TextVerdict:
    plain = {
        "n": 20, "others": ("lrp", "lime"), "with_others": 0.5, "among_others": 0.55, "flip": 2, "best": "lrp",
        "best_flip": 2, "random_flip": 9.0, "decided": True,
    }  # fmt: skip
    return TextVerdict(**(plain | numbers))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("numbers", "agrees", "carries", "said"),
    [
        ({}, True, True, "Nothing in this text speaks against"),
        ({"with_others": 0.1, "flip": 9}, False, False, "should not be read"),
        ({"with_others": 0.4}, None, True, "can't be told here"),  # 0.05 below the margin, ± 0.16 by chance
        ({"flip": None}, True, False, "The signs disagree"),
        ({"with_others": 0.1}, False, True, "Its first words may be read"),
        ({"flip": 6}, True, None, "this text can't tell"),  # sooner than random, later than the best
        ({"flip": None, "best_flip": None, "random_flip": None}, True, None, "this text can't tell"),
        ({"decided": False}, True, None, "not the predicted one"),
        ({"with_others": None}, None, True, "can't be compared"),
        ({"n": 4}, None, None, "4 words is too short"),
    ],
)  # fmt: skip
def test_the_reading_follows_from_its_numbers(
    numbers: dict[str, object], agrees: bool | None, carries: bool | None, said: str
) -> None:
    shown = reading(**numbers)
    assert (shown.agrees, shown.carries) == (agrees, carries)
    assert said in " ".join(shown.sentences)


def test_a_reading_takes_its_numbers_from_the_scores() -> None:
    words = torch.arange(1.0, 7.0)
    values = {"attention": words, "lrp": -words, "lime": words.flip(0), "attention_x_gradient": words, "random": words}
    signed = {name: name not in ("attention", "random") for name in values}
    gone = Removals(dict.fromkeys(values, 0.1), dict(zip(values, (3, 2, None, 1, 1), strict=True)), 4.0, False)
    shown = read_verdict(values, signed, gone, decided=True)
    assert shown is not None
    assert shown.others == ("lrp", "lime")  # neither noise nor relatives of attention
    assert (shown.with_others, shown.among_others) == (0.0, -1.0)  # sizes: 1 with lrp and −1 with lime
    assert (shown.flip, shown.best, shown.best_flip, shown.random_flip) == (3, "lrp", 2, 4.0)
    assert read_verdict({"lrp": words}, {"lrp": True}, gone, decided=True) is None


@pytest.mark.slow
def test_5000_words() -> None:
    methods = ("attention", "gradient:norm=l2", "gradient_x_input", "random")  # others take a pass per word
    shown = explain_prediction(checkpoint("average:size=7,hidden=6,scale=1"), "a b c d e f g h i j " * 500, methods)
    assert len(shown["attention"].scores) == 5000
    assert shown.reading is not None
    assert "asked after every twentieth" in " ".join(shown.reading.sentences)
