"""What processes hold of the machine's memory, by the kernel's count: bytes, summed over a process and all below it."""
import pathlib
import time

PROC = pathlib.Path("/proc")
MIB = 1 << 20


def fields(text: str, names: dict[str, str]) -> dict[str, int]:
    """Of lines like `Rss:   1528124 kB`: our name -> bytes, for the kernel's names in `names`."""
    out = dict.fromkeys(names.values(), 0)
    for line in text.splitlines():
        key, _, value = line.partition(":")
        if key in names and value.endswith("kB"):
            out[names[key]] = int(value.split()[0]) * 1024
    return out


def of_process(pid: int) -> dict[str, int]:
    status = (PROC / str(pid) / "status").read_text()
    rollup = (PROC / str(pid) / "smaps_rollup").read_text()
    return (fields(status, {"VmRSS": "rss", "VmHWM": "peak_rss", "RssAnon": "anonymous", "RssFile": "file"})
            | fields(rollup, {"Pss": "pss", "AnonHugePages": "huge_pages"}))


def children() -> dict[int, list[int]]:
    out: dict[int, list[int]] = {}
    for entry in PROC.iterdir():
        if entry.name.isdigit():
            try:
                # Behind the name, which may hold anything but ends with the last parenthesis: state, parent.
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, ValueError):
                continue
            out.setdefault(parent, []).append(int(entry.name))
    return out


def of_tree(pid: int) -> dict[str, int]:
    """rss, peak_rss, pss, anonymous, file, huge_pages and the number of processes. Pages that several share are counted
    once in pss, by each in rss."""
    below, todo = children(), [pid]
    total: dict[str, int] = {"processes": 0}
    while todo:
        one = todo.pop()
        todo += below.get(one, [])
        try:
            held = of_process(one)
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended
        total["processes"] += 1
        for name, size in held.items():
            total[name] = total.get(name, 0) + size
    return total


def settled(pid: int, still_s: float = 3.0, limit_s: float = 120.0) -> dict[str, int]:
    """of_tree() once it has not moved by more than a MiB for `still_s`: servers go on taking memory when they are healthy."""
    end = time.perf_counter() + limit_s
    last, since = of_tree(pid), time.perf_counter()
    while time.perf_counter() < min(end, since + still_s):
        time.sleep(0.25)
        now = of_tree(pid)
        if abs(now["rss"] - last["rss"]) > MIB:
            last, since = now, time.perf_counter()
    return of_tree(pid)
