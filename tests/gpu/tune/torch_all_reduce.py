#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""torch_all_reduce.py FILE LEAST MOST: times PyTorch all-reduces of two ranks inside CUDA graphs, by size, and checks their sums.

Writes {"nccl": VERSION, "us": {BYTES: US}}: us of one all-reduce, the median of 9 launches of a graph of 20."""
import json
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def time_one(elements):
    n = 20 if elements < 1 << 24 else 4
    data = torch.ones(elements, device="cuda")
    for _ in range(3):
        dist.all_reduce(data)
    assert torch.all(data == 8).item(), "a sum is wrong"
    data.zero_()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(n):
            dist.all_reduce(data)
    times = []
    for _ in range(12):
        dist.barrier()
        torch.cuda.synchronize()
        start = time.perf_counter()
        graph.replay()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - start) / n * 1e6)
    graph.reset()
    return statistics.median(times[3:])


def rank(index, path, sizes):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=os.environ.get("MASTER_PORT", "29611"))
    torch.cuda.set_device(index)
    dist.init_process_group("nccl", rank=index, world_size=2, device_id=torch.device("cuda", index))
    us = {size: time_one(size // 4) for size in sizes}
    if index == 0:
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"nccl": ".".join(map(str, torch.cuda.nccl.version())), "us": us}, file)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    least, most = (int(word).bit_length() - 1 for word in sys.argv[2:4])
    mp.spawn(rank, args=(sys.argv[1], [1 << e for e in range(least, most + 1)]), nprocs=2)
