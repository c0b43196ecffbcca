"""Checkpoints on the storage partition: whole or not there, and checked before they are used.

A checkpoint is the folder `step-00000040` with the files of torch.distributed.checkpoint and `whole.json`, which has the size and
the CRC-32 of each file. It is written under another name and renamed when all is on disk. So a job that is killed while it
writes one leaves the checkpoint before it. A file that is damaged later is found by its CRC-32. It can be read by another number of ranks.
"""

import json
import os
import shutil
import zlib

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp

KEEP = 2
"""How many are kept: if the newest one is damaged, there is another."""


def check_settings(folder, settings):
    """Note what the checkpoints of a folder are of; other settings than those noted end the run, as they could not be continued.

    All ranks call it, so that all end with the same error; the settings are rank 0's.
    """
    found = [changed(folder, settings) if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(found)
    if found[0]:
        raise ValueError(
            f"{', '.join(found[0])}: not as in the training whose checkpoints are in {folder}."
            " Remove that folder, or choose another --folder."
        )


def changed(folder, settings):
    """The names of settings that are not those noted for a folder of checkpoints."""
    file = folder / "settings.json"
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(settings), encoding="utf-8")
    before = json.loads(file.read_text(encoding="utf-8"))
    return [
        name if name.startswith("the") else f"{name} {value} (it was {before.get(name)})"
        for name, value in settings.items()
        if before.get(name) != value
    ]


def save(folder, step, model, optimizer):
    """Write a checkpoint; all ranks call it."""
    writing, whole = folder / "writing", folder / f"step-{step:08d}"
    if dist.get_rank() == 0:
        shutil.rmtree(writing, ignore_errors=True)
        writing.mkdir(parents=True)
    dist.barrier()
    dcp.save(state_of(model, optimizer), checkpoint_id=writing)
    if dist.get_rank() == 0:
        files = {file.name: facts_of(file) for file in sorted(writing.iterdir())}
        with (writing / "whole.json").open("w", encoding="utf-8") as file:
            json.dump(files, file)
            file.flush()
            os.fsync(file.fileno())
        shutil.rmtree(whole, ignore_errors=True)
        writing.rename(whole)
        for old in sorted(folder.glob("step-*"))[:-KEEP]:
            shutil.rmtree(old)
        print(f"checkpoint {whole.name} written")
    dist.barrier()


def load_newest(folder, model, optimizer):
    """Load the newest checkpoint that is complete. Returns its step, or 0 without a checkpoint. All ranks call it."""
    found = [newest_whole(folder) if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(found)
    if found[0] is None:
        return 0
    dcp.load(state_of(model, optimizer), checkpoint_id=found[0])
    return int(found[0].name.removeprefix("step-"))


def state_of(model, optimizer):
    """What is trained, not the frozen base model, and Adam's moments, by the weights' names. A load writes into these very tensors."""
    weights = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
    for weight in weights.values():
        if weight not in optimizer.state:  # before the first step
            moments = {name: torch.zeros_like(weight) for name in ("exp_avg", "exp_avg_sq")}
            optimizer.state[weight] = {"step": torch.tensor(0.0), **moments}
    return {
        "weights": {name: weight.detach() for name, weight in weights.items()},
        "moments": {name: optimizer.state[weight] for name, weight in weights.items()},
    }


def newest_whole(folder):
    """The newest checkpoint without damage; says which ones have some."""
    for path in sorted(folder.glob("step-*"), reverse=True):
        damage = damage_of(path)
        if damage is None:
            return path
        print(f"checkpoint {path.name} is damaged ({damage}); trying the one before")
    return None


def damage_of(path):
    """What is wrong with a checkpoint, in words; None if nothing is."""
    try:
        files = json.loads((path / "whole.json").read_text(encoding="utf-8"))
        wrong = [name for name, facts in files.items() if facts_of(path / name) != facts]
    except (OSError, ValueError) as error:
        return str(error)
    return f"{wrong[0]} has changed" if wrong else None


def facts_of(path):
    """Size and CRC-32 of a file."""
    crc = 0
    with path.open("rb") as file:
        while part := file.read(1 << 22):
            crc = zlib.crc32(part, crc)
    return [path.stat().st_size, crc]
