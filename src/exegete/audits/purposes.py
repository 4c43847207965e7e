"""Purposes: which words mattered, which are enough, which sentences answer, what would a person mark?"""

from exegete.audits.scorecard import Goal, Test
from exegete.page.labels import method_label

Named = dict[str, Test]  # the tests of one model on one task


def purposes(named: Named, goal: Goal) -> list[str]:
    """A sentence or two for every purpose that was tested."""
    said = [
        f"Which words mattered: {_mattered(named)}" if "beats_random" in named else "",
        f"Which words are enough: {_enough(named['sufficient'])}" if "sufficient" in named else "",
        f"Which sentences answer: {_answers(named['finds_facts'])}" if "finds_facts" in named else "",
        f"What a person would mark: {_marked(named['plausible'], goal)}" if "plausible" in named else "",
    ]
    return list(filter(None, said))


def _mattered(named: Named) -> str:
    over, best = named["beats_random"], named.get("faithful")
    first = {
        "holds": "removing the words that it ranks first changes the prediction more than removing random words",
        "fails": "removing the words that it ranks first changes the prediction no more than removing random words",
        "cannot tell": "whether removing its first words changes the prediction more than random ones is not settled",
    }[over.verdict]
    if best is None:
        return f"{first}."
    if best.doubt:
        return f"{first}: {best.doubt}."
    other = method_label(best.against)
    second = {
        "holds": f"; it is about as much as with {other}, the best method on the texts held out for choosing it.",
        "fails": f"; with {other}, the best method on the texts held out for choosing it, it changes clearly more.",
        "cannot tell": f"; how it compares with {other}, the best method on held-out texts, is not settled.",
    }[best.verdict]
    size = named.get("faithful_by_size")
    if size is None or best.verdict == "holds":
        return first + second
    return first + second + (_sign(size) if best.verdict == "fails" else _by_size(size))


def _sign(size: Test) -> str:
    """How much of the difference is that attention does not say for which class a word speaks."""
    other = method_label(size.against)
    return {
        "holds": f" That is for the sign: it finds words that matter about as well as {other} does by size alone, but "
        "not which class they speak for.",
        "fails": f" That is not for the sign alone: by size, too, {other} finds words that matter clearly better.",
        "cannot tell": f" How much of that is the sign is not settled: by size alone the best is {other}.",
    }[size.verdict]


def _by_size(size: Test) -> str:
    """What decides, where the comparison with signs is open."""
    other = method_label(size.against)
    return {
        "holds": f" By size alone, without the sign, it finds words that matter about as well as {other}.",
        "fails": f" By size alone, without the sign, {other} finds words that matter clearly better.",
    }.get(size.verdict, "")


def _enough(test: Test) -> str:
    if test.doubt:
        return f"nothing can be told, for {test.doubt}."
    other = method_label(test.against)
    return {
        "holds": f"the words that it ranks first keep the prediction about as well as those of {other}, the best.",
        "fails": f"the words that it ranks first keep clearly less of the prediction than those of {other}.",
    }.get(test.verdict, f"how the words that it ranks first compare with those of {other} is not settled.")


def _answers(test: Test) -> str:
    return {
        "holds": "sentence by sentence, it points at those that the question needs.",
        "fails": "sentence by sentence, it misses some of those that the question needs.",
    }.get(test.verdict, "whether it points at the sentences that the question needs is not settled.")


def _marked(test: Test, goal: Goal) -> str:
    said = {
        "holds": "it marks the words that people marked more than chance does",
        "fails": "it does not mark the words that people marked",
    }.get(test.verdict, "whether it marks the words that people marked is not settled")
    return f"{said}." if goal == "plausible" else f"{said}; that says nothing of the model, and has no say here."
