"""Raw files that are cut, too long for what they say, or say what they do not hold."""

import struct


def npub(json):
    return b"NPUB" + struct.pack(">I", len(json)) + json + b"\0" + b"\xff" * 4


def files():
    return {"cut.npu": b"NPUB\0\0", "long.npu": b"NPUB\xff\xff\xff\xff{}",
            "syntax.npu": npub(b"{\"core\": "), "core.npu": npub(b"{\"core\": \"APUS\"}"),
            "text.json": b"{\"format\": \"NPUB\", \"core\": \"LEO\"}"}
