"""Chat requests that the conformance test renders with every template."""

WEATHER = {"type": "function", "function": {
    "name": "get_weather", "description": "Weather at a place — today & \"soon\"",
    "parameters": {"type": "object", "properties": {
        "place": {"type": "string", "description": "A town, e.g. Nîmes"},
        "days": {"type": "integer", "minimum": 1, "default": 1},
        "unit": {"type": "string", "enum": ["°C", "°F"]},
        "tags": {"type": "array", "items": {"type": "string"}}}, "required": ["place"]}}}
CLOCK = {"type": "function", "function": {"name": "now", "description": "", "parameters": {
    "type": "object", "properties": {}}}}

CALL = {"role": "assistant", "content": None, "tool_calls": [
    {"id": "abcdef123", "type": "function",
     "function": {"name": "get_weather", "arguments": {"place": "Nîmes", "days": 2, "ratio": 0.5, "deep": {"a": [1, None, True]}}}}]}
CALL_TEXT = {"role": "assistant", "content": None, "tool_calls": [
    {"id": "123456789", "type": "function",
     "function": {"name": "get_weather", "arguments": "{\"place\": \"Oslo\"}"}},
    {"id": "987654321", "type": "function", "function": {"name": "now", "arguments": "{}"}}]}
TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}


def _user(text):
    return {"role": "user", "content": text}


def _assistant(text):
    return {"role": "assistant", "content": text}


def _system(text):
    return {"role": "system", "content": text}


CHATS = {
    "one turn": {"messages": [_user("Hello")], **TOKENS},
    "system": {"messages": [_system("Be brief."), _user("Hi there")], **TOKENS},
    "multi turn": {"messages": [_system("  Rules:\n1. be kind \n"), _user("a"), _assistant("b"), _user("c\n\n"),
                                _assistant(" d "), _user("e")], **TOKENS},
    "no prompt": {"messages": [_user("x"), _assistant("y")], "add_generation_prompt": False, **TOKENS},
    "emoji": {"messages": [_user("héllo 👩‍👩‍👧 日本語 \u202eabc\u200d ß Ǆ İstanbul \t tab"), _assistant("Ω≈ç√ '\"`\\"), _user("𝔘𝔫𝔦")], **TOKENS},
    "markup": {"messages": [_user("<b>&amp; {{ not }} {% a %} {# template #} 'quotes' \"too\"</b>\r\n\x07\x7f")], **TOKENS},
    "parts": {"messages": [_system([{"type": "text", "text": "S"}]),
                           _user([{"type": "text", "text": " one "}, {"type": "image"}, {"type": "text", "text": "two"}])],
              **TOKENS},
    "tools": {"messages": [_user("weather?"), CALL, {"role": "tool", "tool_call_id": "abcdef123", "name": "get_weather",
                                                      "content": "{\"t\": 21.5}"}, _assistant("21.5"), _user("thanks")],
              "tools": [WEATHER, CLOCK], **TOKENS},
    "two calls": {"messages": [_system("S"), _user("both?"), CALL_TEXT,
                               {"role": "tool", "tool_call_id": "123456789", "content": "rain"},
                               {"role": "tool", "tool_call_id": "987654321", "content": "noon"}],
                  "tools": [WEATHER], **TOKENS},
    "empty": {"messages": [], **TOKENS},
    "empty texts": {"messages": [_system(""), _user(""), _assistant(""), _user("")], **TOKENS},
    "no tokens": {"messages": [_user("bare")]},
    "wrong order": {"messages": [_assistant("first"), _assistant("second"), {"role": "critic", "content": "third"}], **TOKENS},
    "kwargs": {"messages": [_user("think"), _assistant("<think>\nwell\n</think>\n\nanswer"), _user("more")],
               "chat_template_kwargs": {"enable_thinking": False, "bos_token": "<other>", "date_string": "1 May 2025",
                                        "custom": {"list": [1, 2.0, 1e300, -0.0, 12345678901234567, 1e16, 1e-7], "none": None}},
               **TOKENS},
}

# Values that the snippets of corpus.py work on.
DATA = {
    "n": 7, "zero": 0, "neg": -7, "pi": 3.14159, "big": 1e22, "tiny": 1.5e-9, "half": 2.5, "yes": True, "no": False, "nothing": None,
    "text": "The quick brown fox", "spaced": "  \t padded text \n ", "uni": "straße ÉCOLE ǆ ΑΣ ﬁn 日本 👍🏽",
    "lines": "one\ntwo\r\nthree\n\nfive", "html": "<a href='x'>\"A&B\"</a>", "csv": "a,b,,c", "empty": "",
    "xs": [3, 1, 2, 3], "floats": [1.0, 0.5, 100.0, 1e100], "words": ["pear", "Apple", "fig", "apple"], "nested": [[1, 2], [3, [4, None]]],
    "d": {"b": 1, "a": "x", "C": [1, {"k": None}], "items_": 3}, "method_keys": {"items": 1, "get": 2, "keys": 3, "other": 4},
    "users": [{"name": "Bo", "age": 30, "city": {"name": "Oslo"}, "active": True}, {"name": "al", "age": 25, "city": {"name": "Bonn"}, "active": False},
              {"name": "Cy", "age": 30, "city": {"name": "oslo"}}],
    "mixed": [1, "a", None, True, 2.5, [1], {"k": "v"}], "quotes": ["it's", 'say "hi"', "both ' and \"", "back\\slash", "\x00\x1f\x7f\x85\u00a0\u200b\ufeff😀"],
}
