import os
from typing import Any, Dict, List, Optional, Tuple, Union

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

__version__: str

def codecs() -> Dict[str, Dict[str, Tuple[Any, str]]]: ...
def controllers() -> Dict[str, str]: ...
def hook(state: State, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]: ...

class State:
    def __init__(
        self,
        ddp: DistributedDataParallel,
        *,
        optimizer: Optional[torch.optim.Optimizer] = None,
        scaler: Any = None,
        record: Union[str, os.PathLike[str], None] = None,
        timeout: float = 1800.0,
        codec: str = "none",
        controller: str = "static",
        mild: str = "",
        strong: str = "",
        levels: str = "",
        window: int = 0,
        interval: int = 10,
        threshold: float = 0.5,
        min_decay: float = 1.5,
        hold: int = 0,
        norms: str = "local",
        tolerance: float = 0.3,
        plan: str = "critical",
        density: float = 0.001,
        uniform: int = -1,
        resolution: int = 10000,
        low_rank_error: str = "power",
        parity: str = "none",
        guard: str = "harmless",
        seed: int = 1,
        clip: float = 0.0,
        overlap: bool = True,
        non_finite: str = "propagate",
        threads: int = 1,
    ) -> None: ...
    def epoch_end(
        self,
        optimizer: Union[torch.optim.Optimizer, float],
        *,
        last: bool = False,
        train_loss: Optional[float] = None,
        test_loss: Optional[float] = None,
        test_accuracy: Optional[float] = None,
    ) -> None: ...
    def step_end(self, optimizer: Union[torch.optim.Optimizer, float], *, last: bool = False) -> None: ...
    def set_batch(self, local_samples: int, global_samples: int) -> None: ...
    def levels(self) -> Dict[str, str]: ...
    def traffic(self) -> Dict[str, int]: ...
    def decisions(self) -> List[Dict[str, Any]]: ...
    def state_dict(self) -> Dict[str, Union[torch.Tensor, str]]: ...
    def load_state_dict(self, state_dict: Dict[str, Union[torch.Tensor, str]], *, residuals: str = "keep") -> None: ...

class BatchSize(State):
    def __init__(
        self,
        ddp: DistributedDataParallel,
        *,
        micro_batch: int,
        batch_mild: int,
        batch_strong: int,
        controller: str = "accordion",
        **options: Any,
    ) -> None: ...
    @property
    def accumulate(self) -> int: ...
    @property
    def factor(self) -> float: ...
    @property
    def reason(self) -> str: ...
    def epoch_end(self, rate: float, **metrics: Any) -> None: ...  # type: ignore[override]
