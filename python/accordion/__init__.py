"""Accordion for PyTorch: DistributedDataParallel with gradients compressed hard except where it would hurt.

    import accordion

    state = accordion.State(ddp, controller="accordion",
                            mild="powersgd:approx-rank=4", strong="powersgd:approx-rank=1")
    ddp.register_comm_hook(state, accordion.hook)
    for epoch in range(epochs):
        train_one_epoch(ddp, optimizer)
        scheduler.step()
        state.epoch_end(optimizer)      # reads the new learning rate, decides the levels of the next epoch

Codecs, controllers and options are those of the `accordion` program, with the same names, `-` written as `_`.
"""

import inspect
import json
import math
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from . import _core

__all__ = ["BatchSize", "State", "codecs", "controllers", "hook"]
__version__ = _core.version

if torch.__version__.split(".")[:2] != _core.torch_version.split(".")[:2]:
    raise ImportError(f"accordion was built against torch {_core.torch_version}, but torch {torch.__version__} is "
                      "installed: build it again (make python, or pip install)")


def codecs():
    """Every codec there is: name -> {option: (default, help)}. A setting is written `name:option=value,...`."""
    return {name: {option.replace("_", "-"): (default, help) for option, default, help, _ in options}
            for name, options in _core.codecs().items()}


def controllers():
    """Every controller there is: name -> what it does."""
    return _core.controllers()


