"""Groups: Γ by class and by length, and what is said only where it is often so."""

from exegete.answers.groups import BesideGrade, Group
from exegete.answers.pages.groups import groups_section
from tests.answers.pages.runs import asked, audit

CLASSES = (Group("1", 0.8, 0.7, 0.9, 60), Group("neg", 0.4, 0.3, 0.5, 50))
LENGTHS = (Group("long", 0.5, 0.4, 0.6, 40), Group("short", 0.7, 0.6, 0.8, 40))


def test_classes_and_lengths_stand_in_one_table() -> None:
    section = groups_section(audit(asked(), beside={("sst", "bilstm"): BesideGrade(classes=CLASSES, lengths=LENGTHS)}))
    assert section is not None
    assert [cells[:3] for cells in section.tables[0].cells()] == [
        ["predicted class 1", "0.800", "[0.700, 0.900]"],
        ["predicted neg", "0.400", "[0.300, 0.500]"],
        ["short texts", "0.700", "[0.600, 0.800]"],
        ["long texts", "0.500", "[0.400, 0.600]"],
    ]
    assert section.paragraphs == []


def test_what_is_often_so_is_said() -> None:
    often = BesideGrade(void=0.12, idle=0.33, idle_is="the last word", active=0.71)
    section = groups_section(audit(asked(), beside={("sst", "bilstm"): often}))
    assert section is not None
    assert section.tables == []
    assert section.paragraphs == [
        "In 12% of the texts no word matters enough to be ordered: nothing is said of these.",
        "33% of the weight lies on the last word, which does nothing. Without them Γ is 0.71.",
    ]


def test_a_run_that_cannot_tell_has_no_such_part() -> None:
    assert groups_section(audit(asked(), beside={("sst", "bilstm"): BesideGrade()})) is None
    assert groups_section(audit(asked())) is None
