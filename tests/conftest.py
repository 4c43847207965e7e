"""What tests share: one thread, small studies, and the system's browser."""

import torch

pytest_plugins = ("tests.studied", "tests.browser")
torch.set_num_threads(1)
