"""Step 2: turn chats into token shards for the training, and keep some chats for the evaluation.

A chat is a line of JSON: {"messages": [{"role": "user", "content": "..."}, ..., {"role": "assistant", "content": "..."}]}.
The model learns the last message, given those before it.

    python prepare_data.py --chats /fsx/alice/chats.jsonl
    python prepare_data.py                                    # toy chats, made here
"""

import argparse
import hashlib
import json
import os
import random

os.environ.setdefault("HF_HUB_OFFLINE", "1")

from places import add_folder, folder_of, needed


def tokens_of(tokenizer, messages, max_length):
    """Tokens of a chat, and how many of them are the prompt. The prompt's beginning is cut if the chat is too long."""
    prompt = tokenizer.apply_chat_template(messages[:-1], add_generation_prompt=True, tokenize=True, return_dict=False)
    answer = tokenizer(messages[-1]["content"], add_special_tokens=False).input_ids
    answer = [*answer[: max_length - 2], tokenizer.eos_token_id]
    prompt = prompt[-(max_length - len(answer)) :]
    return [*prompt, *answer], len(prompt)


def chats_of(path):
    """The chats of a file as lines of JSON, each once, or it is learned and held out."""
    chats = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
        if line.strip() and line not in chats:
            if wrong := fault_of(line):
                raise ValueError(f"{path}, line {number}: {wrong}")
            chats[line] = None
    return list(chats)


def fault_of(line):
    """What is wrong with a chat, in words; None if nothing is."""
    try:
        chat = json.loads(line)
    except ValueError as error:
        return f"this is not JSON: {error}"
    messages = chat.get("messages") if isinstance(chat, dict) else None
    if not isinstance(messages, list) or not all(isinstance(one, dict) for one in messages):
        return 'a chat is {"messages": [{"role": "...", "content": "..."}, ...]}'
    if len(messages) < 2:
        return f"a chat needs a prompt and an answer, and this one has {len(messages)} messages"
    if any("role" not in one or "content" not in one for one in messages):
        return "each message needs a role and a content"
    if messages[-1]["role"] != "assistant":
        return f"the last message must be the assistant's, and is the {messages[-1]['role']}'s"
    content = messages[-1]["content"]
    if not isinstance(content, str) or not content:
        return "the last message has no text"
    return None


def main(words=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_folder(parser)
    parser.add_argument(
        "--chats",
        type=folder_of,
        metavar="FILE",
        help="chats as JSON lines; a relative path begins at the storage partition",
    )
    parser.add_argument("--toy-chats", type=int, default=4096, help="number of chats of the toy")
    parser.add_argument("--held-out", type=int, default=64, help="chats for the evaluation")
    parser.add_argument("--max-length", type=int, default=2048, help="tokens of a chat")
    parser.add_argument("--shard-size", type=int, default=10_000, help="chats in a shard")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(words)
    needed(args.folder / "base" / "config.json", "get_model.py (step 1)")

    import torch
    from safetensors.torch import save_file
    from transformers import AutoTokenizer

    folder = args.folder / "data"
    folder.mkdir(parents=True, exist_ok=True)
    if args.chats is None:
        import toy

        args.chats = folder / "chats.jsonl"
        toy.write_chats(args.chats, args.toy_chats, args.seed)
    chats = chats_of(args.chats)
    if len(chats) <= args.held_out:
        raise ValueError(
            f"{args.chats} has {len(chats)} different chats, and --held-out keeps {args.held_out}"
            " for the evaluation: none is left to train on"
        )
    random.Random(args.seed).shuffle(chats)
    # An index of earlier shards must not stand beside new ones, should this be killed.
    (folder / "index.json").unlink(missing_ok=True)
    (folder / "held_out.jsonl").write_text("\n".join(chats[: args.held_out]) + "\n", encoding="utf-8")

    tokenizer = AutoTokenizer.from_pretrained(args.folder / "base")
    total, names, tokens = 0, [], hashlib.sha256()
    for begin in range(args.held_out, len(chats), args.shard_size):
        part = chats[begin : begin + args.shard_size]
        rows = [tokens_of(tokenizer, json.loads(chat)["messages"], args.max_length) for chat in part]
        tensors = {
            "tokens": torch.tensor([token for row, _ in rows for token in row], dtype=torch.int32),
            "lengths": torch.tensor([[len(row), prompt] for row, prompt in rows]),
        }
        names.append(f"shard-{len(names):05d}.safetensors")
        save_file(tensors, folder / names[-1])
        total += len(tensors["tokens"])
        for tensor in tensors.values():
            tokens.update(tensor.numpy().tobytes())
    # Last and at once: a folder with an index is whole.
    index = {"shards": names, "chats": len(chats) - args.held_out, "tokens": total}
    index["sha256"] = tokens.hexdigest()
    (folder / "index.tmp").write_text(json.dumps(index))
    (folder / "index.tmp").rename(folder / "index.json")
    print(f"data: {folder}, {index['chats']} chats, {total} tokens, {len(names)} shards")
    print(f"held out: {args.held_out} chats")


if __name__ == "__main__":
    main()
