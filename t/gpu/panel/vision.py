"""vision.py vit|resnet: torchvision's models, in mixed precision, channels last, with pictures from the
workers of a DataLoader."""
import sys

import torch
import torchvision
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset
from common import end, set_up_torch, show, steps, weights


class Pictures(Dataset):
    def __len__(self):
        return 1 << 24

    def __getitem__(self, i):
        generator = torch.Generator().manual_seed(i)
        return torch.randn(3, 96, 96, generator=generator), i * 7 % 10


def make(kind):
    if kind == "vit":
        return torchvision.models.VisionTransformer(96, 16, 6, 6, 384, 1536, num_classes=10)
    model = torchvision.models.resnet18(num_classes=10)
    # Of overlapping windows' maxima, the gradient is summed up in any order.
    model.maxpool = torch.nn.AvgPool2d(3, 2, 1)
    return model


def main(kind):
    device = set_up_torch()
    number = torch.float16 if kind == "resnet" else torch.bfloat16
    model = make(kind).to(device, memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    scaler = torch.amp.GradScaler(device.type, enabled=number is torch.float16)
    loader = DataLoader(Pictures(), 32, num_workers=2, pin_memory=device.type == "cuda")
    for step, (pictures, labels) in zip(steps(), loader):
        pictures = pictures.to(device, non_blocking=True, memory_format=torch.channels_last)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        with torch.autocast(device.type, number):
            loss = F.cross_entropy(model(pictures), labels)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        show(step, loss.item(), scaler.get_scale())
    end(weights(model))


if __name__ == "__main__":
    main(sys.argv[1])
