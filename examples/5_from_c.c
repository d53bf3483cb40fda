/* Continue a prompt with a language model, or translate a line with a translator, from C:
 *   5_from_c generate RUN 'The king'
 *   5_from_c translate RUN 'o can ve o mar' */
#include <normlab/normlab.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char** argv) {
  if (argc != 4) {
    fprintf(stderr, "usage: 5_from_c generate|translate RUN TEXT\n");
    return 2;
  }
  normlab_model* model = normlab_load(argv[2]);
  char* text = NULL;
  if (model && strcmp(argv[1], "translate") == 0) {
    text = normlab_translate(model, argv[3]);
  } else if (model) {
    normlab_sampling sampling = normlab_default_sampling();
    sampling.tokens = 40;
    text = normlab_generate(model, argv[3], &sampling);
  }
  if (text)
    puts(text);
  else
    fprintf(stderr, "%s\n", normlab_last_error());
  const int failed = text == NULL;
  normlab_free(text);
  normlab_unload(model);
  return failed;
}
