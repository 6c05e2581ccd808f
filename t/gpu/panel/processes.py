"""Processes of torch.multiprocessing that use the GPU, too; they send values."""
import torch
import torch.multiprocessing as processes
from common import end, set_up_torch, show, steps


def work(number, questions, answers):
    device = set_up_torch()
    weight = torch.randn(256, 256, device=device)
    state = torch.eye(256, device=device) * (number + 1)
    for scale in iter(questions.get, None):
        for _ in range(20):
            state = torch.tanh(state @ weight * scale)
        answers.put(state[:2].cpu())


def main():
    device = set_up_torch()
    processes.set_start_method("spawn")
    own = torch.ones(64, 64, device=device)
    workers = []
    for number in range(2):
        questions, answers = processes.Queue(), processes.Queue()
        process = processes.Process(target=work, args=(number, questions, answers))
        process.start()
        workers.append((process, questions, answers))
    for step in steps():
        for _, questions, _ in workers:
            questions.put(0.1 + step % 7 * 0.01)
        own = torch.sin(own @ own * 0.01 + step)
        show(step, own, *(answers.get().clone() for _, _, answers in workers))
    for process, questions, _ in workers:
        questions.put(None)
        process.join()
    end(own)


if __name__ == "__main__":
    main()
