"""Keys: equal content, equal key; the code of everything that a stage imports is part of it."""

import ast
from pathlib import Path

import pytest

from exegete.runs import keys, stages
from tests.small import small_model, texts


def test_a_modules_code_reaches_what_it_imports() -> None:
    reached = keys._reached("exegete.importance.leave_one_out")
    assert {"exegete.models.contract", "exegete.tasks.batching", "exegete.base.noise"} <= reached
    assert not any(name.startswith("exegete.models.ours") for name in reached)  # asked by contract: see `model_key`
    assert not any(name.startswith("exegete.runs") for name in reached)


def test_the_code_of_a_model_is_part_of_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who asks a model by contract never imports its code, and still depends on it."""
    model = small_model("bilstm:size=4,hidden=3", texts(3))
    before = stages.model_key(model)
    assert before == stages.model_key(model)
    assert "exegete.models.ours.deletion" in keys._reached(type(model).__module__)
    monkeypatch.setattr(keys, "code_hash", lambda module: f"other {module}")
    assert stages.model_key(model) != before


def test_a_change_in_what_is_imported_changes_the_hash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "littlehouse"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "low.py").write_text("X = 1\n")
    (package / "high.py").write_text("def f():\n    from littlehouse import low\n    return low.X\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    def fresh() -> str:
        for cached in (keys.code_hash, keys._path, keys._imports):
            cached.cache_clear()
        return keys.code_hash("littlehouse.high")

    before = fresh()
    assert fresh() == before
    (package / "low.py").write_text("X = 2\n")
    assert fresh() != before


def test_what_trains_a_model_does_not_hang_on_studies_or_on_the_front_door() -> None:
    reached = keys._reached("exegete.training.train")
    assert "exegete.training.fit" in reached
    measures = {name for name in reached if name.startswith("exegete.measures.")}
    assert measures <= {"exegete.measures.ratios"}  # F1, which is told after every epoch
    assert not any(name.startswith(("exegete.runs", "exegete.experiments")) for name in reached)
    assert "exegete" not in reached


def test_drawing_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    assert any(name.startswith("exegete.report") for name in keys._reached("exegete.experiments.agreement.experiment"))
    with_drawing = keys.code_hash("exegete.experiments.agreement.experiment")
    without = {
        name for name in keys._reached("exegete.experiments.agreement.experiment") if not keys.DRAWING.match(name)
    }
    monkeypatch.setattr(keys, "_reached", lambda module: without)
    keys.code_hash.cache_clear()
    assert keys.code_hash("exegete.experiments.agreement.experiment") == with_drawing
    keys.code_hash.cache_clear()


def parsed(path: Path, module: str) -> set[str]:
    """What a file imports from the package by Python's own reading of it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    if module == keys.BY_NAME:
        strings = [n.value for n in ast.walk(ast.parse(path.read_bytes())) if isinstance(n, ast.Constant)]
        found |= {value.partition(":")[0] for value in strings if isinstance(value, str) and ":" in value}
    return {name for name in found if name.startswith("exegete.") and keys._is_module(name)}


@pytest.mark.slow
def test_imports_found_in_the_text_are_those_that_python_finds() -> None:
    src = Path(keys.__file__).parents[2]
    modules = {".".join(p.relative_to(src).with_suffix("").parts): p for p in src.rglob("*.py") if p.stem != "__init__"}
    assert len(modules) > 300
    for module, path in modules.items():
        assert keys._imports(module) == parsed(path, module), module
