"""What turns of several engines come to: medians, ratios pair by pair, as Markdown and JSON."""
import statistics

OURS = "Quire"


def median_of(rounds: list[dict], line: str) -> float | None:
    values = [turn[line] for turn in rounds if line in turn]
    return statistics.median(values) if values else None


def ratio_to_best(turns: dict[str, list[dict]], line: str, best=max) -> float | None:
    """The median over rounds of our figure over the best peer's of the same round."""
    ratios = []
    peers = [rounds for name, rounds in turns.items() if name != OURS]
    for index, ours in enumerate(turns.get(OURS, [])):
        theirs = [rounds[index][line] for rounds in peers if index < len(rounds) and line in rounds[index]]
        if line in ours and theirs and best(theirs):
            ratios.append(ours[line] / best(theirs))
    return statistics.median(ratios) if ratios else None


def summary(turns: dict[str, list[dict]], lines: list[str], lower: frozenset[str] = frozenset()) -> dict:
    """Of one model: line -> {"engines": {name: {"median", "rounds"}}, "best_peer", "ratio_to_best"}. The best figure is the
    highest, and for lines in `lower` the lowest."""
    out = {}
    for line in lines:
        engines = {}
        for name, rounds in turns.items():
            middle = median_of(rounds, line)
            if middle is not None:
                engines[name] = {"median": middle, "rounds": [turn.get(line) for turn in rounds]}
        peers = {name: entry["median"] for name, entry in engines.items() if name != OURS}
        best = min if line in lower else max
        out[line] = {"engines": engines, "best_peer": best(peers, key=peers.get) if peers else None,
                     "ratio_to_best": ratio_to_best(turns, line, best)}
    return out


def markdown(model: str, lines: dict, engines: list[str]) -> str:
    """A table of one model's summary(): medians, and the ratio to the best peer."""
    rows = [f"| {model} | " + " | ".join(engines) + " | ratio to the best |", "|---|" + "---:|" * (len(engines) + 1)]
    for line, entry in lines.items():
        cells = []
        for name in engines:
            figure = entry["engines"].get(name)
            cells.append(f"{figure['median']:,.1f}" if figure else "-")
        ratio = entry["ratio_to_best"]
        cells.append(f"{ratio:.2f}" if ratio is not None else "-")
        rows.append(f"| {line} | " + " | ".join(cells) + " |")
    return "\n".join(rows) + "\n"
