"""PyTorch Lightning: a fit in bf16-mixed."""
import os
import warnings

import torch
from common import end, set_up_torch, show, steps, weights

try:
    import lightning.pytorch as lightning
except ImportError:
    import pytorch_lightning as lightning

warnings.filterwarnings("ignore")


class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 1 << 24

    def __getitem__(self, i):
        generator = torch.Generator().manual_seed(i)
        return torch.randn(64, generator=generator), i % 10


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.counted = steps()
        self.step = next(self.counted)
        self.net = torch.nn.Sequential(
            torch.nn.Linear(64, 512), torch.nn.GELU(), torch.nn.Dropout(0.1), torch.nn.Linear(512, 10))

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), 1e-3)

    def training_step(self, batch, _):
        return torch.nn.functional.cross_entropy(self.net(batch[0]), batch[1])

    def on_train_batch_end(self, outputs, *_):
        show(self.step, outputs["loss"].item())
        self.step = next(self.counted, None)
        if self.step is None:
            self.trainer.should_stop = True


def main():
    device = set_up_torch()
    lightning.seed_everything(1, verbose=False)
    model = Model()
    trainer = lightning.Trainer(
        accelerator="gpu" if device.type == "cuda" else "cpu", devices=1, precision="bf16-mixed",
        max_steps=-1, min_steps=1, min_epochs=0, logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False, deterministic="warn",
        default_root_dir=os.getcwd())
    trainer.fit(model, torch.utils.data.DataLoader(Rows(), 64, num_workers=2))
    end(weights(model))


if __name__ == "__main__":
    main()
