#!/usr/bin/env python3
"""Draws docs/figures/*.svg from docs/figures/data/*.json, what `quire bench kv` and `quire bench batching` wrote with --save-result.

tools/figures.py                    draw the figures from the committed data
tools/figures.py --measure QUIRE    run the benchmarks of this binary first, and draw the textbook timeline with it
"""
import argparse
import json
import pathlib
import subprocess
from xml.sax.saxutils import escape

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "docs/figures"
BLUE, ORANGE = "#0072b2", "#e69f00"  # Okabe and Ito's: told apart by colour-blind readers too
WIDTH, LEFT, RIGHT, BAR, STEP = 720, 190, 110, 24, 38


class Svg:
    """A drawing that grows downwards."""

    def __init__(self, title: str, note: str):
        self.parts: list[str] = []
        self.y = 30
        self.text(14, self.y, title, size=16, weight=600, fill="#222")
        self.text(14, self.y + 20, note)
        self.y += 44

    def text(self, x, y, content, size=12, anchor="start", weight=400, fill="#555"):
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" font-weight="{weight}" '
                          f'fill="{fill}">{escape(content)}</text>')

    def bar(self, label: str, share: float, value: str, colour: str):
        """`share` of the axis, 0 to 1."""
        room = WIDTH - LEFT - RIGHT
        self.text(LEFT - 10, self.y + BAR * 0.7, label, anchor="end", fill="#222")
        self.parts.append(f'<rect x="{LEFT}" y="{self.y}" width="{room}" height="{BAR}" rx="3" fill="#f4f4f4"/>')
        self.parts.append(f'<rect x="{LEFT}" y="{self.y}" width="{max(room * share, 1):.1f}" height="{BAR}" rx="3" fill="{colour}"/>')
        self.text(LEFT + room * share + 8, self.y + BAR * 0.7, value, weight=600, fill="#222")
        self.y += STEP

    def heading(self, content: str):
        self.text(14, self.y + 12, content, size=13, weight=600, fill="#222")
        self.y += 26

    def save(self, path: pathlib.Path):
        height = self.y + 10
        path.write_text(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
                        'font-family="system-ui, sans-serif">\n<rect width="100%" height="100%" fill="#fff"/>\n'
                        + "\n".join(self.parts) + "\n</svg>\n")
        print(path)


def draw_waste(figures: dict, target: pathlib.Path):
    contiguous = figures["contiguous"]
    svg = Svg("KV memory that requests hold and that holds no token",
              f"{contiguous['requests']} requests of ShareGPT-like lengths, {figures['pool_tokens']} slots, averaged over time")
    for entry in figures["paged"]:
        svg.bar(f"blocks of {entry['block_size']}", entry["waste"], f"{entry['waste']:.1%}", BLUE)
    svg.bar(f"contiguous, {figures['max_model_len']} each", contiguous["waste"], f"{contiguous['waste']:.1%}", ORANGE)
    svg.heading("Sequences that run at once in the same memory")
    most = max(entry["mean_running"] for entry in [*figures["paged"], contiguous])
    for entry in figures["paged"]:
        svg.bar(f"blocks of {entry['block_size']}", entry["mean_running"] / most, f"{entry['mean_running']:.1f}", BLUE)
    svg.bar(f"contiguous, {figures['max_model_len']} each", contiguous["mean_running"] / most,
            f"{contiguous['mean_running']:.1f}", ORANGE)
    svg.save(target)


def draw_batching(figures: dict, target: pathlib.Path):
    svg = Svg(f"Continuous against static batching: {figures['ratio']:.2f} times the output",
              f"{figures['num_requests']} requests, outputs of {figures['min_output_len']} to {figures['max_output_len']} tokens "
              f"(log-uniform), batch {figures['batch']}, {figures['model']}")
    modes = (("static", ORANGE), ("continuous", BLUE))
    for unit, key, shape in (("Output tokens a second", "{}_output_throughput", "{:.0f}"), ("Steps", "{}_steps", "{:.0f}")):
        svg.heading(unit)
        most = max(figures[key.format(mode)] for mode, _ in modes)
        for mode, colour in modes:
            value = figures[key.format(mode)]
            svg.bar(mode, value / most, shape.format(value), colour)
    svg.save(target)


def measure(quire: str):
    data = FOLDER / "data"
    data.mkdir(parents=True, exist_ok=True)
    subprocess.run([quire, "bench", "kv", "--save-result", data / "kv_waste.json"], check=True)
    subprocess.run([quire, "bench", "batching", "--save-result", data / "batching.json"], check=True)
    subprocess.run([quire, "bench", "trace", "--quiet", "--svg", FOLDER / "textbook.svg"], check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", metavar="QUIRE", help="run the benchmarks of this binary first")
    arguments = parser.parse_args()
    if arguments.measure:
        measure(arguments.measure)
    for name, draw in (("kv_waste", draw_waste), ("batching", draw_batching)):
        source = FOLDER / "data" / f"{name}.json"
        if source.exists():
            draw(json.loads(source.read_text()), FOLDER / f"{name}.svg")


if __name__ == "__main__":
    main()
