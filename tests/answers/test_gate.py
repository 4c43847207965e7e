"""An audit as a check: which verdicts stop a build, and the pytest plugin that asks for it."""

import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pytest

import exegete as ex
from exegete.answers.decision import ANSWERS, Decision
from exegete.answers.gate import AuditFailedError, check_gate, named_tests, refuse_unanswerable
from exegete.answers.request import AuditRequest, study_for
from exegete.answers.scorecard import Audit
from exegete.base.errors import UsageError
from exegete.cli import main
from exegete.report.section import Verdict as Line
from exegete.runs.study import Study
from tests.studied import reviews, small_study

pytest_plugins = ["pytester"]


def line(name: str, verdict: str) -> Line:
    return Line(name, "t", "m", "?", 0.1, 9, (0.0, 0.2), 0.95, 0.0, "it does", verdict, "this checkpoint", "p")  # type: ignore[arg-type]


def found(**verdicts: str) -> Audit:
    return Audit("", tuple(line(name, verdict) for name, verdict in verdicts.items()), 4)


def test_tests_are_named_with_commas() -> None:
    assert named_tests("reads, known_answer") == ("reads", "known_answer")
    with pytest.raises(UsageError, match="faithful"):
        named_tests("faithfull")
    with pytest.raises(UsageError, match="at least one"):
        named_tests(" , ")


@pytest.mark.parametrize(
    ("name", "why"),
    [("known_answer", "does not ask known_answer"), ("needed", "does not ask necessity"), ("stable", "seed_stability")],
)
def test_what_a_study_cannot_answer_is_refused_before_it_runs(name: str, why: str) -> None:
    quick = study_for(AuditRequest(quick=True))
    assert named_tests("reads,ranks,used,faithful", quick) == ("reads", "ranks", "used", "faithful")
    with pytest.raises(UsageError, match=why):
        named_tests(f"reads,{name}", quick)


def test_a_recipe_that_has_too_few_seeds_is_refused() -> None:
    entry = {"name": "necessity"}
    few = Study.model_validate({"name": "s", "tasks": ["t"], "models": ["m"], "seeds": [0, 1], "experiments": [entry]})
    with pytest.raises(UsageError, match="needs 5 seeds, and it has 2"):
        named_tests("needed", few)
    assert named_tests("needed", few.model_copy(update={"seeds": (0, 1, 2, 3, 4)})) == ("needed",)


@pytest.mark.parametrize("words", [("--fail-on", "known_answer"), ("--strict",)])
def test_a_gate_that_cannot_be_answered_stops_the_command_at_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: tuple[str, ...]
) -> None:
    monkeypatch.setattr(sys, "argv", ["exegete", "audit", "--quick", *words, "--out", str(tmp_path / "run")])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    assert not (tmp_path / "run").exists()


def test_a_failure_is_a_failure_and_a_doubt_is_none_unless_the_gate_is_strict() -> None:
    audit = found(ranks="fails", used="holds", unique="cannot tell", needed="not testable", reads="hangs on")
    with pytest.raises(AuditFailedError, match=r"ranks fails for m on t \(0.100 \[0.000, 0.200\]\): holds if it does"):
        check_gate(audit, ["used", "ranks"])
    with pytest.raises(AuditFailedError, match="reads hangs on"):
        check_gate(audit, ["reads"])
    assert check_gate(audit, ["used"], strict=True) == []
    assert [said.split(" for")[0] for said in check_gate(audit, ["unique", "needed"])] == [
        "unique cannot tell",
        "needed not testable",
    ]
    for name in ("unique", "needed"):
        with pytest.raises(AuditFailedError, match=name):
            check_gate(audit, [name], strict=True)
    with pytest.raises(UsageError, match="does not ask 'stable'"):
        check_gate(audit, ["stable"])


def graded(*answers: str) -> Audit:
    """Of one model per answer."""
    decisions = {("t", f"m{i}"): Decision(answer, "Why.", edges=(0.7, 0.5)) for i, answer in enumerate(answers)}  # type: ignore[arg-type]
    return replace(found(reads="holds"), decisions=decisions)


STRONG = ("yes", "yes by size", "yes as")
PARTLY = ("at least partly", "about strong", "partly to strongly", "partly")


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize(("name", "enough"), [("grade<strong", STRONG), ("grade<partly", (*STRONG, *PARTLY))])
def test_a_grade_stops_where_the_answer_leaves_less_possible(answer: str, name: str, enough: tuple[str, ...]) -> None:
    audit = graded("yes", answer)
    if answer in enough:
        assert check_gate(audit, [name], strict=True) == []
        return
    label = audit.decisions["t", "m1"].label
    wanted = name.removeprefix("grade<")
    with pytest.raises(AuditFailedError) as stopped:
        check_gate(audit, [name])
    assert str(stopped.value) == f"attention may be less than {wanted} for m1 on t: {label}. Why."
    assert stopped.value.exit_code == 3


