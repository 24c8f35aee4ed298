"""The environment in which transformers renders chat templates, built on Python's jinja2."""
import datetime
import json

import jinja2
import jinja2.ext
import jinja2.sandbox


class GenerationTag(jinja2.ext.Extension):
    """{% generation %} marks what an assistant wrote; for the text it is as if the tag were not there."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        call = self.call_method("_render_body")
        return jinja2.nodes.CallBlock(call, [], [], body).set_lineno(line)

    def _render_body(self, caller):
        return caller()


def _tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def _strftime_now(text):
    return datetime.datetime.now().strftime(text)


def environment():
    env = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[GenerationTag, jinja2.ext.loopcontrols])
    env.filters["tojson"] = _tojson
    env.globals["raise_exception"] = _raise_exception
    env.globals["strftime_now"] = _strftime_now
    return env


def variables(request):
    """What apply_chat_template passes for a request."""
    values = {"messages": request["messages"], "tools": None, "documents": None, "add_generation_prompt": True}
    for name in ("tools", "documents", "add_generation_prompt", "bos_token", "eos_token"):
        if name in request:
            values[name] = request[name]
    values.update(request.get("chat_template_kwargs") or {})
    return values


def render(source, requests):
    """One ("text", prompt) or ("error", message) a request; ("load", message) for all when it does not compile."""
    try:
        template = environment().from_string(source)
    except Exception as error:  # whatever stops Python stops us too
        return [("load", f"{type(error).__name__}: {error}")] * len(requests)
    answers = []
    for request in requests:
        try:
            answers.append(("text", template.render(**variables(request))))
        except Exception as error:
            raised = type(error) is jinja2.exceptions.TemplateError
            answers.append(("raised" if raised else "error", str(error)))
    return answers
