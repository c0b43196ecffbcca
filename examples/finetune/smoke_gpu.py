"""The whole journey at toy size on the GPUs of this machine, without a cluster: once with LoRA in bfloat16, once with QLoRA.

python smoke_gpu.py        # needs torch, transformers, peft, bitsandbytes and a CUDA GPU; about two minutes
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import torch

HERE = Path(__file__).parent
GPUS = torch.cuda.device_count()
TORCHRUN = ("-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={GPUS}")
TRAIN = ("--lr=4e-3", f"--batch={32 * GPUS}", "--micro-batch=16", "--log-every=20")


def python(folder, *words):
    """Run a step."""
    subprocess.run([sys.executable, *words, f"--folder={folder}"], cwd=HERE, check=True)


def main():
    if not GPUS:
        raise SystemExit("This machine has no CUDA GPU.")
    for quantize in ("none", "nf4"):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            python(folder, "get_model.py")
            python(folder, "prepare_data.py")
            for steps in (40, 120):  # the second continues from the checkpoint of the first
                more = (f"--max-steps={steps}", f"--quantize={quantize}")
                python(folder, *TORCHRUN, "train.py", *TRAIN, *more)
            python(folder, "merge.py")
            python(folder, *TORCHRUN, "evaluate.py")
            scores = json.loads((folder / "report.json").read_text())["scores"]
            base, tuned = (scores[one]["rougeL"] for one in ("base", "tuned"))
            print(f"--quantize {quantize}: ROUGE-L of the base model {base:.3f}, tuned {tuned:.3f}")
            assert tuned > base + 0.2


if __name__ == "__main__":
    main()
