"""Step 1: put a base model into FOLDER/base, from a hub or made here.

The folder is there when the model is whole. A download that ended too early is continued. Another model is never put over it.

python get_model.py --hub deepseek-ai/DeepSeek-R1-Distill-Qwen-14B   # needs the network; HF_TOKEN for gated models
python get_model.py                                                  # a toy, trained here in seconds
"""

import argparse

from places import add_folder, quiet

SOURCE = "get_model.txt"
"""Where in the folder it stands which model it is."""


def main(words=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_folder(parser)
    parser.add_argument("--hub", metavar="ID", help="a model of the Hugging Face hub")
    parser.add_argument("--revision", help="its commit or tag; give one to get the same model again")
    parser.add_argument("--toy-steps", type=int, default=160, help="training steps of the toy")
    args = parser.parse_args(words)
    wanted = f"{args.hub}@{args.revision or 'main'}" if args.hub else f"toy@{args.toy_steps}"
    target, writing = args.folder / "base", args.folder / f"base.{wanted.replace('/', '--')}"
    if target.exists():
        check(target, wanted)
    else:
        make(writing, args)
        (writing / SOURCE).write_text(wanted, encoding="utf-8")
        writing.rename(target)
    size = sum(file.stat().st_size for file in target.glob("*.safetensors"))
    print(f"base model: {target}, {wanted}, {size / 1e6:.1f} MB of weights")


def check(target, wanted):
    """Another model in the folder is an error: its files and the wanted one's would be mixed, and the other steps' files are its own."""
    source = target / SOURCE
    found = source.read_text(encoding="utf-8") if source.exists() else "a model from elsewhere"
    if found != wanted:
        raise FileExistsError(f"{target} has {found}, not {wanted}. Choose another --folder, or empty this one.")


def make(folder, args):
    """Write a model into a folder."""
    if args.hub:
        from huggingface_hub import snapshot_download

        patterns = ["*.json", "*.safetensors", "*.model", "*.txt", "*.jinja"]
        snapshot_download(args.hub, revision=args.revision, local_dir=folder, allow_patterns=patterns)
    else:
        import toy

        quiet()
        tokenizer = toy.make_tokenizer()
        model = toy.make_model(tokenizer, args.toy_steps)
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)


if __name__ == "__main__":
    main()
