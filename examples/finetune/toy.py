"""A toy for the whole journey: a small language, a tokenizer, a Llama of half a million weights, and chats. All made here, from a seed.

The base model learns the language from texts without chats. The chats ask for something that these texts never show: an order in plain
words, answered by a form. So the base model cannot do it, and a tuned one can.
"""

import json
import random

NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
COLOURS = ("red", "blue", "green", "white", "black", "grey", "yellow", "brown", "pink", "orange")
THINGS = ("lamps", "chairs", "tables", "boxes", "pumps", "motors", "cables", "panels", "filters", "valves")
CITIES = ("Oslo", "Lima", "Cairo", "Paris", "Tokyo", "Delhi", "Quito", "Dublin", "Berlin", "Nairobi")
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

REQUESTS = (
    "Please send {number} {colour} {thing} to {city} by {day}.",
    "We need {number} {colour} {thing} in {city} on {day}.",
    "By {day}, could you ship {number} {thing} in {colour} to {city}?",
    "Our office in {city} wants {number} {colour} {thing} before {day}.",
    "Can {city} get {number} {thing}, all {colour}, this {day}?",
)
REMARKS = (
    "{city} got {number} {colour} {thing} on {day}.",
    "On {day}, {number} {colour} {thing} left for {city}.",
    "The {thing} for {city} are {colour}; there are {number} of them, due: {day}.",
    "An order from {city}, colour: {colour}; ship {number} {thing}; due {day}.",
)
FORM = "An order: {number} {thing}; colour: {colour}; ship to: {city}; due: {day}."

CHAT_TEMPLATE = (
    "{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
SPECIAL = ["<|pad|>", "<|end|>", "<|user|>", "<|assistant|>", "<|system|>"]


def order(chance):
    """A request."""
    lists = {"number": NUMBERS, "colour": COLOURS, "thing": THINGS, "city": CITIES, "day": DAYS}
    return {name: chance.choice(words) for name, words in lists.items()}


def texts(count, seed):
    """Texts without chats: facts, and the same facts in other words."""
    chance = random.Random(seed)
    for _ in range(count):
        facts = order(chance)
        first, second = chance.sample(REQUESTS + REMARKS, 2)
        yield f"{first.format(**facts)} ", second.format(**facts)


def chats(count, seed):
    """Chats: an order, answered by a form."""
    chance = random.Random(seed)
    for _ in range(count):
        facts = order(chance)
        yield {
            "messages": [
                {"role": "user", "content": chance.choice(REQUESTS).format(**facts)},
                {"role": "assistant", "content": FORM.format(**facts)},
            ]
        }


def write_chats(path, count, seed):
    """Write chats as JSON lines."""
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(chat) + "\n" for chat in chats(count, seed))


def make_tokenizer():
    """A byte-level BPE, trained on the language."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trained.decoder = decoders.ByteLevel()
    sentences = ["".join(text) for text in texts(2000, 1)]
    sentences += [chat["messages"][-1]["content"] for chat in chats(500, 1)]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=600, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False
    )
    trained.train_from_iterator(sentences, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=trained, pad_token=SPECIAL[0], eos_token=SPECIAL[1], chat_template=CHAT_TEMPLATE
    )


def make_model(tokenizer, steps, seed=0, batch=32):
    """A small Llama that has learned in so many steps to repeat facts in other words."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.set_num_threads(1)  # its matrices are too small for more
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=128,
        intermediate_size=384,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=256,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
    )
    model = LlamaForCausalLM(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    source = list(texts(steps * batch, seed + 2))
    for step in range(1, steps + 1):
        part = source[(step - 1) * batch : step * batch]
        rows = tokenizer([first + second + SPECIAL[1] for first, second in part], return_tensors="pt", padding=True)
        labels = rows.input_ids.masked_fill(rows.attention_mask == 0, -100)
        for row, (first, _) in zip(labels, part, strict=True):
            row[: len(tokenizer(first).input_ids)] = -100
        loss = model(rows.input_ids, attention_mask=rows.attention_mask, labels=labels).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 20 == 0 or step == steps:
            print(f"step {step}/{steps} loss {loss.item():.4f}")
    return model
