"""Step 3: fine-tune FOLDER/base on FOLDER/data with LoRA, on all ranks of the run, and write the adapter to FOLDER/adapter.

FSDP shards the base model and the adapters over all ranks. With --quantize nf4 (QLoRA; needs bitsandbytes) each rank has the
whole base model in 4 bits instead, and only the adapters are sharded.

The same command continues from the newest whole checkpoint: after a failure, a requeue, or with more steps.
"""

import argparse
import faulthandler
import hashlib
import math
import os
import time

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
if "HYPERPOD_STACK_SIGNAL" in os.environ:  # a run that hangs shows where
    faulthandler.register(int(os.environ["HYPERPOD_STACK_SIGNAL"]), all_threads=True)

import json

import checkpoints
import torch
import torch.distributed as dist
from peft import LoraConfig, get_peft_model
from peft.utils import get_peft_model_state_dict
from places import add_folder, fingerprint, needed, quiet
from safetensors.torch import load_file, save_file
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from tracking import Tracking
from transformers import AutoModelForCausalLM


def options(words):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_folder(parser)
    parser.add_argument("--epochs", type=float, default=1.0)
    parser.add_argument("--max-steps", type=int, help="end after so many steps")
    parser.add_argument("--batch", type=int, default=64, help="chats of a step, of all ranks")
    parser.add_argument("--micro-batch", type=int, default=4, help="chats of a rank at a time")
    parser.add_argument("--lr", type=float, default=2e-4, help="highest learning rate")
    parser.add_argument("--warmup", type=int, default=10, help="steps to the highest learning rate")
    parser.add_argument("--rank", type=int, default=16, help="rank of the adapters")
    parser.add_argument("--dropout", type=float, default=0.0, help="dropout of the adapters")
    parser.add_argument("--quantize", choices=["none", "nf4"], default="none")
    parser.add_argument(
        "--dtype",
        choices=["bfloat16", "float16", "float32"],
        help="of the base model (default: bfloat16 on GPUs, else float32)",
    )
    parser.add_argument("--gradient-checkpointing", action=argparse.BooleanOptionalAction)
    parser.add_argument("--checkpoint-every", type=int, default=20, help="steps")
    parser.add_argument("--log-every", type=int, default=1, help="steps")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(words)
    cuda = torch.cuda.is_available()
    args.device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if cuda else torch.device("cpu")
    args.dtype = getattr(torch, args.dtype or ("bfloat16" if cuda else "float32"))
    if args.gradient_checkpointing is None:
        args.gradient_checkpointing = cuda
    return args


def make_model(args):
    """The base model with adapters, sharded over all ranks."""
    more = {}
    if args.quantize == "nf4":
        from transformers import BitsAndBytesConfig

        more["device_map"] = {"": str(args.device)}
        more["quantization_config"] = BitsAndBytesConfig(
            load_in_4bit=True,
            bnb_4bit_quant_type="nf4",
            bnb_4bit_use_double_quant=True,
            bnb_4bit_compute_dtype=args.dtype,
        )
    model = AutoModelForCausalLM.from_pretrained(args.folder / "base", dtype=args.dtype, **more)
    model.config.use_cache = False
    if args.gradient_checkpointing:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    blocks = set(model._no_split_modules)  # noqa: SLF001
    config = LoraConfig(
        task_type="CAUSAL_LM",
        r=args.rank,
        lora_alpha=2 * args.rank,
        lora_dropout=args.dropout,
        target_modules="all-linear",
    )
    torch.manual_seed(args.seed)  # the same first adapters on all ranks
    model = get_peft_model(model, config)
    whole = set()
    if args.quantize == "nf4":
        whole = {weight for weight in model.parameters() if not weight.requires_grad}
    policy = MixedPrecisionPolicy(param_dtype=args.dtype, reduce_dtype=torch.float32)
    sharding = {
        "mesh": init_device_mesh(args.device.type, (dist.get_world_size(),)),
        "mp_policy": policy,
        "ignored_params": whole,
    }
    for module in model.modules():
        if type(module).__name__ in blocks:
            fully_shard(module, **sharding)
    return fully_shard(model, **sharding)


class Chats:
    """The tokenised chats, mapped from the shards, in an order that depends on nothing but the seed."""

    def __init__(self, folder, seed):
        index = json.loads((folder / "index.json").read_text(encoding="utf-8"))
        self._shards = [load_file(folder / name) for name in index["shards"]]
        self._rows = []
        for shard in self._shards:
            ends = shard["lengths"][:, 0].cumsum(0).tolist()
            lengths = shard["lengths"].tolist()
            self._rows += [
                (shard["tokens"], end - length, end, prompt)
                for end, (length, prompt) in zip(ends, lengths, strict=True)
            ]
        self._seed = seed
        self._epoch, self._order = None, []

    def __len__(self):
        return len(self._rows)

    def at(self, place):
        """Tokens of the chat at a place of the endless order, and the length of its prompt."""
        epoch, number = divmod(place, len(self))
        if epoch != self._epoch:
            generator = torch.Generator().manual_seed(self._seed + epoch)
            self._epoch = epoch
            self._order = torch.randperm(len(self), generator=generator).tolist()
        tokens, begin, end, prompt = self._rows[self._order[number]]
        return tokens[begin:end].long(), prompt


