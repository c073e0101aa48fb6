"""torchrun, with the store that this torch has: Debian 13's asks for libuv and was built without."""

import torch.distributed as dist
from torch.distributed import TCPStore

try:
    TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
except RuntimeError as error:
    if "libuv" not in str(error):
        raise

    class Store(TCPStore):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **{**options, "use_libuv": False})

    dist.TCPStore = Store

from torch.distributed.run import main  # Takes the store's name from there.

main()
