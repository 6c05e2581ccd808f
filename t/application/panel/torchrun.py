# Packages: pip:torch. Needs: python3, python3:torch
# Two processes that torchrun starts, on the processor: they find each other by a TCPStore, and exchange by gloo.
import os
import subprocess
import sys


def work():
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    store = dist.distributed_c10d._get_default_store()
    torch.manual_seed(7)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

    def step(n):
        data = torch.sin(torch.arange(64 * 16).reshape(16, 64) * float(n % 97 + rank + 1))
        optimizer.zero_grad()
        loss = (model(data) - data[:, :8]).pow(2).mean()
        loss.backward()
        optimizer.step()
        return loss

    for n in range(50):
        step(n)
    dist.barrier()
    if not rank:
        print("ready", flush=True)
    gone, rounds = torch.zeros(1), 0
    while not gone:
        # What is not counted: values in the store, and sums.
        store.set(f"of {rank}", str(rounds))
        assert int(store.get(f"of {1 - rank}")) + 1 >= rounds
        sums = torch.full((1000,), float(rounds + rank))
        dist.all_reduce(sums)
        assert (sums == 2 * rounds + 1).all()
        gone[0] = os.path.exists("go")
        dist.all_reduce(gone)
        rounds += 1
    for n in range(50, 100):
        loss = step(n)
    dist.all_reduce(loss)
    if not rank:
        print(loss.item().hex(), store.add("kept", 1), flush=True)
    dist.barrier()
    dist.destroy_process_group()


if "RANK" in os.environ:
    work()
else:
    with open("torchrun.log", "w") as log:
        print(subprocess.run([sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-addr",
                              "127.0.0.1", "--master-port", os.environ["PORT"], __file__], stderr=log).returncode)
