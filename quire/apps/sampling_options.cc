#include "quire/apps/sampling_options.h"

namespace quire::apps {

void add_sampling_options(CLI::App& command, llm::SamplingParams& params) {
  command.add_option("--max-tokens,-n", params.max_tokens,
                     "tokens to generate at most; else what the context leaves");
  command.add_option("--temperature,-t", params.temperature,
                     "0: always the most likely token; 1: the model's own distribution");
  command.add_option("--top-p", params.top_p,
                     "sample from the smallest set of tokens with this much probability");
  command.add_option("--top-k", params.top_k, "sample from this many most likely tokens; 0: all");
  command.add_option("--min-p", params.min_p,
                     "drop tokens less likely than this share of the most likely one");
  command.add_option("--repetition-penalty", params.repetition_penalty,
                     "above 1: avoid tokens of the prompt and the output");
  command.add_option("--presence-penalty", params.presence_penalty,
                     "above 0: avoid tokens that the output has");
  command.add_option("--frequency-penalty", params.frequency_penalty,
                     "above 0: avoid tokens the output has often");
  command.add_option("--sampling-seed", params.seed,
                     "makes sampling repeatable; random when not given");
  command.add_option("--stop", params.stop, "strings that end the output");
  command.add_option("--choices", params.n, "answers to each prompt")->capture_default_str();
  command.add_flag("--ignore-eos", params.ignore_eos,
                   "go on after the model's end-of-sequence token");
}

}  // namespace quire::apps
