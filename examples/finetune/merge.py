"""Step 4: merge FOLDER/adapter into the base model, and write FOLDER/merged: a model like any other. One process, on CPUs.

After QLoRA, too, the adapter is merged into the base model in 16 bits.
"""

import argparse
import os
import shutil

os.environ.setdefault("HF_HUB_OFFLINE", "1")

from places import add_folder, needed, quiet


def main(words=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_folder(parser)
    args = parser.parse_args(words)
    needed(args.folder / "base" / "config.json", "get_model.py (step 1)")
    needed(args.folder / "adapter" / "adapter_config.json", "train.py (step 3)")

    from peft import PeftModel
    from transformers import AutoModelForCausalLM, AutoTokenizer

    quiet()
    shutil.rmtree(args.folder / "merged", ignore_errors=True)
    base = AutoModelForCausalLM.from_pretrained(args.folder / "base", dtype="auto")
    merged = PeftModel.from_pretrained(base, args.folder / "adapter").merge_and_unload()
    merged.save_pretrained(args.folder / "merged")
    AutoTokenizer.from_pretrained(args.folder / "base").save_pretrained(args.folder / "merged")
    print(f"merged model: {args.folder / 'merged'}")


if __name__ == "__main__":
    main()
