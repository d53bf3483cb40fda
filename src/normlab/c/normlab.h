/* Use of trained models from C, in libnormlab: load, generate, translate. Installed as normlab/normlab.h.
 *
 * No exception leaves these functions. A failure gives NULL; normlab_last_error() says why. Texts are UTF-8 and end
 * with a zero byte. A model may be used by one thread at a time; different models by different threads. */
#ifndef NORMLAB_NORMLAB_H
#define NORMLAB_NORMLAB_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct normlab_model normlab_model;

/* A language model or a translator: a run, of which the best or else the latest checkpoint is taken, or a checkpoint.
 */
normlab_model* normlab_load(const char* folder);
void normlab_unload(normlab_model* model); /* NULL is allowed */

typedef struct {
  int tokens;         /* to generate */
  double temperature; /* 0 takes the most probable token */
  int top_k;          /* sample from the k most probable tokens; 0: all */
  double top_p;       /* sample from the most probable tokens that make up this share of what top_k keeps; 1: all */
  uint64_t seed;      /* the same seed gives the same text */
} normlab_sampling;

/* 500 tokens, temperature 1, all tokens, seed 1: the defaults of `normlab generate`. */
normlab_sampling normlab_default_sampling(void);

/* The prompt and its continuation by a language model. `sampling` may be NULL: the defaults. */
char* normlab_generate(normlab_model* model, const char* prompt, const normlab_sampling* sampling);

/* The translation of one line by a translator, with the beam and the length penalty of its configuration. */
char* normlab_translate(normlab_model* model, const char* line);

/* Frees a text that one of these functions returned; NULL is allowed. */
void normlab_free(char* text);

/* Why the last failed call of this thread failed, in one sentence; "" when none did. Valid until its next failure. */
const char* normlab_last_error(void);

#ifdef __cplusplus
}
#endif

#endif
