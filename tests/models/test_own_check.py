"""What an own model does wrong is one sentence, when it is made; a file is imported once, and again when it changes."""

import sys
from pathlib import Path

import pytest

from exegete.base.errors import ExegeteError, UsageError
from exegete.models.own.file import source_hash
from tests.models.own_models import GENERAL, POOLING, own, written

WRONG = {
    "other shape of logits": (
        "return self.out(context)",
        "return self.out(context)[:, :1]",
        r"logits of shape \(4, 1\)",
    ),
    "infinite logits": ("return self.out(context)", "return self.out(context) / 0", "logits that are not finite"),
    "weights for scores": (
        "return 3 * self.query(states).squeeze(-1)",
        "return self.query(states).squeeze(-1).masked_fill(~mask, -1e9).softmax(-1)",
        "weights that sum to 1 already",
    ),
    "infinite scores": ("return 3 * self", "return float('inf') * self", "scores that are not finite"),
    "reads its padding": (
        "return self.layer(embedded).tanh()",
        "return self.layer(embedded).tanh() + embedded.mean(1, keepdim=True)",
        "its padding is read somewhere",
    ),
    "random at rest": (
        "return self.layer(embedded).tanh()",
        "return self.layer(embedded).tanh() + torch.randn(1)",
        "the second time",
    ),
    "no gradient": ("self.layer(embedded)", "self.layer(embedded.detach())", "without a gradient"),
    "scores of another shape": (".squeeze(-1)", "", r"scores of shape \(4, 5, 1\)"),
    "flat embeddings": ("return self.table(tokens)", "return self.table(tokens).sum(-1)", "embed must give"),
    "no adapter": ("return Adapter(len(words), len(labels))", "return nn.Linear(2, 2)", "returns Linear: return an"),
    "another name": ("def make(", "def build(", "has no function 'make'"),
    "a method too few": ("def states(", "def encode(", "has no states"),
    "a forward beside": (
        "def decode(",
        "def forward(self, *given):\n        return 0\n    def decode(",
        "forward of its own",
    ),
    "an error of its own": ("self.layer(embedded)", "self.lair(embedded)", r"mine.py, line 13: AttributeError.*lair"),
    "no Python": ("def make(", "def make((", "mine.py, line 19: this is not Python"),
}
WRONG_GENERAL = {
    "never attends": (
        "        q, k, v",
        "        return self.out(torch.cat([embedded[:, 0], embedded[:, 0]], -1))\n        q, k, v",
        "never calls attend",
    ),
    "weights unused": (
        'attend("pool", self.pool(x).mT, x) @ x',
        "(attend('pool', self.pool(x).mT, x), x[:, :1].expand(-1, 2, -1))[1]",
        "go on with",
    ),
    "one name twice": ('"pool"', '"self"', "attend twice with the name 'self'"),
    "no states": ("q @ k.mT, embedded)", "q @ k.mT, q)", "give what is attended to, one state per token"),
    "three-dimensional self-attention": ('"self", q @ k.mT', '"self", (q @ k.mT)[:, :, :1]', "scores of shape"),
}


def _changed(text: str, old: str, new: str) -> str:
    assert old in text
    return text.replace(old, new, 1)


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_one_sentence(name: str, tmp_path: Path) -> None:
    old, new, sentence = WRONG[name]
    with pytest.raises(ExegeteError, match=sentence) as found:
        own(written(tmp_path, _changed(POOLING, old, new)))
    assert "\n" not in str(found.value)
    assert "mine.py" in str(found.value)


@pytest.mark.parametrize("name", WRONG_GENERAL)
def test_what_is_wrong_with_a_forward_is_one_sentence(name: str, tmp_path: Path) -> None:
    old, new, sentence = WRONG_GENERAL[name]
    body = _changed(GENERAL, old, new)
    with pytest.raises(UsageError, match=sentence):
        own(written(tmp_path, body))


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ExegeteError, match=r"there is no file .*gone.py: give the path"):
        own(f"own:file={tmp_path / 'gone.py'}")


def test_a_decoder_that_starts_at_zero_is_no_mistake(tmp_path: Path) -> None:
    body = _changed(POOLING, "def embed", "    nn.init.zeros_(self.out.weight)\n    def embed")
    assert own(written(tmp_path, body)).sites == ("attention",)


# Files.


def test_a_file_may_import_what_lies_beside_it_and_its_hash_knows(tmp_path: Path) -> None:
    head, body = POOLING.split("def make")
    (tmp_path / "reviewer_beside.py").write_text("SIZE = 5\n", encoding="utf8")
    (tmp_path / "unrelated.py").write_text("X = 1\n", encoding="utf8")
    spec = written(
        tmp_path, f"from reviewer_beside import SIZE\n{head}def make{body.replace('labels))', 'labels), SIZE)')}"
    )
    first = source_hash(str(tmp_path / "mine.py"))
    assert own(spec).size == 5
    (tmp_path / "unrelated.py").write_text("X = 2\n", encoding="utf8")
    assert source_hash(str(tmp_path / "mine.py")) == first
    (tmp_path / "reviewer_beside.py").write_text("SIZE = 7\n", encoding="utf8")
    assert source_hash(str(tmp_path / "mine.py")) != first
    assert own(spec).size == 7
    assert str(tmp_path) not in sys.path


def test_packages_beside_it_too(tmp_path: Path) -> None:
    package = tmp_path / "littlelayers"
    package.mkdir()
    (package / "__init__.py").write_text("", encoding="utf8")
    (package / "sizes.py").write_text("SIZE = 4\n", encoding="utf8")
    head, body = POOLING.split("def make")
    spec = written(
        tmp_path, f"from littlelayers.sizes import SIZE\n{head}def make{body.replace('labels))', 'labels), SIZE)')}"
    )
    before = own(spec)
    (package / "sizes.py").write_text("SIZE = 3\n", encoding="utf8")
    after = own(spec)
    assert (before.size, after.size) == (4, 3)
    assert before.spec != after.spec


def test_the_name_carries_the_hash_and_a_changed_file_is_said(tmp_path: Path) -> None:
    spec = written(tmp_path, POOLING)
    model = own(spec)
    assert model.spec == f"{spec},hash={source_hash(str(tmp_path / 'mine.py'))}"
    assert own(model.spec).spec == model.spec
    written(tmp_path, POOLING.replace("3 *", "2 *"))
    with pytest.raises(ExegeteError, match="has changed since this model was made with it"):
        own(model.spec)
    assert own(spec).spec != model.spec
