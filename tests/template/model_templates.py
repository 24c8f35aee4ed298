"""Chat templates in the manner of known model families, written for this test; the last is the default model's own."""

HEADERS_AND_TOOLS = r'''{{- bos_token }}
{%- if custom_tools is defined %}
    {%- set tools = custom_tools %}
{%- endif %}
{%- if not tools is defined %}
    {%- set tools = none %}
{%- endif %}
{%- if not date_string is defined %}
    {%- set date_string = strftime_now("%Y")[:2] ~ "xx" %}
{%- endif %}
{%- if messages and messages[0]['role'] == 'system' %}
    {%- set system_text = messages[0]['content']|trim if messages[0]['content'] is string else messages[0]['content'][0]['text'] %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_text = "" %}
{%- endif %}
{{- "<|head|>system<|/head|>\n\n" }}
{%- if tools is not none %}
    {{- "Environment: tools\n" }}
{%- endif %}
{{- "Date: " + date_string + "\n\n" }}
{%- if tools is not none %}
    {%- for t in tools %}
        {{- t | tojson(indent=4) }}
        {{- "\n\n" }}
    {%- endfor %}
{%- endif %}
{{- system_text }}
{{- "<|end|>" }}
{%- for message in messages %}
    {%- if not (message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|head|>' + message['role'] + '<|/head|>\n\n' }}
        {%- if message.content is string %}
            {{- message['content'] | trim }}
        {%- else %}
            {%- for part in message.content if part.type == 'text' %}
                {{- part.text|trim }}{{ "" if loop.last else " " }}
            {%- endfor %}
        {%- endif %}
        {{- '<|end|>' }}
    {%- elif 'tool_calls' in message %}
        {%- if not message.tool_calls|length == 1 %}
            {{- raise_exception("This model takes one tool call at a time!") }}
        {%- endif %}
        {%- set call = message.tool_calls[0].function %}
        {{- '<|head|>assistant<|/head|>\n\n{"name": "' + call.name + '", "parameters": ' }}
        {{- call.arguments | tojson }}{{ "}" }}<|end|>
    {%- elif message.role == "tool" %}
        {{- "<|head|>tool<|/head|>\n\n" }}
        {%- if message.content is mapping or message.content is iterable %}
            {{- message.content | tojson }}
        {%- else %}
            {{- message.content }}
        {%- endif %}
        {{- "<|end|>" }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|head|>assistant<|/head|>\n\n' }}
{%- endif %}
'''

INSTRUCTION_BRACKETS = r'''{% if messages and messages[0]['role'] == 'system' %}{% set rest = messages[1:] %}{% set system = messages[0]['content'] %}{% else %}{% set rest = messages %}{% set system = false %}{% endif %}{% for message in rest %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Roles must alternate: user, assistant, user, ...') }}{% endif %}{% if loop.index0 == 0 and system != false %}{% set content = '<<S>>\n' ~ system ~ '\n<</S>>\n\n' ~ message['content'] %}{% else %}{% set content = message['content'] %}{% endif %}{% if message['role'] == 'user' %}{{ bos_token ~ '[I] ' ~ content|string|trim ~ ' [/I]' }}{% elif message['role'] == 'assistant' %}{{ ' ' ~ content|string|trim ~ ' ' ~ eos_token }}{% endif %}{% endfor %}'''

THINKING = r'''{%- if tools %}
    {{- '<|begin|>system\n' }}
    {%- if messages[0].role == 'system' %}
        {{- messages[0].content + '\n\n' }}
    {%- endif %}
    {{- "# Tools\n<tools>" }}
    {%- for tool in tools %}
        {{- "\n" }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- "\n</tools><|stop|>\n" }}
{%- else %}
    {%- if messages and messages[0].role == 'system' %}
        {{- '<|begin|>system\n' + messages[0].content + '<|stop|>\n' }}
    {%- endif %}
{%- endif %}
{%- set ns = namespace(multi_step=true, last_query=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.multi_step and message.role == "user" and message.content is string and not(message.content.startswith('<reply>') and message.content.endswith('</reply>')) %}
        {%- set ns.multi_step = false %}
        {%- set ns.last_query = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.content is string %}
        {%- set content = message.content %}
    {%- else %}
        {%- set content = '' %}
    {%- endif %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) %}
        {{- '<|begin|>' + message.role + '\n' + content + '<|stop|>' + '\n' }}
    {%- elif message.role == "assistant" %}
        {%- set thought = '' %}
        {%- if message.thought is string %}
            {%- set thought = message.thought %}
        {%- else %}
            {%- if '</think>' in content %}
                {%- set thought = content.split('</think>')[0].rstrip('\n').split('<think>')[-1].lstrip('\n') %}
                {%- set content = content.split('</think>')[-1].lstrip('\n') %}
            {%- endif %}
        {%- endif %}
        {%- if loop.index0 > ns.last_query and (loop.last or thought) %}
            {{- '<|begin|>' + message.role + '\n<think>\n' + thought.strip('\n') + '\n</think>\n\n' + content.lstrip('\n') }}
        {%- else %}
            {{- '<|begin|>' + message.role + '\n' + content }}
        {%- endif %}
        {%- if message.tool_calls %}
            {%- for call in message.tool_calls %}
                {%- if (loop.first and content) or (not loop.first) %}
                    {{- '\n' }}
                {%- endif %}
                {%- if call.function %}
                    {%- set call = call.function %}
                {%- endif %}
                {{- '<call>\n{"name": "' ~ call.name ~ '", "arguments": ' }}
                {%- if call.arguments is string %}
                    {{- call.arguments }}
                {%- else %}
                    {{- call.arguments | tojson }}
                {%- endif %}
                {{- '}\n</call>' }}
            {%- endfor %}
        {%- endif %}
        {{- '<|stop|>\n' }}
    {%- elif message.role == "tool" %}
        {%- if loop.first or (messages[loop.index0 - 1].role != "tool") %}
            {{- '<|begin|>user' }}
        {%- endif %}
        {{- '\n<reply>\n' + content + '\n</reply>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}
            {{- '<|stop|>\n' }}
        {%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|begin|>assistant\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\n\n</think>\n\n' }}
    {%- endif %}
{%- endif %}'''

