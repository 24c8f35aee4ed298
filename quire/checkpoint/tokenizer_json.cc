#include "quire/checkpoint/tokenizer_json.h"

#include <algorithm>
#include <boost/json.hpp>
#include <filesystem>
#include <initializer_list>
#include <limits>
#include <utility>
#include <vector>

#include "quire/base/error.h"
#include "quire/base/mapped_file.h"
#include "quire/text/tokenizer/split_regex.h"

namespace quire::checkpoint {
namespace {

namespace json = boost::json;
using text::PreTokenizer;
using text::TokenizerSpec;

std::string describe(const json::value* value) {
  constexpr size_t kLongest = 60;
  if (value == nullptr) return "nothing";
  if (value->is_object()) return "an object";
  if (value->is_array()) return "an array";
  std::string text = json::serialize(*value);
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "...";
  return text;
}

/// A value with its place in the file, for error messages.
class Node {
 public:
  Node(const json::value* value, std::string path, std::string_view where)
      : value_(value), path_(std::move(path)), where_(where) {}

  /// Absent or null.
  bool missing() const { return value_ == nullptr || value_->is_null(); }

  Node operator[](std::string_view key) const {
    const json::object* object = value_ != nullptr ? value_->if_object() : nullptr;
    return {object != nullptr ? object->if_contains(key) : nullptr,
            path_.empty() ? std::string(key) : path_ + "." + std::string(key), where_};
  }
  Node element(const json::value& value, size_t index) const {
    return {&value, path_ + "[" + std::to_string(index) + "]", where_};
  }

  const json::object& object() const {
    if (value_ == nullptr || !value_->is_object()) fail("an object");
    return value_->get_object();
  }
  const json::array& array() const {
    if (value_ == nullptr || !value_->is_array()) fail("an array");
    return value_->get_array();
  }
  std::string string() const {
    if (!is_string()) fail("a string");
    const json::string& text = value_->get_string();
    return {text.data(), text.size()};
  }
  bool is_string() const { return value_ != nullptr && value_->is_string(); }
  bool is_array() const { return value_ != nullptr && value_->is_array(); }
  bool flag(bool fallback) const {
    if (missing()) return fallback;
    if (!value_->is_bool()) fail("true or false");
    return value_->get_bool();
  }
  int32_t id() const {
    const int64_t* id = value_ != nullptr ? value_->if_int64() : nullptr;
    if (id == nullptr || *id < 0 || *id > std::numeric_limits<int32_t>::max()) fail("a token id");
    return static_cast<int32_t>(*id);
  }
  /// The "type" of a component; "null" when there is no component.
  std::string type() const { return missing() ? "null" : (*this)["type"].string(); }

  [[noreturn]] void fail(std::string_view expected) const { fail(expected, describe(value_)); }
  [[noreturn]] void fail(std::string_view expected, std::string_view found) const {
    throw LoadError(where_, path_, expected, found);
  }

