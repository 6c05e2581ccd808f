"""cuDNN: every engine that it has for a convolution, for both gradients of one and for attention, one a step. Values
of convolutions are small whole numbers, so that sums are exact in whatever order an engine adds up; attention is
compared with PyTorch's own."""
import cudnn
import torch
from torch.nn import functional
from common import end, set_up_torch, show, steps

device = set_up_torch()
handle = cudnn.create_handle()
HALF, FLOAT = cudnn.data_type.HALF, cudnn.data_type.FLOAT
GEOMETRY = {"padding": [1, 1], "stride": [1, 1], "dilation": [1, 1]}
IMAGE, FILTER, RESULT = (4, 64, 16, 16), (32, 64, 3, 3), (4, 32, 16, 16)
HEADS = (2, 4, 256, 64)


def numbers(shape):
    values = torch.randint(-1, 2, shape, device=device).half()
    return values.to(memory_format=torch.channels_last)


def of_shape(graph, shape):
    example = torch.empty(shape).to(memory_format=torch.channels_last)
    return graph.tensor(dim=list(shape), stride=list(example.stride()), data_type=HALF)


def gives(tensor, shape):
    example = torch.empty(shape).to(memory_format=torch.channels_last)
    return tensor.set_output(True).set_dim(list(shape)).set_stride(list(example.stride())).set_data_type(HALF)


class Operation:
    def build(self):
        """All engines, by name: the first plan that there is of each. Some do not do what is wanted here."""
        self.graph = cudnn.pygraph(handle=handle, io_data_type=HALF, intermediate_data_type=FLOAT,
                                   compute_data_type=FLOAT)
        self.describe(self.graph)
        self.graph.validate()
        self.graph.build_operation_graph()
        self.graph.create_execution_plans([cudnn.heur_mode.A, cudnn.heur_mode.B, cudnn.heur_mode.FALLBACK])
        self.graph.check_support()
        self.plans = {}
        for index in range(self.graph.get_execution_plan_count()):
            name = self.graph.get_plan_name_at_index(index).split("_k")[0]
            if name in self.plans:
                continue
            try:
                self.graph.build_plan_at_index(index)
            except (cudnn.cudnnGraphNotSupportedError, RuntimeError):
                continue
            self.plans[name] = index
        return [(self, name) for name in self.plans]

    def run(self, name):
        index = self.plans[name]
        need = self.graph.get_workspace_size_plan_at_index(index)
        workspace = torch.empty(max(need, 1), dtype=torch.uint8, device=device)
        data, expected = self.problem()
        self.graph.execute_plan_at_index(dict(zip(self.tensors, data)), workspace, index, handle=handle)
        wrong = (data[-1].float() - expected).abs().max().item()
        assert wrong <= self.tolerance, f"{name} is wrong by {wrong}"
        return expected


class Convolution(Operation):
    tolerance = 1

    def describe(self, graph):
        image, weight, result = of_shape(graph, IMAGE), of_shape(graph, FILTER), of_shape(graph, RESULT)
        if self.of == "result":
            self.tensors = [image, weight, gives(graph.conv_fprop(image=image, weight=weight, **GEOMETRY), RESULT)]
        elif self.of == "image":
            self.tensors = [result, weight, gives(graph.conv_dgrad(loss=result, filter=weight, **GEOMETRY), IMAGE)]
        else:
            self.tensors = [image, result, gives(graph.conv_wgrad(image=image, loss=result, **GEOMETRY), FILTER)]

    def __init__(self, of):
        self.of = of

    def problem(self):
        image, weight, loss = numbers(IMAGE), numbers(FILTER), numbers(RESULT)
        wide = image.float().requires_grad_()
        flat = weight.float().contiguous().requires_grad_()
        result = (flat.view(FILTER[0], -1) @ functional.unfold(wide, 3, padding=1)).view(RESULT)
        if self.of == "result":
            return [image, weight, torch.empty_like(loss)], result.detach()
        result.backward(loss.float())
        if self.of == "image":
            return [loss, weight, torch.empty_like(image)], wide.grad
        return [image, loss, torch.empty_like(weight)], flat.grad


class Attention(Operation):
    tolerance = 0.02

    def describe(self, graph):
        example = torch.empty(HEADS)
        self.tensors = [graph.tensor(dim=list(HEADS), stride=list(example.stride()), data_type=HALF)
                        for _ in range(3)]
        query, key, value = self.tensors
        result, _ = graph.sdpa(q=query, k=key, v=value, generate_stats=False, attn_scale=0.125, use_causal_mask=True)
        result.set_output(True).set_dim(list(HEADS)).set_stride(list(example.stride()))
        self.tensors.append(result)

    def problem(self):
        data = [torch.randn(HEADS, device=device).half() for _ in range(3)]
        query, key, value = (d.float() for d in data)
        hidden = torch.ones(HEADS[2], HEADS[2], dtype=torch.bool, device=device).triu(1)
        scores = (query @ key.transpose(2, 3) * 0.125).masked_fill(hidden, float("-inf"))
        return data + [torch.empty_like(data[0])], scores.softmax(3) @ value


operations = [Convolution("result"), Convolution("image"), Convolution("filter"), Attention()]
engines = [engine for operation in operations for engine in operation.build()]
assert len(engines) >= len(operations)
for step in steps():
    operation, name = engines[step % len(engines)]
    show(step, name, operation.run(name))
end(len(engines))
