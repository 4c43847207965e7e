"""What tests share: one thread, small models over small texts."""

import torch

torch.set_num_threads(1)