def test_grades_and_tests_are_named_together() -> None:
    assert named_tests("reads, grade < partly,carries") == ("reads", "grade<partly", "carries")
    for wrong in ("grade<partley", "grade", "grade>partly", "grade<"):
        with pytest.raises(UsageError, match=r"to fail on: write grade<partly or grade<strong"):
            named_tests(f"reads,{wrong}")
    with pytest.raises(UsageError, match="grad"):
        named_tests("grad<partly")
    quick = study_for(AuditRequest(quick=True))
    assert named_tests("grade<strong", quick) == ("grade<strong",)
    without = quick.model_copy(update={"experiments": ({"name": "permutation"},)})
    with pytest.raises(UsageError, match="'grade<strong': it does not ask mediation"):
        named_tests("grade<strong", without)
    both = replace(graded("no"), tests=(line("reads", "fails"),))
    with pytest.raises(AuditFailedError, match=r"less than partly for m0 on t.*; reads fails for m on t"):
        check_gate(both, ["reads", "grade<partly"])


def test_only_what_is_faithful_is_graded() -> None:
    with pytest.raises(UsageError, match="graded for the goal faithful, not sanity"):
        AuditRequest(quick=True, goal="sanity", fail_on="used,grade<partly")
    AuditRequest(quick=True, goal="sanity", fail_on="used")
    for audit in (found(reads="holds"), replace(graded("yes"), goal="sanity")):
        with pytest.raises(UsageError, match="grades nothing"):
            check_gate(audit, ["grade<partly"])


@pytest.mark.parametrize(("answer", "code"), [("at most partly", 3), ("partly", 0)])
def test_the_command_and_python_stop_at_a_grade(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, answer: str, code: int
) -> None:
    monkeypatch.setattr("exegete.answers.audit.audit_study", lambda *_: graded(answer))
    monkeypatch.setattr("exegete.cli.audit._show_audit", lambda *_: [])
    monkeypatch.setattr("exegete.runs.run.read_manifest", lambda _: {})
    command = ["exegete", "audit", "--quick", "--quiet", "--fail-on", "grade<partly", "--out", str(tmp_path / "run")]
    monkeypatch.setattr(sys, "argv", command)
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == code
    with pytest.raises(AuditFailedError) if code else nullcontext():
        assert ex.audit(quick=True, fail_on=["grade<partly"], out=tmp_path / "other").decisions


@pytest.mark.parametrize(("answer", "passed"), [("partly", 1), ("no", 0)])
def test_the_plugin_asks_for_a_grade(pytester: pytest.Pytester, answer: str, passed: int) -> None:
    pytester.makepyfile(
        """
        def test_attention(assert_attention):
            assert_attention("bilstm", "rotten_tomatoes", grade="partly")
        """
    )
    with patch("exegete.audit", return_value=graded(answer)):
        result = pytester.runpytest_inprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=passed, failed=1 - passed)


@pytest.mark.parametrize(("verdict", "code"), [("fails", 3), ("hangs on", 3), ("cannot tell", 0), ("holds", 0)])
def test_a_test_that_fails_has_an_exit_code_of_its_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, verdict: str, code: int
) -> None:
    """1 is an audit that did not run, 2 wrong usage: a build that stops must know which it was."""
    monkeypatch.setattr("exegete.answers.audit.audit_study", lambda *_: found(reads=verdict))
    monkeypatch.setattr("exegete.cli.audit._show_audit", lambda *_: [])
    command = ["exegete", "audit", "--quick", "--quiet", "--fail-on", "reads", "--out", str(tmp_path / "run")]
    monkeypatch.setattr(sys, "argv", command)
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == code


@pytest.mark.parametrize(
    ("verdict", "settings", "passed"),
    [
        ("holds", "", 1),
        ("fails", "", 0),
        ("fails", ", strict=False", 0),
        ("hangs on", ", strict=False", 0),
        ("cannot tell", "", 0),
        ("not testable", "", 0),
        ("cannot tell", ", strict=False", 1),
        ("not testable", ", strict=False", 1),
    ],
)
def test_the_plugin_turns_verdicts_into_test_results(
    pytester: pytest.Pytester, verdict: str, settings: str, passed: int
) -> None:
    pytester.makepyfile(
        f"""
        def test_attention(assert_attention):
            audit = assert_attention("bilstm", "rotten_tomatoes", holds=("ranks",){settings})
            assert audit.tests
        """
    )
    with patch("exegete.audit", return_value=found(ranks=verdict)) as asked:
        result = pytester.runpytest_inprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=passed, failed=1 - passed)
    assert asked.call_args.args == ("bilstm", "rotten_tomatoes")
    assert isinstance(asked.call_args.kwargs["out"], Path)


def test_the_plugin_refuses_what_cannot_be_answered(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        def test_attention(assert_attention):
            assert_attention("bilstm", "rotten_tomatoes", holds=("stable",))
        """
    )
    with patch("exegete.audit") as asked:
        result = pytester.runpytest_inprocess("-p", "no:cacheprovider")
    result.assert_outcomes(failed=1)
    assert not asked.called


def test_what_no_task_or_model_can_answer_is_refused_before_it_is_trained(tmp_path: Path) -> None:
    file = reviews(tmp_path / "reviews.csv", 40)
    entries = ({"name": "plausibility"}, {"name": "permutation"})
    study = small_study("gated", file, ["average:size=8,hidden=8"], *entries)
    with patch("exegete.training.fit.Fit.run") as trained:
        refuse_unanswerable(("used",), study)
        with pytest.raises(UsageError, match=r"'plausible': .*has no rationales"):
            refuse_unanswerable(("used", "plausible"), study)
    assert not trained.called
