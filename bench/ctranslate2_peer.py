"""The peer of `normlab bench beam` and `decode`: a translator or language model of the same shape, with random weights,
in CTranslate2, float32.

Answers each line of JSON on standard input with one on standard output:
  {"cmd": "build", "d_model": 512, "lengths": [[source tokens, symbols to make], ...], ...}  ->  {"ctranslate2": "4.8.0"}
  {"cmd": "translate"}  ->  {"seconds": 1.23}      all sentences, sorted by length, in batches
  {"cmd": "build_generator", "d_model": 384, ...}  ->  {"ctranslate2": "4.8.0"}      of GPT-2's shape
  {"cmd": "generate", "prompt": 16, "tokens": 200, "texts": 1}  ->  {"seconds": 0.4}
or with {"error": "..."}, and ends with its input. Random weights do not know where a sentence ends, so each batch is
made to end after the mean number of symbols that ours needed for it.
"""
import json
import sys
import tempfile
import time


class RandomWeights:
    """Fills the layers of a specification."""

    def __init__(self, d, ff):
        import numpy as np

        self.d, self.ff, self.np, self.draw = d, ff, np, np.random.default_rng(1)

    def weights(self, *shape):
        return (self.draw.standard_normal(shape) * shape[-1] ** -0.5).astype(self.np.float32)

    def linear(self, layer, rows, columns):
        layer.weight, layer.bias = self.weights(rows, columns), self.np.zeros(rows, self.np.float32)

    def norm(self, layer):
        layer.gamma, layer.beta = self.np.ones(self.d, self.np.float32), self.np.zeros(self.d, self.np.float32)

    def self_attention(self, layer):
        self.norm(layer.layer_norm)
        self.linear(layer.linear[0], 3 * self.d, self.d)
        self.linear(layer.linear[1], self.d, self.d)

    def ffn(self, layer):
        self.norm(layer.layer_norm)
        self.linear(layer.linear_0, self.ff, self.d)
        self.linear(layer.linear_1, self.d, self.ff)


def saved(spec):
    folder = tempfile.mkdtemp()
    spec.validate()
    spec.save(folder)
    return folder


MARKS = ["<blank>", "<unk>", "<s>", "</s>"]


def vocabulary(size):
    return MARKS + [f"w{i}" for i in range(size - len(MARKS))]


def make_generator(c):
    import ctranslate2
    from ctranslate2.specs import common_spec, transformer_spec

    spec = transformer_spec.TransformerDecoderModelSpec.from_config(
        c["layers"], c["heads"], pre_norm=True, activation=common_spec.Activation.GELU)
    random, d = RandomWeights(c["d_model"], c["d_ff"]), c["d_model"]
    spec.decoder.scale_embeddings = False
    spec.decoder.embeddings.weight = random.weights(c["vocab"], d)
    spec.decoder.position_encodings.encodings = random.weights(c["positions"], d)
    random.norm(spec.decoder.layer_norm)
    for layer in spec.decoder.layer:
        random.self_attention(layer.self_attention)
        random.ffn(layer.ffn)
    spec.decoder.projection.weight = spec.decoder.embeddings.weight
    spec.register_vocabulary(vocabulary(c["vocab"]))
    generator = ctranslate2.Generator(saved(spec), compute_type="float32", inter_threads=1, intra_threads=c["threads"])
    return generator, ctranslate2.__version__


def generate(generator, question):
    prompt = [f"w{7 * i % 61}" for i in range(question["prompt"])]
    start = time.perf_counter()
    results = generator.generate_batch([prompt] * question["texts"], beam_size=1, sampling_topk=1,
                                       min_length=question["tokens"], max_length=question["tokens"],
                                       include_prompt_in_result=False)
    seconds = time.perf_counter() - start
    made = {len(result.sequences[0]) for result in results}
    if made != {question["tokens"]}:
        raise ValueError(f"made {made} tokens, expected {question['tokens']}")
    return {"seconds": seconds}


def make_translator(c):
    import ctranslate2
    from ctranslate2.specs import common_spec, transformer_spec

    spec = transformer_spec.TransformerSpec.from_config(
        (c["encoder_layers"], c["decoder_layers"]), c["heads"], pre_norm=True,
        activation=common_spec.Activation.RELU)
    d = c["d_model"]
    random = RandomWeights(d, c["d_ff"])
    weights, linear, norm, self_attention, ffn = (random.weights, random.linear, random.norm, random.self_attention,
                                                  random.ffn)
    spec.encoder.embeddings[0].weight = weights(c["source_vocab"], d)
    spec.decoder.embeddings.weight = weights(c["target_vocab"], d)
    positions = weights(1024, d)
    spec.encoder.position_encodings.encodings = positions
    spec.decoder.position_encodings.encodings = positions
    norm(spec.encoder.layer_norm)
    norm(spec.decoder.layer_norm)
    for layer in spec.encoder.layer:
        self_attention(layer.self_attention)
        ffn(layer.ffn)
    for layer in spec.decoder.layer:
        self_attention(layer.self_attention)
        norm(layer.attention.layer_norm)
        linear(layer.attention.linear[0], d, d)
        linear(layer.attention.linear[1], 2 * d, d)
        linear(layer.attention.linear[2], d, d)
        ffn(layer.ffn)
    linear(spec.decoder.projection, c["target_vocab"], d)
    spec.register_source_vocabulary(vocabulary(c["source_vocab"]))
    spec.register_target_vocabulary(vocabulary(c["target_vocab"]))
    translator = ctranslate2.Translator(saved(spec), compute_type="float32", inter_threads=1, intra_threads=c["threads"])
    return translator, ctranslate2.__version__


def make_batches(c):
    """Sources of random words, sorted by length, and how many symbols each batch makes."""
    pairs = sorted(c["lengths"])
    batches = []
    for first in range(0, len(pairs), c["batch"]):
        part = pairs[first:first + c["batch"]]
        sources = [[f"w{(7 * i + 13 * j) % (c['source_vocab'] - 4)}" for j in range(n - 1)] + ["</s>"]
                   for i, (n, _) in enumerate(part)]
        batches.append((sources, max(1, round(sum(made for _, made in part) / len(part)))))
    return batches


def main():
    translator, generator, batches, config = None, None, [], {}
    for line in sys.stdin:
        try:
            question = json.loads(line)
            if question["cmd"] == "build":
                config = question
                translator, version = make_translator(config)
                batches = make_batches(config)
                answer = {"ctranslate2": version}
            elif question["cmd"] == "build_generator":
                generator, version = make_generator(question)
                answer = {"ctranslate2": version}
            elif question["cmd"] == "generate":
                answer = generate(generator, question)
            else:
                start = time.perf_counter()
                for sources, made in batches:
                    translator.translate_batch(sources, beam_size=config["beam"], length_penalty=0.6,
                                               min_decoding_length=made, max_decoding_length=made)
                answer = {"seconds": time.perf_counter() - start}
        except Exception as error:  # whatever it is, the other side must hear of it
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
