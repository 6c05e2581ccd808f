"""onnx_model.py: a model of convolutions, a recurrent layer and attention-like products in ONNX Runtime on its CUDA
provider, which gets its own output as input again."""
import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from common import end, show, steps

import torch  # ONNX Runtime finds its libraries of CUDA

random = np.random.default_rng(1)
CHANNELS, SIZE, HIDDEN = 16, 32, 64


def constant(name, *shape):
    return numpy_helper.from_array((random.standard_normal(shape) / np.sqrt(shape[-1])).astype(np.float32), name)


def model():
    weights = [constant("w1", CHANNELS, CHANNELS, 3, 3), constant("w2", CHANNELS, CHANNELS, 3, 3),
               constant("q", SIZE, SIZE), constant("w", 1, 4 * HIDDEN, SIZE), constant("r", 1, 4 * HIDDEN, HIDDEN),
               constant("out", HIDDEN, SIZE)]
    shape = numpy_helper.from_array(np.array([CHANNELS, SIZE, SIZE], np.int64), "flat")
    sequence = numpy_helper.from_array(np.array([CHANNELS, SIZE, HIDDEN], np.int64), "sequence")
    whole = numpy_helper.from_array(np.array([1, CHANNELS, SIZE, SIZE], np.int64), "whole")
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["a"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Conv", ["b", "w2"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Add", ["c", "x"], ["d"]),
        helper.make_node("Reshape", ["d", "flat"], ["e"]),
        helper.make_node("MatMul", ["e", "q"], ["f"]),
        helper.make_node("Softmax", ["f"], ["g"], axis=-1),
        helper.make_node("MatMul", ["g", "e"], ["h"]),
        helper.make_node("LSTM", ["h", "w", "r"], ["i"], hidden_size=HIDDEN),
        helper.make_node("Reshape", ["i", "sequence"], ["j"]),
        helper.make_node("MatMul", ["j", "out"], ["k"]),
        helper.make_node("Reshape", ["k", "whole"], ["l"]),
        helper.make_node("Add", ["l", "d"], ["m"]),
        helper.make_node("Tanh", ["m"], ["y"]),
    ]
    value = [1, CHANNELS, SIZE, SIZE]
    graph = helper.make_graph(nodes, "model", [helper.make_tensor_value_info("x", TensorProto.FLOAT, value)],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, value)],
                              [*weights, shape, sequence, whole])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


onnxruntime.preload_dlls()
options = onnxruntime.SessionOptions()
options.use_deterministic_compute = True
options.intra_op_num_threads = 1
session = onnxruntime.InferenceSession(model().SerializeToString(), options, ["CUDAExecutionProvider"])
if session.get_providers()[0] != "CUDAExecutionProvider":
    raise SystemExit("ONNX Runtime has no CUDA provider here")
x = random.standard_normal((1, CHANNELS, SIZE, SIZE)).astype(np.float32)
for step in steps():
    for _ in range(20):
        x = session.run(None, {"x": x})[0]
    show(step, x)
end(x)
