"""Labels are short, and never the same for different models."""

from dataclasses import dataclass
from typing import ClassVar

from exegete.importance.catalogue import IMPORTANCES
from exegete.report.families import FAMILIES, OTHER, family
from exegete.report.labels import (
    importance_label,
    importance_labels,
    measure_label,
    method_label,
    model_label,
    model_labels,
    pair_label,
    size_label,
)


def test_leave_one_out_is_called_by_what_it_compares() -> None:
    """A size without a sign and a signed loss are two importances, in every list that people read."""
    assert method_label("leave_one_out") == "leave-one-out (TVD)"
    assert method_label("leave_one_out:of=logit") == "leave-one-out (signed)"
    assert (
        importance_label("leave_one_out:window=2,of=probability") == "leave-one-out (signed, of probability, window=2)"
    )
    both = importance_labels(["leave_one_out", "leave_one_out:of=logit", "occlusion"])
    assert len(set(both.values())) == 3


def test_a_model_is_its_attention_and_projection() -> None:
    assert model_label("bilstm:attention=tanh,projection=sparsemax,vectors=glove") == "tanh, sparsemax"
    assert model_label("bilstm") == "tanh, softmax"
    assert model_label("bilstm:projection=sparsegen,lam=0.5") == "tanh, sparsegen(λ=0.5)"
    assert model_label("runs/audit/model") == "runs/audit/model"


def test_labels_name_what_differs_and_nothing_else() -> None:
    specs = [
        "bilstm:vectors=glove",
        "bilstm",
        "average:vectors=glove,activation=relu",
        "hf:bert-base-uncased",
        "bilstm:hidden=64",
    ]
    labels = model_labels(specs)
    assert list(labels) == specs
    assert len(set(labels.values())) == len(specs)
    assert labels["hf:bert-base-uncased"] == "hf:bert-base-uncased"
    assert labels["average:vectors=glove,activation=relu"] == "average: tanh, softmax"  # the only one of its kind
    assert labels["bilstm:hidden=64"] == "bilstm: tanh, softmax, vectors=none, hidden=64"
    same = model_labels(["bilstm:vectors=glove,projection=softmax", "bilstm:vectors=glove,projection=sparsemax"])
    assert list(same.values()) == ["tanh, softmax", "tanh, sparsemax"]


def test_pairs_measures_and_sizes() -> None:
    assert pair_label("attention", "leave_one_out") == "attention – leave-one-out (TVD)"
    assert importance_label("lime:samples=100") == "LIME (samples=100)"
    assert measure_label("legacy") == "legacy top-k τ"
    assert measure_label("my_own") == "my own"
    assert (size_label("nonzeros"), size_label("5")) == ("support", "5")


def test_a_method_of_ones_own_says_its_label_and_family() -> None:
    @dataclass(frozen=True)
    class Mine:
        family: ClassVar[str] = "erasure"
        label: ClassVar[str] = "MyMethod"
        depth: int = 1

    IMPORTANCES.add("labelled_by_a_test", Mine, "a test's own")
    assert importance_label("labelled_by_a_test:depth=2") == "MyMethod (depth=2)"
    assert family("labelled_by_a_test:depth=2") == "erasure"


def test_every_importance_of_ours_has_a_family() -> None:
    declared = {name: getattr(entry.load(), "family", OTHER) for name, entry in IMPORTANCES.items()}
    assert set(declared.values()) == set(FAMILIES)
    assert [name for name, said in declared.items() if said == OTHER] == ["given"]