 private:
  const json::value* value_;
  std::string path_;
  std::string_view where_;
};

json::value parse(std::string_view text, std::string_view where) {
  json::error_code error;
  json::parse_options options;
  options.max_depth = 64;
  json::value value =
      json::parse(text, error, json::make_shared_resource<json::monotonic_resource>(), options);
  if (error) throw LoadError(where, "not valid JSON: " + error.message());
  return value;
}

// --- vocabulary and merges ---

/// Puts `content` at `id`. The vocabulary grows to the highest id, which is bounded by the number
/// of entries, so that no file can ask for more memory than its size earns. `list` is for errors.
void place(int64_t id, std::string content, size_t entries, const Node& list, TokenizerSpec& spec) {
  const auto limit = static_cast<int64_t>(16 * entries + 1024);
  const auto quoted = [](const std::string& token) { return json::serialize(json::string(token)); };
  if (id < 0 || id >= std::min<int64_t>(limit, std::numeric_limits<int32_t>::max())) {
    list.fail("ids from 0 to below " + std::to_string(limit),
              std::to_string(id) + " for " + quoted(content));
  }
  const auto index = static_cast<size_t>(id);
  if (index >= spec.vocab.size()) spec.vocab.resize(index + 1);
  std::string& held = spec.vocab[index];
  if (!held.empty() && held != content) {
    list.fail("one token for each id",
              quoted(held) + " and " + quoted(content) + " for " + std::to_string(id));
  }
  held = std::move(content);
}

void read_vocab(const Node& vocab, size_t entries, TokenizerSpec& spec) {
  spec.vocab.reserve(entries);
  for (const json::key_value_pair& entry : vocab.object()) {
    const std::string content(entry.key().data(), entry.key().size());
    const int64_t* id = entry.value().if_int64();
    if (id == nullptr) vocab[content].fail("a token id");
    place(*id, content, entries, vocab, spec);
  }
}

void read_added_tokens(const Node& tokens, size_t entries, TokenizerSpec& spec) {
  if (tokens.missing()) return;
  size_t index = 0;
  for (const json::value& value : tokens.array()) {
    const Node node = tokens.element(value, index++);
    text::AddedToken token;
    token.id = node["id"].id();
    token.content = node["content"].string();
    token.special = node["special"].flag(false);
    token.lstrip = node["lstrip"].flag(false);
    token.rstrip = node["rstrip"].flag(false);
    token.single_word = node["single_word"].flag(false);
    token.normalized = node["normalized"].flag(!token.special);
    if (token.content.empty()) continue;
    place(token.id, token.content, entries, tokens, spec);
    spec.added_tokens.push_back(std::move(token));
  }
}

/// A merge is "left right" or ["left", "right"].
std::pair<std::string, std::string> read_merge(const json::value& value, const Node& list,
                                               size_t rank) {
  const auto own = [](std::string_view text) { return std::string(text); };
  if (const json::array* pair = value.if_array(); pair != nullptr && pair->size() == 2) {
    const json::string* left = (*pair)[0].if_string();
    const json::string* right = (*pair)[1].if_string();
    if (left != nullptr && right != nullptr) return {own(*left), own(*right)};
  } else if (const json::string* text = value.if_string()) {
    const std::string_view merge(*text);
    const size_t space = merge.find(' ');
    if (space != std::string_view::npos && merge.find(' ', space + 1) == std::string_view::npos) {
      return {own(merge.substr(0, space)), own(merge.substr(space + 1))};
    }
  }
  list.element(value, rank).fail("two tokens");
}

void refuse_options(const Node& model) {
  for (const char* const name : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    const Node option = model[name];
    if (!option.missing() && !option.string().empty()) option.fail("none: it is not supported");
  }
  const Node fallback = model["byte_fallback"];
  if (fallback.flag(false)) fallback.fail("false: byte_fallback is not supported");
}

void read_model(const Node& model, size_t entries, TokenizerSpec& spec) {
  refuse_options(model);
  read_vocab(model["vocab"], entries, spec);
  const Node merges = model["merges"];
  spec.merges.reserve(merges.array().size());
  for (const json::value& merge : merges.array()) {
    spec.merges.push_back(read_merge(merge, merges, spec.merges.size()));
  }
  spec.ignore_merges = model["ignore_merges"].flag(false);
  spec.fuse_missing_bytes = model["fuse_unk"].flag(false);
  const Node unknown = model["unk_token"];
  if (unknown.missing()) return;
  const std::string content = unknown.string();
  const json::value* id = model["vocab"].object().if_contains(content);
  if (id == nullptr) unknown.fail("a token of the vocabulary");
  spec.missing_byte_id = model["vocab"][content].id();
}

// --- the components around the model ---

/// Calls `read` for `node`, or for each of the components that it is a Sequence of.
template <typename Read>
void for_each_component(const Node& node, const char* list, Read read) {
  if (node.type() != "Sequence") return read(node);
  const Node components = node[list];
  size_t index = 0;
  for (const json::value& value : components.array()) {
    for_each_component(components.element(value, index++), list, read);
  }
}

void read_normalizer(const Node& node, TokenizerSpec& spec) {
  if (node.missing()) return;
  for_each_component(node, "normalizers", [&](const Node& component) {
    if (component.type() != "NFC") component.fail("a supported normalizer: NFC", component.type());
    spec.normalizers.push_back(text::Normalizer::kNfc);
  });
}

PreTokenizer::Behavior read_behavior(const Node& node) {
  using Behavior = PreTokenizer::Behavior;
  constexpr std::pair<std::string_view, Behavior> kNames[] = {
      {"Isolated", Behavior::kIsolated},
      {"Removed", Behavior::kRemoved},
      {"MergedWithPrevious", Behavior::kMergedWithPrevious},
      {"MergedWithNext", Behavior::kMergedWithNext},
      {"Contiguous", Behavior::kContiguous}};
  const std::string name = node.string();
  for (const auto& [known, behavior] : kNames) {
    if (known == name) return behavior;
  }
  node.fail("a behavior of Split");
}

PreTokenizer read_pre_tokenizer(const Node& node) {
  PreTokenizer step;
  const std::string type = node.type();
  if (type == "ByteLevel") {
    step.kind = PreTokenizer::Kind::kByteLevel;
    step.add_prefix_space = node["add_prefix_space"].flag(true);
    step.use_regex = node["use_regex"].flag(true);
  } else if (type == "Digits") {
    step.kind = PreTokenizer::Kind::kDigits;
    step.individual_digits = node["individual_digits"].flag(false);
  } else if (type == "Split") {
    step.kind = PreTokenizer::Kind::kSplitRegex;
    const Node pattern = node["pattern"];
    step.pattern = pattern["String"].missing() ? pattern["Regex"].string()
                                               : text::escape_pattern(pattern["String"].string());
    step.behavior = read_behavior(node["behavior"]);
    step.invert = node["invert"].flag(false);
  } else {
    node.fail("a supported pre-tokenizer: ByteLevel, Digits, Split", type);
  }
  return step;
}

std::vector<int32_t> template_ids(const Node& special, const TokenizerSpec& spec) {
  std::vector<int32_t> ids;
  const Node list = special["ids"];
  for (const json::value& value : list.array()) {
    const Node node = list.element(value, ids.size());
    ids.push_back(node.id());
    if (static_cast<size_t>(ids.back()) >= spec.vocab.size()) node.fail("an id of the vocabulary");
  }
  return ids;
}

/// "single" is a list of special tokens with the text ("Sequence" A) once among them.
void read_template(const Node& node, TokenizerSpec& spec) {
  const Node single = node["single"];
  std::vector<int32_t> before;
  std::vector<int32_t> after;
  int texts = 0;
  size_t index = 0;
  for (const json::value& value : single.array()) {
    const Node part = single.element(value, index++);
    if (!part["Sequence"].missing()) {
      if (part["Sequence"]["id"].string() != "A") part.fail("the text, A");
      ++texts;
      continue;
    }
    const std::string name = part["SpecialToken"]["id"].string();
    const std::vector<int32_t> ids = template_ids(node["special_tokens"][name], spec);
    std::vector<int32_t>& side = texts == 0 ? before : after;
    side.insert(side.end(), ids.begin(), ids.end());
  }
  if (texts != 1) single.fail("the text once", std::to_string(texts) + " times");
  spec.prefix_ids.insert(spec.prefix_ids.begin(), before.begin(), before.end());
  spec.suffix_ids.insert(spec.suffix_ids.end(), after.begin(), after.end());
}

void read_post_processor(const Node& node, TokenizerSpec& spec) {
  if (node.missing()) return;
  for_each_component(node, "processors", [&](const Node& component) {
    const std::string type = component.type();
    if (type == "TemplateProcessing") return read_template(component, spec);
    // ByteLevel here only moves offsets.
    if (type != "ByteLevel") {
      component.fail("a supported post-processor: TemplateProcessing, ByteLevel", type);
    }
  });
}

void check_decoder(const Node& node) {
  for_each_component(node, "decoders", [](const Node& component) {
    if (component.type() != "ByteLevel") {
      component.fail("a supported decoder: ByteLevel", component.type());
    }
  });
}

// --- tokenizer_config.json ---

/// A token is named by its content or by an object with its flags.
std::string read_token_name(const Node& node) {
  if (node.missing()) return {};
  return node.is_string() ? node.string() : node["content"].string();
}

void read_named_token(const Node& node, const TokenizerSpec& spec, std::string& name,
                      std::optional<int32_t>& id) {
  name = read_token_name(node);
  if (name.empty()) return;
  const auto found = std::find(spec.vocab.begin(), spec.vocab.end(), name);
  if (found != spec.vocab.end()) id = static_cast<int32_t>(found - spec.vocab.begin());
}

/// An explicit flag overrules what tokenizer.json's post-processor does.
void apply_flag(const Node& flag, const std::optional<int32_t>& id, std::vector<int32_t>& ids) {
  if (flag.missing() || !id) return;
  const bool wanted = flag.flag(false);
  if (wanted && ids.empty()) ids = {*id};
  if (!wanted && ids == std::vector<int32_t>{*id}) ids.clear();
}

/// The template, or the one named "default" of several.
std::string read_chat_template(const Node& node) {
  if (node.missing()) return {};
  if (!node.is_array()) return node.string();
  size_t index = 0;
  for (const json::value& value : node.array()) {
    const Node named = node.element(value, index++);
    if (named["name"].string() == "default") return named["template"].string();
  }
  return {};
}

std::string_view view(const MappedFile& file) {
  const auto bytes = file.bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

text::TokenizerSpec parse_tokenizer_json(std::string_view text, std::string_view where) {
  const json::value value = parse(text, where);
  const Node root(&value, "", where);
  const Node model = root["model"];
  const std::string type = model["type"].missing() ? "BPE" : model["type"].string();
  if (type != "BPE") model["type"].fail("a supported model: BPE");
  size_t entries = model["vocab"].object().size();
  if (!root["added_tokens"].missing()) entries += root["added_tokens"].array().size();

  TokenizerSpec spec;
  read_model(model, entries, spec);
  read_added_tokens(root["added_tokens"], entries, spec);
  read_normalizer(root["normalizer"], spec);
  for_each_component(root["pre_tokenizer"], "pretokenizers", [&](const Node& component) {
    spec.pre_tokenizers.push_back(read_pre_tokenizer(component));
  });
  read_post_processor(root["post_processor"], spec);
  check_decoder(root["decoder"]);
  return spec;
}

void apply_tokenizer_config(std::string_view text, std::string_view where,
                            HfTokenizerFiles& files) {
  const json::value value = parse(text, where);
  const Node root(&value, "", where);
  root.object();
  TokenizerSpec& spec = files.spec;
  read_named_token(root["bos_token"], spec, spec.bos_token, spec.bos_id);
  read_named_token(root["eos_token"], spec, spec.eos_token, spec.eos_id);
  read_named_token(root["unk_token"], spec, spec.unk_token, spec.unk_id);
  read_named_token(root["pad_token"], spec, spec.pad_token, spec.pad_id);
  apply_flag(root["add_bos_token"], spec.bos_id, spec.prefix_ids);
  apply_flag(root["add_eos_token"], spec.eos_id, spec.suffix_ids);
  files.chat_template = read_chat_template(root["chat_template"]);
}

HfTokenizerFiles read_hf_tokenizer(const std::string& folder) {
  const std::filesystem::path base(folder);
  const auto name = [&](const char* file) { return (base / file).string(); };
  const auto present = [&](const char* file) {
    std::error_code ignored;
    return std::filesystem::is_regular_file(base / file, ignored);
  };
  HfTokenizerFiles files;
  const std::string main = name("tokenizer.json");
  files.spec = parse_tokenizer_json(view(MappedFile(main)), main);
  if (present("tokenizer_config.json")) {
    const std::string config = name("tokenizer_config.json");
    apply_tokenizer_config(view(MappedFile(config)), config, files);
  }
  if (present("chat_template.jinja")) {
    files.chat_template = view(MappedFile(name("chat_template.jinja")));
  }
  return files;
}

}  // namespace quire::checkpoint
