"""The models that engines are compared on: the default one as shipped, and random ones of a larger shape.

The random ones are made once by a generator that lies beside the repository, quantized by llama.cpp, and kept in the
user's cache; where the generator is missing they are left out, with a notice.
"""
import pathlib
import sys

from peers import run_program

ROOT = pathlib.Path(__file__).resolve().parent.parent
GENERATOR = ROOT.parent / "shared/tools/random_gguf.py"
# By the name that --models takes.
RANDOM = {f"1b-{kind.lower()}": ("llama1b", kind) for kind in ("Q4_0", "Q8_0", "Q4_K_M", "BF16")}
NAMES = ("default", *RANDOM)


def default_model(quire: pathlib.Path) -> pathlib.Path:
    return pathlib.Path(run_program([quire, "pull", "--quiet"]).strip())


def random_model(name: str, folder: pathlib.Path, python: pathlib.Path, llama, threads: int) -> pathlib.Path | None:
    """The file of a name in RANDOM, made when it is not there; nothing where it cannot be made."""
    shape, kind = RANDOM[name]
    target = folder / f"random-{shape}-{kind}.gguf"
    if target.exists():
        return target
    if not GENERATOR.exists() or llama is None:
        print(f"{name}: left out: {'llama.cpp is needed to quantize it' if GENERATOR.exists() else 'no generator'}",
              file=sys.stderr)
        return None
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / f"random-{shape}-F16.gguf"
    if not source.exists():
        print(f"writing {source}", file=sys.stderr)
        unfinished = source.with_suffix(".unfinished")
        run_program([python, GENERATOR, shape, "f16", unfinished])
        unfinished.rename(source)
    print(f"writing {target}", file=sys.stderr)
    llama.quantize(source, target, kind, threads)
    return target


def files(names: str, quire: pathlib.Path, folder: pathlib.Path, python: pathlib.Path, llama, threads: int) -> dict:
    """name -> file, of what --models names (with commas); `llama` is a peers.llama_cpp.LlamaCpp or nothing."""
    out = {}
    for name in names.split(","):
        if name == "default":
            path = default_model(quire)
        elif name in RANDOM:
            path = random_model(name, folder, python, llama, threads)
        else:
            path = pathlib.Path(name)
        if path is not None:
            out[name if name in NAMES else path.name] = path
    return out