TYPE_MACROS = r'''{%- macro type_of(spec, required, depth=0) -%}
    {%- if spec.type == "array" -%}
        {{- type_of(spec['items'], required, depth + 1) if spec['items'] else "any" }}{{ "[]" -}}
    {%- elif spec.type == "object" -%}
        {{- "{" }}
        {%- for name, inner in spec.get('properties', {}).items() %}
            {{- "\n" ~ "  " * (depth + 1) }}
            {%- if inner.description %}{{ "// " + inner.description + "\n" + "  " * (depth + 1) }}{% endif %}
            {{- name }}{% if name not in spec.get('required', []) %}?{% endif %}: {{ type_of(inner, spec.required or [], depth + 1) }}
            {%- if inner.default is defined %} /* = {{ inner.default|tojson }} */{% endif %},
        {%- endfor %}
        {{- "\n" ~ "  " * depth ~ "}" }}
    {%- elif spec.enum is defined and spec.enum -%}
        {{- '"' + spec.enum|join('" | "') + '"' }}
    {%- elif spec.type in ["integer", "number"] -%}
        number
    {%- else -%}
        {{- spec.type or "any" -}}
    {%- endif -%}
{%- endmacro -%}
{%- macro render_message(message, is_last) -%}
<|{{ message.role }}|>{{ caller(message) }}{{ "" if is_last else eos_token }}
{%- endmacro -%}
{%- set system = messages | selectattr('role', 'equalto', 'system') | map(attribute='content') | list -%}
{%- if system %}{{ system | first }}{% endif %}
{%- if tools %}
namespace functions {
{%- for tool in tools | sort(attribute='function.name') %}
type {{ tool.function.name }} = (_: {{ type_of(tool.function.parameters, []) }}) => any;
{%- endfor %}
}
{%- endif %}
{%- for message in messages | rejectattr('role', 'in', ['system', 'tool']) %}
{%- call(m) render_message(message, loop.last) %}
{%- if m.content is string %}{{ m.content }}{% elif m.content is none %}{{ m.tool_calls | map(attribute='function.name') | join('+') }}{% else %}{{ m.content | selectattr('type', 'eq', 'text') | map(attribute='text') | map('trim') | join(' / ') }}{% endif %}
{%- endcall %}
{%- endfor %}
{%- set used = messages | selectattr('tool_calls', 'defined') | list | length %}
{%- if used %}{{ "\ncalls: %d" | format(used) }}{% endif %}
{{- "\n<|assistant|>" if add_generation_prompt else "" }}'''

GENERATION_MARKS = r'''{% for message in messages %}{% if message['role'] == 'assistant' %}<a>{% generation %}{{ message['content'] }}</a>{% endgeneration %}{% else %}<{{ message['role'][0] }}>{{ message['content'] }}</{{ message['role'][0] }}>{% endif %}
{% endfor %}{% if add_generation_prompt %}<a>{% endif %}'''

STRICT_ROLES = r'''{%- set roles = namespace(last=none, count={}) -%}
{%- for message in messages -%}
    {%- if message.role not in ['system', 'user', 'assistant', 'tool'] -%}
        {{ raise_exception('Unknown role "' ~ message.role ~ '" in message ' ~ loop.index) }}
    {%- elif message.role == roles.last and message.role != 'tool' -%}
        {{ raise_exception("Two messages of role '%s' follow each other" % message.role) }}
    {%- endif -%}
    {%- set roles.last = message.role -%}
    {%- set roles.count = dict(roles.count, **{message.role: roles.count.get(message.role, 0) + 1}) -%}
    {{ loop.index }}/{{ loop.length }} {{ '%-10s' % message.role }}|{{ (message.content or '(nothing)')|string|truncate(12, true, '…', 0) }}
{% endfor -%}
{{ roles.count|dictsort }} {{ roles.count.values()|sum }}'''

DEFAULT_MODEL = r"""{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n' }}{% endif %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"""

TEMPLATES = {
    "headers and tools": HEADERS_AND_TOOLS,
    "instruction brackets": INSTRUCTION_BRACKETS,
    "thinking": THINKING,
    "type macros": TYPE_MACROS,
    "generation marks": GENERATION_MARKS,
    "strict roles": STRICT_ROLES,
    "default model": DEFAULT_MODEL,
}
