"""Reads the key-value part of a GGUF file, for tests that rebuild what the file describes."""
import mmap
import struct

_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING = 8
_ARRAY = 9


class _Cursor:
    def __init__(self, data):
        self.data = data
        self.at = 0

    def scalar(self, code: str):
        value, = struct.unpack_from("<" + code, self.data, self.at)
        self.at += struct.calcsize("<" + code)
        return value

    def string(self) -> str:
        length = self.scalar("Q")
        self.at += length
        return self.data[self.at - length:self.at].decode("utf-8", "surrogateescape")

    def value(self, kind: int):
        if kind == _STRING:
            return self.string()
        if kind == _ARRAY:
            element = self.scalar("I")
            return [self.value(element) for _ in range(self.scalar("Q"))]
        return self.scalar(_SCALARS[kind])


def read_metadata(path) -> dict:
    """All keys of the file at `path` with their values; arrays are lists."""
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        cursor = _Cursor(data)
        magic, version = cursor.scalar("4s"), cursor.scalar("I")
        if magic != b"GGUF" or version not in (2, 3):
            raise ValueError(f"{path}: not a GGUF file of version 2 or 3")
        cursor.scalar("Q")  # tensors
        metadata = {}
        for _ in range(cursor.scalar("Q")):
            key = cursor.string()
            metadata[key] = cursor.value(cursor.scalar("I"))
        return metadata
