#include "normlab/cli/torch/export_form.h"

#include "normlab/base/text.h"
#include "normlab/infer/gguf_export.h"
#include "normlab/infer/hf_export.h"

namespace normlab {

Exit export_form(LoadedModel& loaded, const std::string& to, const std::string& out, bool json) {
  const bool gguf = to == "gguf";
  const ModelExport made =
      gguf ? export_to_gguf(out, loaded.model, loaded.tokenizer) : export_to_hf(out, loaded.model, loaded.tokenizer);
  const bool own_file = made.form.type == "normlab";
  if (json) {
    print_json({{"out", out},
                {"form", made.form.type},
                {"reason", made.form.reason},
                {"absorbed", made.absorbed},
                {"largest_difference", made.largest_difference},
                {"largest_logit", made.largest_logit}});
    return Exit::done;
  }
  print_line(own_file ? concat("form: modeling_normlab.py, for trust_remote_code; ", made.form.reason)
                      : concat("form: ", made.form.type, "; ", made.form.reason));
  for (const std::string& line : made.absorbed) print_line("absorbed: " + line);
  print_line(concat("logits read back from ", gguf ? "the file" : "the files", " differ by at most ",
                    significant(made.largest_difference, 2), ", the largest is ", significant(made.largest_logit, 3)));
  print_line(concat("model in ", out));
  print_line(gguf ? concat("next, with llama.cpp: llama-completion -m ", out, " -no-cnv -p TEXT")
                  : concat("next, in Python: transformers.AutoModelForCausalLM.from_pretrained(\"", out, "\"",
                           own_file ? ", trust_remote_code=True" : "", ")"));
  return Exit::done;
}

}  // namespace normlab
