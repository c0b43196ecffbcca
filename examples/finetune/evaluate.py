"""Step 5: let the base and the merged model answer the held-out chats, compare by ROUGE, and write FOLDER/report.md, .json and .svg.

Each rank has both models, one after the other, and answers its share of the prompts. With one process on a node with several GPUs, the
model is spread over them.
"""

import argparse
import gc
import json
import os
from itertools import zip_longest

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import torch
import torch.distributed as dist
from places import add_folder, needed, quiet
from rouge import rouge
from tracking import Tracking
from transformers import AutoModelForCausalLM, AutoTokenizer

SCORES = ("rouge1", "rouge2", "rougeL")
MODELS = {"base": "base", "tuned": "merged"}


def place_of_model():
    """Where a rank's model goes."""
    if not torch.cuda.is_available():
        return "cpu"
    return "auto" if os.environ.get("LOCAL_WORLD_SIZE") == "1" else int(os.environ["LOCAL_RANK"])


@torch.inference_mode()
def answers_of(folder, chats, args):
    """What a model answers to the prompts of chats."""
    tokenizer = AutoTokenizer.from_pretrained(folder, padding_side="left")
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    model = AutoModelForCausalLM.from_pretrained(folder, dtype="auto", device_map=place_of_model())
    found = []
    for begin in range(0, len(chats), args.batch):
        prompts = [
            tokenizer.apply_chat_template(chat["messages"][:-1], add_generation_prompt=True, tokenize=False)
            for chat in chats[begin : begin + args.batch]
        ]
        rows = tokenizer(prompts, return_tensors="pt", padding=True, add_special_tokens=False)
        tokens = model.generate(**rows.to(model.device), max_new_tokens=args.max_new_tokens, do_sample=False)
        new = tokens[:, rows.input_ids.shape[1] :]
        found += tokenizer.batch_decode(new, skip_special_tokens=True)
    del model
    gc.collect()
    return found


def gathered(mine):
    """The lists of all ranks as one, in the order of the chats."""
    parts = [None] * dist.get_world_size()
    dist.all_gather_object(parts, mine)
    return [item for row in zip_longest(*parts) for item in row if item is not None]


def table(report):
    """The scores as a table in Markdown."""
    lines = ["| model | ROUGE-1 | ROUGE-2 | ROUGE-L |", "| --- | ---: | ---: | ---: |"]
    for name, scores in report["scores"].items():
        lines.append(f"| {name} | " + " | ".join(f"{scores[one]:.3f}" for one in SCORES) + " |")
    return "\n".join(lines)


def figure(report):
    """The scores as bars, in SVG."""
    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" width="420" height="200" font-family="sans-serif" font-size="12">',
        '<rect width="420" height="200" fill="white"/>',
        '<text x="40" y="18">grey: base model, blue: tuned model</text>',
    ]
    for group, one in enumerate(SCORES):
        left = 40 + 125 * group
        parts.append(f'<text x="{left + 43}" y="190" text-anchor="middle">{one}</text>')
        for number, (name, colour) in enumerate((("base", "#9aa5b1"), ("tuned", "#1f77b4"))):
            score = report["scores"][name][one]
            x, top = left + 46 * number, 172 - 125 * score
            parts += [
                f'<rect x="{x}" y="{top}" width="40" height="{172 - top}" fill="{colour}"/>',
                f'<text x="{x + 20}" y="{top - 5}" text-anchor="middle">{score:.2f}</text>',
            ]
    return "\n".join([*parts, "</svg>"])


def main(words=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_folder(parser)
    parser.add_argument("--batch", type=int, default=16, help="prompts at a time")
    parser.add_argument("--max-new-tokens", type=int, default=64, help="tokens of an answer")
    parser.add_argument("--examples", type=int, default=3, help="examples in the report")
    args = parser.parse_args(words)
    needed(args.folder / "base" / "config.json", "get_model.py (step 1)")
    needed(args.folder / "merged" / "tokenizer_config.json", "merge.py (step 4)")
    held_out = needed(args.folder / "data" / "held_out.jsonl", "prepare_data.py (step 2)")
    quiet()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    lines = held_out.read_text(encoding="utf-8").split("\n")
    chats = [json.loads(line) for line in lines if line]
    answers = {
        name: gathered(answers_of(args.folder / folder, chats[rank::world], args)) for name, folder in MODELS.items()
    }
    if rank == 0:
        write_report(chats, answers, args)
    dist.barrier()
    dist.destroy_process_group()


def write_report(chats, answers, args):
    """Score the answers, and write and print the report."""
    references = [chat["messages"][-1]["content"] for chat in chats]
    report = {"chats": len(chats), "scores": {}, "examples": []}
    for name, texts in answers.items():
        scores = [rouge(text, right) for text, right in zip(texts, references, strict=True)]
        report["scores"][name] = {one: sum(score[one] for score in scores) / len(scores) for one in SCORES}
    for number, chat in enumerate(chats[: args.examples]):
        given = {name: texts[number] for name, texts in answers.items()}
        prompt = chat["messages"][-2]["content"]
        report["examples"].append({"prompt": prompt, "reference": references[number], **given})
    text = [f"# Base and tuned model on {len(chats)} held-out chats", "", table(report)]
    for example in report["examples"]:
        text += ["", *(f"- **{name}**: {value}" for name, value in example.items())]
    (args.folder / "report.md").write_text("\n".join(text) + "\n", encoding="utf-8")
    (args.folder / "report.json").write_text(json.dumps(report, indent=1), encoding="utf-8")
    (args.folder / "report.svg").write_text(figure(report), encoding="utf-8")
    print(table(report))
    tracking = Tracking(0)
    tracking.numbers({f"{name}_{one}": report["scores"][name][one] for name in answers for one in SCORES})
    tracking.end()


if __name__ == "__main__":
    main()
