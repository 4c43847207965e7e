"""Labels are short, and never the same for different models."""

from exegete.page.labels import importance_label, measure_label, model_label, model_labels, pair_label, size_label


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
    assert labels["average:vectors=glove,activation=relu"].startswith("average: tanh, softmax, vectors=glove")
    same = model_labels(["bilstm:vectors=glove,projection=softmax", "bilstm:vectors=glove,projection=sparsemax"])
    assert list(same.values()) == ["tanh, softmax", "tanh, sparsemax"]


def test_pairs_measures_and_sizes() -> None:
    assert pair_label("attention", "leave_one_out") == "attention – leave-one-out"
    assert importance_label("lime:samples=100") == "LIME (samples=100)"
    assert measure_label("legacy") == "legacy top-k τ"
    assert measure_label("my_own") == "my own"
    assert (size_label("nonzeros"), size_label("5")) == ("support", "5")