def padded(rows, device):
    """A batch: inputs, mask and labels. The prompt and the padding have no label."""
    width = max(len(tokens) for tokens, _ in rows)
    inputs = torch.zeros(len(rows), width, dtype=torch.long)
    mask, labels = torch.zeros_like(inputs), torch.full_like(inputs, -100)
    for number, (tokens, prompt) in enumerate(rows):
        inputs[number, : len(tokens)] = tokens
        mask[number, : len(tokens)] = 1
        labels[number, prompt : len(tokens)] = tokens[prompt:]
    return inputs.to(device), mask.to(device), labels.to(device)


def train_step(model, optimizer, chats, step, args):
    """One step; returns loss, norm of the gradient and number of tokens, of all ranks."""
    rank, world = dist.get_rank(), dist.get_world_size()
    mine = [chats.at(place) for place in range((step - 1) * args.batch + rank, step * args.batch, world)]
    learned = sum(len(tokens) - prompt for tokens, prompt in mine)
    counts = torch.tensor([learned, sum(len(tokens) for tokens, _ in mine)], dtype=torch.float64, device=args.device)
    dist.all_reduce(counts)
    torch.manual_seed(args.seed + step * world + rank)  # dropout, the same after a restart
    total = torch.zeros((), device=args.device)
    for begin in range(0, len(mine), args.micro_batch):
        inputs, mask, labels = padded(mine[begin : begin + args.micro_batch], args.device)
        logits = model(input_ids=inputs, attention_mask=mask).logits[:, :-1].float()
        loss = torch.nn.functional.cross_entropy(
            logits.flatten(0, 1), labels[:, 1:].flatten(), ignore_index=-100, reduction="sum"
        )
        # FSDP takes the mean of the ranks' gradients; the mean of all tokens is wanted.
        (loss * world / counts[0]).backward()
        total += loss.detach()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0).full_tensor()
    for group in optimizer.param_groups:
        group["lr"] = args.lr * factor(step, args)
    optimizer.step()
    optimizer.zero_grad()
    dist.all_reduce(total)
    return total.item() / counts[0].item(), norm.item(), int(counts[1].item())


def factor(step, args):
    """Of the highest learning rate: linear at first, then a cosine to a tenth."""
    if step <= args.warmup:
        return step / args.warmup
    done = (step - args.warmup) / max(args.steps - args.warmup, 1)
    return 0.55 + 0.45 * math.cos(math.pi * min(done, 1.0))


def save_adapter(model, folder):
    """Write the adapter in PEFT's format; all ranks call it."""
    state = {
        name: weight.full_tensor().detach().cpu() for name, weight in model.named_parameters() if weight.requires_grad
    }
    if dist.get_rank() == 0:
        state = get_peft_model_state_dict(model, state_dict=state)
        folder.mkdir(parents=True, exist_ok=True)
        save_file({name: tensor.contiguous() for name, tensor in state.items()}, folder / "adapter.tmp")
        (folder / "adapter.tmp").rename(folder / "adapter_model.safetensors")
        model.peft_config["default"].save_pretrained(folder)
        print(f"adapter: {folder}")


def main(words=None):
    args = options(words)
    needed(args.folder / "base" / "config.json", "get_model.py (step 1)")
    index = needed(args.folder / "data" / "index.json", "prepare_data.py (step 2)")
    quiet()
    if args.device.type == "cuda":
        torch.cuda.set_device(args.device)
    dist.init_process_group("cpu:gloo,cuda:nccl" if args.device.type == "cuda" else "gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    chats = Chats(args.folder / "data", args.seed)
    if args.batch % world:
        raise ValueError(f"--batch {args.batch} is not a multiple of the {world} ranks")
    settings = None
    if rank == 0:
        settings = {
            "the base model": fingerprint(args.folder / "base"),
            "the data": hashlib.sha256(index.read_bytes()).hexdigest(),
            "--rank": args.rank,
            "--batch": args.batch,
            "--seed": args.seed,
        }
    checkpoints.check_settings(args.folder / "checkpoints", settings)
    args.steps = args.max_steps or math.ceil(args.epochs * len(chats) / args.batch)
    model = make_model(args)
    trained = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=args.lr, weight_decay=0.0)
    counts = [sum(w.numel() for w in weights) for weights in (model.parameters(), trained)]
    done = checkpoints.load_newest(args.folder / "checkpoints", model, optimizer)
    tracking = Tracking(rank)
    if rank == 0:
        print(f"{world} ranks, {counts[0]} weights, {counts[1]} of them trained, {len(chats)} chats")
        print(f"continuing after step {done}" if done else "starting at step 1")
        tracking.parameters({name: str(value) for name, value in vars(args).items()})
    for step in range(done + 1, args.steps + 1):
        begin = time.monotonic()
        loss, norm, tokens = train_step(model, optimizer, chats, step, args)
        if rank == 0 and (step % args.log_every == 0 or step == args.steps):
            rate = tokens / (time.monotonic() - begin)
            lr = optimizer.param_groups[0]["lr"]
            print(
                f"step {step}/{args.steps} loss {loss:.4f} grad_norm {norm:.3f} lr {lr:.2e}"
                f" tokens_per_second {rate:.0f}"
            )
            tracking.numbers({"loss": loss, "grad_norm": norm, "learning_rate": lr}, step)
        if step % args.checkpoint_every == 0 or step == args.steps:
            checkpoints.save(args.folder / "checkpoints", step, model, optimizer)
    save_adapter(model, args.folder / "adapter")
    tracking.end()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