def hook(state, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """The communication hook: `ddp.register_comm_hook(state, accordion.hook)`. Returns a future of the bucket's mean."""
    if not isinstance(state, State):
        raise TypeError(f"accordion.hook was registered with a {type(state).__name__}, expected an accordion.State: "
                        "ddp.register_comm_hook(state, accordion.hook)")
    return state._post(bucket)


class State:
    """What `accordion.hook` needs of a DistributedDataParallel: made on every rank of its process group, at the same time.

    `ddp`: the model, wrapped. A hook is registered once, before training.

    `optimizer`: for controllers that heed the learning rate from the first epoch on. A codec that applies momentum
    itself (dgc) needs it, and refuses one that has momentum for the same tensors; what epoch_end() and step_end() are given
    is looked at again.

    `scaler`: a gradient scaler, anything with `get_scale()`. It is read once a step; residuals are then kept unscaled, and
    steps that are not finite leave nothing behind.

    `record`: a folder for the record of the run, which `accordion decide` and others read. Rank 0 writes it.

    `timeout`: seconds to wait for another rank, at the start and in every step.

    The other options are those of the `accordion` program:
    """

    _follows_batch = False  # What a controller of batch sizes chooses.

    def __init__(self, ddp, *, optimizer=None, scaler=None, record=None, timeout=1800.0, **options):
        _require_ddp(ddp)
        if scaler is not None and not callable(getattr(scaler, "get_scale", None)):
            raise ValueError(f"State: scaler is a {type(scaler).__name__}, expected something with get_scale()")
        if not (isinstance(timeout, (int, float)) and 0 < timeout <= 1e7):
            raise ValueError(f"State: timeout={timeout}, expected above 0 and up to 1e7")
        self._scaler = scaler
        group = ddp.process_group
        store, group_name = _meeting_of(group)
        rank, size = dist.get_rank(group), dist.get_world_size(group)
        parameters = _parameters_of(ddp)
        on_host = all(parameter.device.type == "cpu" for _, parameter in parameters)
        model = _core.Model(
            name=type(ddp.module).__name__, parameters=parameters, find_unused_parameters=ddp.find_unused_parameters,
            scaled=scaler is not None, follows_batch=self._follows_batch, on_device=None if on_host else group,
            learning_rate=math.nan if optimizer is None else _rate_of(optimizer))
        # Ranks make their states of a group in the same order, so each one's count is the same number. The store may be that of all
        # groups (torch 1.13), whose ranks have the same numbers and come when they like.
        prefix = f"accordion/{group_name}"
        number = store.add(f"{prefix}/states/{rank}", 1)
        self._plugin = _core.Plugin(
            options=options, store=store, rank=rank, size=size, prefix=f"{prefix}/{number}",
            interface=os.environ.get("GLOO_SOCKET_IFNAME", "").split(",")[0], timeout=float(timeout), model=model,
            record="" if record is None else os.fspath(record))
        _require_no_momentum(self._plugin.own_momentum(), optimizer)

    def _post(self, bucket):
        if self._scaler is not None and bucket.index() == 0:
            self._plugin.set_scale(self._scaler.get_scale())
        return self._plugin.post(bucket)

    def epoch_end(self, optimizer, *, last=False, train_loss=None, test_loss=None, test_accuracy=None):
        """After each epoch, on every rank: decides the levels of the next one.

        `optimizer` has the learning rate of the next epoch's first step (call the scheduler first); a number does as well.
        `last`: training ends here, so nothing is decided. The rest is for the record; an accuracy is a fraction.
        """
        rate = self._look_again(optimizer)
        self._plugin.end_epoch(rate, last, train_loss, test_loss, test_accuracy)
        if last:
            self._plugin.finish("finished")

    def step_end(self, optimizer, *, last=False):
        """After each step, where the controller watches windows of steps (`window=N`)."""
        self._plugin.end_step(self._look_again(optimizer), last)

    def _look_again(self, optimizer):
        rate = _rate_of(optimizer)
        if hasattr(optimizer, "param_groups"):
            _require_no_momentum(self._plugin.own_momentum(), optimizer)
        return rate

    def set_batch(self, local_samples, global_samples):
        """Weighs this rank's gradient by its share of the step's samples. Holds until changed; equal shares need no call."""
        self._plugin.set_batch(local_samples, global_samples)

    def levels(self):
        """The codec setting in force for each parameter, by name; `none` for one that goes dense."""
        return self._plugin.levels()

    def traffic(self):
        """What this rank has sent since training began, counted exactly.

        `payload_bytes`: its messages, without headers. `wire_bytes`: what they cost on a ring. `sent_bytes`: what was really
        handed to the network, control and headers included; of a model on a device, without what the model's own process group
        sent of dense buckets, which `wire_bytes` counts. `plain_bytes`: the wire bytes of plain DDP in single precision.
        """
        return self._plugin.traffic()

    def decisions(self):
        """Rank 0's, epoch by epoch: the layers' norms, levels, codecs and the reasons for them, and what the guard did. Empty
        on other ranks."""
        epochs = [json.loads(line) for line in self._plugin.epochs()]
        keys = ("epoch", "lr", "global_batch", "batch_reason", "layers", "windows", "guard")
        return [{key: epoch[key] for key in keys if key in epoch} for epoch in epochs]

    def state_dict(self):
        """Everything that the next step and the next decision depend on, of this rank, its share of the samples included: each
        rank saves its own."""
        return self._plugin.save()

    def load_state_dict(self, state_dict, *, residuals="keep"):
        """On every rank, before the first step: goes on as if there had been no stop, bit for bit with `guard="none"`. A guard
        goes on with what was in force, and then decides by the clock, so any two runs under one may differ in their bits.

        Each rank loads what it saved itself. `residuals="drop"`: every rank may load rank 0's, of a group of any size; what
        was not sent yet is lost, and a share of the samples is to be set again. What one rank cannot load is refused by all; the
        State is then of no use.
        """
        self._plugin.load(state_dict, str(residuals))


class BatchSize(State):
    """Accordion's control of the batch size: small in critical regimes, large elsewhere.

        batch = accordion.BatchSize(ddp, micro_batch=32, batch_mild=512, batch_strong=4096)
        ddp.register_comm_hook(batch, accordion.hook)
        for epoch in range(epochs):
            for group in optimizer.param_groups:
                group["lr"] = schedule(epoch) * batch.factor
            samples = iter(loader)                  # by micro-batches
            for step in range(len(loader) // batch.accumulate):
                optimizer.zero_grad()
                for micro in range(batch.accumulate):
                    inputs, labels = next(samples)
                    with contextlib.nullcontext() if micro + 1 == batch.accumulate else ddp.no_sync():
                        (loss_of(ddp(inputs), labels) / batch.accumulate).backward()    # gradients add up to the mean's
                optimizer.step()
            batch.epoch_end(schedule(epoch + 1))    # the schedule's rate, for the mild batch

    Gradients of micro-batches add up, so each loss, a mean over its micro-batch, is divided by `batch.accumulate`: the learning
    rate already grows with the batch, by `batch.factor`.

    `micro_batch` is one rank's samples in one backward pass; `batch_mild` and `batch_strong` count those of all ranks in a
    step. Other options as those of State.
    """

    _follows_batch = True

    def __init__(self, ddp, *, micro_batch, batch_mild, batch_strong, controller="accordion", **options):
        if not (isinstance(micro_batch, int) and micro_batch > 0):
            raise ValueError(f"BatchSize: micro_batch={micro_batch}, expected a whole number, at least 1")
        _require_ddp(ddp)
        unit = micro_batch * dist.get_world_size(ddp.process_group)
        for name, samples in (("batch_mild", batch_mild), ("batch_strong", batch_strong)):
            if not isinstance(samples, int) or samples < 1 or samples % unit:
                raise ValueError(f"BatchSize: {name}={samples}, expected a multiple of {unit}, which is micro_batch={micro_batch} "
                                 f"on {unit // micro_batch} ranks")
        super().__init__(ddp, controller=controller, batch_mild=batch_mild, batch_strong=batch_strong, **options)
        self._unit, self._mild = unit, batch_mild

    @property
    def accumulate(self):
        """Micro-batches a step, from now to the next epoch_end()."""
        return self._plugin.batch // self._unit

    @property
    def factor(self):
        """What the schedule's learning rate, which is for the mild batch, is to be multiplied by."""
        return self._plugin.batch / self._mild

    @property
    def reason(self):
        """Why the batch is what it is; on rank 0."""
        return self._plugin.batch_reason

    def epoch_end(self, rate, **metrics):
        """As State.epoch_end, but takes the schedule's own learning rate: the optimizer's has the batch's factor in it."""
        if not isinstance(rate, (int, float)):
            raise ValueError(f"BatchSize.epoch_end(): a {type(rate).__name__}, expected the schedule's learning rate as a "
                             "number, without the factor of the batch size")
        super().epoch_end(rate, **metrics)


def _require_ddp(ddp):
    if isinstance(ddp, DistributedDataParallel):
        return
    name = type(ddp).__name__
    if "FullySharded" in name or "FSDP" in name:
        raise ValueError(f"State: {name} shards parameters, and exchanges gradients in a way that no hook can take over; "
                         "expected a torch.nn.parallel.DistributedDataParallel")
    raise ValueError(f"State: the model is a {name}, expected a torch.nn.parallel.DistributedDataParallel")


def _parameters_of(ddp):
    """Those that DDP exchanges, each once: tied weights carry several names."""
    for name, module in ddp.module.named_modules():
        if isinstance(module, (torch.nn.Embedding, torch.nn.EmbeddingBag)) and module.sparse:
            raise ValueError(f"State: {name or 'the model'} has sparse gradients (sparse=True), which cannot be exchanged; "
                             "expected dense ones")
    ignored = set(getattr(ddp, "parameters_to_ignore", ()))
    return [(name, parameter) for name, parameter in ddp.module.named_parameters()
            if parameter.requires_grad and name not in ignored]


def _meeting_of(group):
    """The store at which the ranks of this group have met, and the name that no other group has there."""
    c10d = dist.distributed_c10d
    world = getattr(c10d, "_world", None)
    groups, names = (world.pg_map, world.pg_names) if world is not None else (c10d._pg_map, c10d._pg_names)
    if group not in groups:
        raise ValueError("State: the model's process group is gone, expected one that init_process_group() or new_group() made")
    store = groups[group][1]
    if store is None:
        raise ValueError("State: the model's process group has no store, expected one of Gloo or NCCL")
    return store, names[group]


def _rate_of(optimizer):
    """Of the first group of parameters: a schedule moves all alike."""
    if isinstance(optimizer, (int, float)):
        return float(optimizer)
    groups = getattr(optimizer, "param_groups", None)
    if not groups:
        raise ValueError(f"expected an optimizer or a learning rate, got a {type(optimizer).__name__}")
    return float(groups[0]["lr"])


def _require_no_momentum(tensors, optimizer):
    if not tensors:
        return
    if optimizer is None:
        raise ValueError("State: this codec applies momentum itself; expected optimizer=, to see that it has none for the same "
                         "tensors")
    groups = getattr(optimizer, "param_groups", None)
    if groups is None:
        raise ValueError(f"State: this codec applies momentum itself, and optimizer= is a {type(optimizer).__name__}; expected the "
                         "optimizer, to see that it has none for the same tensors")
    own = {id(tensor) for tensor in tensors}
    for group in groups:
        momentum = group.get("momentum", 0) or group.get("betas")
        if momentum and any(id(parameter) in own for parameter in group["params"]):
            raise ValueError(f"State: this codec applies momentum itself, and the optimizer has momentum {momentum} for the same "
                             "tensors; expected those in a group with momentum 0")


def _document():
    """The options of the engine, as this build has them, in the signature and the text of State."""
    keyword = inspect.Parameter.KEYWORD_ONLY
    listed = [option for option in _core.options() if not option[0].startswith("batch_")]  # BatchSize's.
    fixed = [p for p in inspect.signature(State.__init__).parameters.values() if p.kind is not p.VAR_KEYWORD]
    added = [inspect.Parameter(name, keyword, default=default, annotation=type(default))
             for name, default, _, _ in listed]
    State.__init__.__signature__ = inspect.Signature(fixed + added)
    State.__signature__ = inspect.Signature(fixed[1:] + added)
    State.__doc__ += "\n" + "\n".join(
        f"    `{name}` ({default!r}): {help}" + (f" ({allowed})" if allowed else "") for name, default, help, allowed in listed)


_document()
