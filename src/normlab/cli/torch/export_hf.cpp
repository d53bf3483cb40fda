#include "normlab/cli/torch/export_hf.h"

#include "normlab/base/text.h"
#include "normlab/infer/hf_export.h"

namespace normlab {

Exit export_hf(LoadedModel& loaded, const std::string& out, bool json) {
  const HfExport made = export_to_hf(out, loaded.model, loaded.tokenizer);
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
  print_line(concat("logits read back from the files differ by at most ", significant(made.largest_difference, 2),
                    ", the largest is ", significant(made.largest_logit, 3)));
  print_line(concat("model in ", out, "\nnext, in Python: transformers.AutoModelForCausalLM.from_pretrained(\"", out,
                    "\"", own_file ? ", trust_remote_code=True" : "", ")"));
  return Exit::done;
}

}  // namespace normlab
