"""Files that no front end reads."""


def files():
    return {"notes.txt": b"a text\n", "weights.h5": b"\x89HDF\r\n\x1a\n",
            "data.bin": b"\x00\xff\x01"}
