"""A TFLite variable that CALL_ONCE sets to 3 before the first frame."""

import struct

import recipes  # noqa: F401  (finds the models folder)
from tflitemodel import from_json

ADD, CALL_ONCE, VAR_HANDLE, READ_VARIABLE, ASSIGN_VARIABLE = range(5)
CODES = [0, 129, 142, 143, 144]
HANDLE = {"opcode_index": VAR_HANDLE, "inputs": [], "options_type": "VarHandleOptions",
          "options": {"shared_name": "sum"}}


def tensor(name, element_type="FLOAT32", buffer=0):
    return {"shape": [1, 4], "type": element_type, "name": name, "buffer": buffer}


def files():
    frame = {
        "name": "main", "inputs": [0], "outputs": [3],
        "tensors": [tensor("x"), tensor("handle", "RESOURCE"), tensor("before"), tensor("y")],
        "operators": [
            {"opcode_index": CALL_ONCE, "inputs": [], "outputs": [],
             "options_type": "CallOnceOptions", "options": {"init_subgraph_index": 1}},
            {**HANDLE, "outputs": [1]},
            {"opcode_index": READ_VARIABLE, "inputs": [1], "outputs": [2]},
            {"opcode_index": ADD, "inputs": [0, 2], "outputs": [3],
             "options_type": "AddOptions", "options": {}},
            {"opcode_index": ASSIGN_VARIABLE, "inputs": [1, 3], "outputs": []}]}
    begin = {
        "name": "begin", "inputs": [], "outputs": [],
        "tensors": [tensor("handle", "RESOURCE"), tensor("three", buffer=1)],
        "operators": [{**HANDLE, "outputs": [0]},
                      {"opcode_index": ASSIGN_VARIABLE, "inputs": [0, 1], "outputs": []}]}
    model = {"version": 3,
             "operator_codes": [{"old_builtin_code": min(code, 127), "builtin_code": code}
                                for code in CODES],
             "subgraphs": [frame, begin],
             "buffers": [{}, {"data": list(struct.pack("<4f", 3, 3, 3, 3))}]}
    return {"model.tflite": from_json(model)}
