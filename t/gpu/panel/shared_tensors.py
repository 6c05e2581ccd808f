"""Tensors on the device that processes share: a process of torch.multiprocessing sends what it has computed, and the
other one works on that memory."""
import torch
import torch.multiprocessing as processes
from common import end, set_up_torch, show, steps


def work(line):
    device = set_up_torch()
    weight = torch.randn(256, 256, device=device)
    state = torch.eye(256, device=device)
    for scale in iter(line.recv, None):
        state = torch.tanh(state @ weight * scale)
        line.send(state)


def main():
    device = set_up_torch()
    processes.set_start_method("spawn")
    line, its_end = processes.Pipe()
    process = processes.Process(target=work, args=(its_end,))
    process.start()
    its_end.close()  # so that there is an end of it when the process has failed
    own = torch.ones(256, 256, device=device)
    for step in steps():
        line.send(0.1 + step % 7 * 0.01)
        own = torch.sin(own + line.recv())
        show(step, own)
    line.send(None)
    process.join()
    end(own)


if __name__ == "__main__":
    main()
