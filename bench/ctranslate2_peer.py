"""The peer of `normlab bench beam`: a translator of the same shape, with random weights, in CTranslate2, float32.

Answers each line of JSON on standard input with one on standard output:
  {"cmd": "build", "d_model": 512, "lengths": [[source tokens, symbols to make], ...], ...}  ->  {"ctranslate2": "4.8.0"}
  {"cmd": "translate"}  ->  {"seconds": 1.23}      all sentences, sorted by length, in batches
or with {"error": "..."}, and ends with its input. Random weights do not know where a sentence ends, so each batch is
made to end after the mean number of symbols that ours needed for it.
"""
import json
import sys
import tempfile
import time


def make_translator(c):
    import ctranslate2
    import numpy as np
    from ctranslate2.specs import common_spec, transformer_spec

    draw = np.random.default_rng(1)
    spec = transformer_spec.TransformerSpec.from_config(
        (c["encoder_layers"], c["decoder_layers"]), c["heads"], pre_norm=True,
        activation=common_spec.Activation.RELU)
    d, ff = c["d_model"], c["d_ff"]

    def weights(*shape):
        return (draw.standard_normal(shape) * shape[-1] ** -0.5).astype(np.float32)

    def linear(layer, rows, columns):
        layer.weight, layer.bias = weights(rows, columns), np.zeros(rows, np.float32)

    def norm(layer):
        layer.gamma, layer.beta = np.ones(d, np.float32), np.zeros(d, np.float32)

    def self_attention(layer):
        norm(layer.layer_norm)
        linear(layer.linear[0], 3 * d, d)
        linear(layer.linear[1], d, d)

    def ffn(layer):
        norm(layer.layer_norm)
        linear(layer.linear_0, ff, d)
        linear(layer.linear_1, d, ff)

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
    marks = ["<blank>", "<unk>", "<s>", "</s>"]

    def vocabulary(size):
        return marks + [f"w{i}" for i in range(size - len(marks))]

    spec.register_source_vocabulary(vocabulary(c["source_vocab"]))
    spec.register_target_vocabulary(vocabulary(c["target_vocab"]))
    folder = tempfile.mkdtemp()
    spec.validate()
    spec.save(folder)
    translator = ctranslate2.Translator(folder, compute_type="float32", inter_threads=1, intra_threads=c["threads"])
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
    translator, batches, config = None, [], {}
    for line in sys.stdin:
        try:
            question = json.loads(line)
            if question["cmd"] == "build":
                config = question
                translator, version = make_translator(config)
                batches = make_batches(config)
                answer = {"ctranslate2": version}
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
