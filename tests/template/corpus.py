"""Templates in small: one feature each, rendered with chats.DATA. A line is a template where it is short."""

ONE_LINERS = r'''
plain text
{{ n }}|{{ pi }}|{{ big }}|{{ tiny }}|{{ half }}|{{ yes }}|{{ nothing }}|{{ text }}
{{ xs }}{{ floats }}{{ words }}{{ nested }}{{ d }}{{ mixed }}
{{ quotes }}
{{ quotes|join("/") }}
{{ uni }}{{ [uni] }}
{{ (1,) }}{{ (1, 2) }}{{ () }}{{ {} }}{{ [] }}{{ {1: 2, none: 3, true: 4, 2.5: [], (1, 2): 'x'} }}
{{ 1 + 2 }} {{ 1 - 2 }} {{ 2 * 3 }} {{ 7 / 2 }} {{ 6 / 2 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ 7 % 3 }} {{ -7 % 3 }} {{ 7 % -3 }} {{ 2 ** 10 }} {{ 2 ** -1 }}
{{ 7.5 // 2 }} {{ -7.5 // 2 }} {{ 7.5 % 2 }} {{ -7.5 % 2 }} {{ 7.5 % -2 }} {{ 0.1 + 0.2 }} {{ 1e3 }} {{ 1.0 }} {{ 5e-324 }} {{ 1.7976931348623157e308 }} {{ 2 ** 0.5 }}
{{ 1_000 + 0x1F + 0b101 + 0o17 }} {{ 1_0.5_0 }} {{ 1E2 }} {{ 00 }}
{{ -n ** 2 }} {{ (-n) ** 2 }} {{ 2 ** 3 ** 2 }} {{ - -n }} {{ +n }} {{ -yes }} {{ not n }} {{ not not n }}
{{ 2 * 'ab' }}{{ 'ab' * 3 }}{{ 'x' * -1 }}|{{ [1] * 2 }}{{ (1, 2) * 2 }}{{ 2 * [0] }}
{{ xs + [9] }}{{ (1,) + (2,) }}{{ 'a' + 'b' }}{{ yes + 1 }}{{ yes + yes }}
{{ 'a' ~ 1 ~ none ~ 2.0 ~ [1] ~ undefined_thing ~ true }}
{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 1 == 1.0 == true }} {{ 'a' < 'b' }} {{ [1, 2] < [1, 3] }} {{ (1, 2) >= (1,) }} {{ 'é' > 'z' }}
{{ 1 == '1' }} {{ none == false }} {{ [] == () }} {{ {'a': 1} == {'a': 1.0} }} {{ undefined_a == undefined_b }} {{ undefined_a == none }} {{ 0 == false }}
{{ 3 in xs }} {{ 9 not in xs }} {{ 'quick' in text }} {{ 'b' in d }} {{ 'z' in d }} {{ 1 in 'x'|list }} {{ '' in '' }} {{ 2 in range(3) }} {{ 'a' in undefined_x }}
{{ n and text }} {{ zero and text }} {{ zero or text }} {{ '' or none or 0 }} {{ n or boom() }} {{ not '' and 'z' }}
{{ 'a' if yes else 'b' }} {{ 'a' if no else 'b' }} {{ 'a' if no }}| {{ 1 if no else 2 if no else 3 }} {{ (1 if yes) + 1 }}
{{ text[0] }}{{ text[-1] }}{{ text[4:9] }}{{ text[::-1] }}{{ text[::2] }}{{ text[-3:] }}{{ text[:-16] }}{{ text[100:] }}{{ text[5:2] }}{{ text[10:2:-3] }}
{{ uni[0:4] }} {{ uni[-2:] }} {{ uni[::-1] }} {{ uni[4] }} {{ uni|length }} {{ uni[::3] }}
{{ xs[0] }}{{ xs[-1] }}{{ xs[1:] }}{{ xs[::-1] }}{{ xs[:-1] }}{{ xs[-100:100] }}{{ xs[9] }}{{ xs[::2] }}{{ (1, 2, 3)[1:] }}{{ xs[none:2] }}{{ xs[true] }}
{{ range(5)[1:4] }} {{ range(10)[::3] }} {{ range(5) }} {{ range(1, 9, 2) }} {{ range(5, 0, -2)|list }} {{ range(3)[-1] }} {{ range(0)|list }} {{ range(5)|length }} {{ range(2, 5)[::-1]|list }}
{{ d.b }}{{ d['a'] }}{{ d.C[1].k }}{{ d.missing }}|{{ d['missing'] }}|{{ d.get('b') }}{{ d.get('zz') }}{{ d.get('zz', 5) }}
{{ d.items() }} {{ d.keys() }} {{ d.values() }} {{ d.items()|list }} {{ d|list }} {{ d.keys()|list|join }} {{ d.copy() == d }}
{{ method_keys.items() }} {{ method_keys['items'] }} {{ method_keys.other }} {{ method_keys.get('get') }} {{ method_keys['nope'] }}
{{ users[0].name }} {{ users.0.name }} {{ users[-1]['city']['name'] }} {{ nested.1.1.0 }}
{{ nested[0][1] }} {{ 'abc'.1 }} {{ d.b.real is defined }} {{ n.foo }}|{{ n.foo is defined }}
{{ undefined_x }}|{{ undefined_x is defined }}|{{ undefined_x|default('dflt') }}|{{ none|default('d') }}|{{ none|default('d', true) }}|{{ ''|d('e', boolean=true) }}|{{ undefined_x|d }}
{{ undefined_x|length }} {{ undefined_x|list }} {{ undefined_x|join }} {{ undefined_x|upper }} {{ undefined_x|string }} {{ undefined_x|first }} {{ undefined_x|items|list }} {{ undefined_x|map('upper')|list }}
{% for a in undefined_x %}never{% else %}else{% endfor %}
{{ undefined_x.attr }}
{{ undefined_x + 1 }}
{{ 'a' + undefined_x }}
{{ undefined_x < 1 }}
{{ undefined_x() }}
{{ undefined_x[0] }}
{{ d.missing.deeper }}
{{ none.foo }}|{{ none.foo is defined }}
{{ none.foo.bar }}
{{ 'a' + 1 }}
{{ 1 + 'a' }}
{{ none + 1 }}
{{ [1] + (1,) }}
{{ 1 < 'a' }}
{{ none < 1 }}
{{ 1 in 2 }}
{{ 1 in 'abc' }}
{{ 1 / 0 }}
{{ 1 % 0 }}
{{ 1.0 // 0 }}
{{ 0 ** -1 }}
{{ n() }}
{{ text.nope() }}
{{ xs|nope }}
{{ xs is nope }}
{% if no %}{{ xs|nope }}{% endif %}fine
{% if yes %}{{ xs|nope }}{% endif %}
{{ xs.append(1) }}
{{ d.update({}) }}
{{ xs.append }}|{{ xs.append is defined }}|{{ d.pop is defined }}
{{ d.pop('b') }}
{{ text.__class__ }}|{{ text.__class__ is defined }}
{{ text.__class__.__mro__ }}
{{ raise_exception('Stop here: ' ~ n) }}
{% if no %}{{ raise_exception('never') }}{% endif %}ok
{{ range(200000) }}
{{ range(1, 2, 0) }}
{{ xs[::0] }}
{{ xs['a':] }}
{{ nothing[1:] }}
{{ {[1]: 2} }}
{{ d[[1]] }}|{{ xs['x'] }}|{{ n[0] }}|{{ text['upper']() }}
{{ text|upper }} {{ text|lower }} {{ text|title }} {{ text|capitalize }} {{ uni|upper }} {{ uni|lower }} {{ uni|title }} {{ uni|capitalize }}
{{ "o'neil (the-first) [x]{y}<z> éa_b 3d"|title }} {{ "o'neil (the-first) [x]{y}<z> éa_b 3d".title() }}
{{ spaced|trim }}|{{ spaced.strip() }}|{{ spaced.lstrip() }}|{{ spaced.rstrip() }}|{{ 'xxaxx'.strip('x') }}|{{ 'xyaxy'|trim('xy') }}|{{ 'xyaxy'.rstrip('yx') }}|{{ ' a '.strip(none) }}
{{ '\u00a0\u2003\x1f a \u3000\x85'|trim }}|{{ '\u200b a'|trim|length }}
{{ text|replace('q', 'Q') }}{{ text|replace('o', '0', 1) }}{{ text.replace(' ', '') }}{{ text.replace('', '-') }}{{ text.replace('o', 'x', 1) }}{{ text|replace('', '-', 3) }}{{ 'aaa'.replace('aa', 'b') }}{{ n|replace(7, 'seven') }}
{{ xs|length }}{{ text|count }}{{ d|length }}{{ d.items()|length }}{{ empty|length }}
{{ n|length }}
{{ none|length }}
{{ xs|first }}{{ xs|last }}{{ text|first }}{{ text|last }}{{ []|first }}|{{ []|last }}|{{ d|first }}{{ d|last }}{{ range(4)|last }}
{{ xs|join(', ') }} {{ words|join }} {{ users|join('/', attribute='name') }} {{ xs|join(none) }} {{ mixed|join('+') }} {{ 'abc'|join('-') }} {{ d|join(',') }} {{ xs|join(d=1) }}
{{ xs|sort }}{{ xs|sort(reverse=true) }}{{ words|sort }}{{ words|sort(case_sensitive=true) }}{{ users|sort(attribute='age,name')|map(attribute='name')|list }}{{ users|sort(attribute='city.name', reverse=true)|map(attribute='name')|list }}{{ floats|sort }}{{ d|sort }}
{{ mixed|sort }}
{{ xs|unique|list }}{{ words|unique|list }}{{ words|unique(true)|list }}{{ users|unique(attribute='age')|map(attribute='name')|list }}{{ [1, 1.0, true]|unique|list }}
{{ xs|reverse|list }}{{ text|reverse }}{{ (1, 2)|reverse|list }}{{ d|reverse|list }}{{ uni|reverse }}
{{ xs|min }}{{ xs|max }}{{ words|min }}{{ words|max }}{{ words|max(case_sensitive=true) }}{{ users|max(attribute='age') }}{{ []|min }}|{{ floats|max }}
{{ xs|sum }}{{ floats|sum }}{{ users|sum(attribute='age') }}{{ xs|sum(start=10) }}{{ nested|sum(start=[]) }}{{ []|sum }}
{{ words|sum }}
{{ xs|map('string')|list }}{{ words|map('upper')|list }}{{ users|map(attribute='city.name')|list }}{{ users|map(attribute='active')|list }}{{ users|map(attribute='active', default='?')|list }}{{ words|map('replace', 'p', 'P')|join }}{{ words|map('length')|sum }}{{ nested|map('first')|list }}
{{ xs|map|list }}
{{ xs|map('nope')|list }}
{{ []|map('nope')|list }}
{{ xs|select('odd')|list }}{{ xs|select('>', 1)|list }}{{ xs|reject('even')|list }}{{ mixed|select|list }}{{ mixed|reject('string')|list }}{{ xs|select('in', [1, 2])|list }}{{ mixed|select('number')|list }}{{ xs|select('divisibleby', 3)|list }}
{{ users|selectattr('active')|list|length }}{{ users|selectattr('active', 'defined')|map(attribute='name')|list }}{{ users|rejectattr('age', 'eq', 30)|map(attribute='name')|list }}{{ users|selectattr('city.name', 'equalto', 'Oslo')|list }}{{ users|selectattr('age', '>', 26)|list|length }}{{ users|rejectattr('active', 'undefined')|list|count }}
{% set g = xs|map('string') %}{{ g|list }}{{ g|list }}{% if xs|select('none') %}truthy{% endif %}
{% set g = xs|select('odd') %}{{ 1 in g }}{{ g|list }}{{ g is iterable }}{{ g is sequence }}{{ g is mapping }}
{{ (xs|map('string'))|length }}
{{ (xs|map('string'))[0] }}|{{ xs|map('string')|first }}
{{ (xs|map('string'))|last }}
{{ users|groupby('age')|map('first')|list }}{% for g in users|groupby('city.name') %}{{ g.grouper }}:{{ g.list|length }}:{{ g[0] }};{% endfor %}{% for k, v in users|groupby('active', default=false) %}{{ k }}={{ v|map(attribute='name')|join(',') }} {% endfor %}{{ [{'a': 1}]|groupby('a') }}
{{ xs|batch(2)|list }}{{ xs|batch(3, 0)|list }}{{ xs|slice(3)|list }}{{ xs|slice(3, 'f')|list }}{{ []|batch(2)|list }}
{{ d|dictsort }}{{ d|dictsort(true) }}{{ {'x': 3, 'y': 1}|dictsort(by='value') }}{{ d|dictsort(reverse=true) }}
{{ d|items|list }}{% for k, v in d|items %}{{ k }}={{ v }};{% endfor %}
{{ xs|items }}{{ xs|items|list }}
{{ d|tojson }}{{ mixed|tojson }}{{ quotes|tojson }}{{ floats|tojson }}{{ uni|tojson }}{{ html|tojson }}{{ none|tojson }}{{ (1, 2)|tojson }}{{ n|tojson }}{{ big|tojson }}
{{ d|tojson(indent=2) }}{{ []|tojson(indent=2) }}{{ {}|tojson(indent=2) }}{{ nested|tojson(indent=4) }}{{ xs|tojson(indent='--') }}{{ xs|tojson(indent=0) }}
{{ d|tojson(ensure_ascii=true) }}{{ uni|tojson(true) }}{{ d|tojson(separators=(',', ':')) }}{{ {'b': 1, 'a': 2}|tojson(sort_keys=true) }}{{ {1: 2, none: 3, true: 4, 2.5: 5}|tojson }}{{ d|tojson(indent=1, separators=(';', '=')) }}
{{ undefined_x|tojson }}
{{ range(3)|tojson }}
{{ d.items()|tojson }}
{{ '42'|int }}{{ '42.9'|int }}{{ 'x'|int }}{{ 'x'|int(5) }}{{ '0x1f'|int(base=16) }}{{ '1f'|int(0, 16) }}{{ 3.99|int }}{{ -3.99|int }}{{ true|int }}{{ none|int }}{{ ' 12 '|int }}{{ '1_000'|int }}{{ [1]|int }}{{ '0b11'|int(base=0) }}{{ '1e3'|int }}
{{ '4.5'|float }}{{ 'x'|float }}{{ 'x'|float(1.5) }}{{ 3|float }}{{ '1e3'|float }}{{ 'inf'|float }}{{ '-nan'|float }}{{ none|float }}{{ ' 1_0.5 '|float }}{{ '.5'|float }}
{{ -5|abs }}{{ -2.5|abs }}{{ true|abs }}{{ 'x'|string }}{{ 5|string + 'x' }}{{ [1]|string }}
{{ 'x'|abs }}
{{ 2.5|round }}{{ 3.5|round }}{{ 2.675|round(2) }}{{ 42.55|round(1, 'floor') }}{{ 42.51|round(1, 'ceil') }}{{ 42|round }}{{ 1234|round(-2) }}{{ 1250|round(-2) }}{{ 1234.5|round(-2) }}{{ 2.5|round(0, 'ceil') }}{{ -2.5|round }}{{ 5|round(1, 'floor') }}{{ 0.5|round|int }}
{{ text|truncate(9) }}|{{ text|truncate(9, true) }}|{{ text|truncate(14) }}|{{ text|truncate(10, false, '..') }}|{{ text|truncate(9, leeway=0) }}|{{ uni|truncate(8, true, '…', 0) }}
{{ lines|indent }}|{{ lines|indent(2, true) }}|{{ lines|indent(2, blank=true) }}|{{ lines|indent('> ') }}|{{ ''|indent(2, true) }}|{{ 'a'|indent(first=true) }}
{{ text|wordcount }}{{ uni|wordcount }} {{ 'x'|center(9) }}| {{ 'xy'|center(9) }}|{{ 'xy'|center(1) }}
{{ html|e }}{{ html|escape|e }}{{ html|safe }}{{ html|e ~ '<' }}{{ (html|e) + '<' }}{{ '<' + ('&'|safe) }}{{ html|forceescape }}{{ n|e }}{{ (html|e)|length }}{{ 'a'|safe is escaped }}{{ ['<'|e] }}
{{ text|urlencode }}{{ uni|urlencode }}{{ {'a b': 'c/d', 'e': 1}|urlencode }}{{ [('x', 'y z')]|urlencode }}{{ '/a?b=c&d'|urlencode }}
{{ '%s and %r and %5d|%-5d|%05d|%+d|%x|%X|%o|%c|%%'|format('a', 'b', 42, 42, 42, 42, 255, 255, 8, 'z') }}
{{ '%.2f %8.3f %-8.1f| %e %g %G %05.1f %i'|format(3.14159, 2.5, 2.5, 12345.678, 0.0001, 1e20, 3.14159, 7.9) }}
{{ '%(a)s-%(b)03d' % {'a': 'x', 'b': 7} }} {{ '%s' % 'one' }} {{ '%s %s' % (1, [2]) }} {{ '%s' % [1, 2] }} {{ '%10s|%-10s|%.2s' % ('r', 'l', 'cut') }} {{ '%*d' % (5, 42) }}
{{ '%s %s' % 'one' }}
{{ '%d' % 'x' }}
{{ '%s' % (1, 2) }}
{{ '%q' % 1 }}
{{ '{} {}'.format(1, 'b') }} {{ '{1} {0} {x}'.format('a', 'b', x=3) }} {{ '{:>8}|{:<8}|{:^8}|{:*^9}'.format('r', 'l', 'c', 'm') }} {{ '{0.name} {0[age]} {1[0]}'.format(users[0], xs) }} {{ '{{}} {!r:>6}'.format('q') }}
{{ '{:d} {:5d} {:05d} {:+d} {:,} {:x} {:#x} {:b} {:o} {:c}'.format(42, 42, 42, 42, 1234567, 255, 255, 5, 8, 65) }} {{ '{:.2f} {:10.3f} {:e} {:g} {:%} {:.1%} {:,.2f} {} {:.3}'.format(3.14159, 2.5, 12345.678, 0.0001, 0.25, 0.256, 1234567.891, 2.0, 2.0) }} {{ '{:{w}}|'.format('x', w=5) }} {{ '{:^7d}|{:=+7d}|{:_}|{:010.2f}'.format(42, 42, 1234567, -3.14159) }}
{{ '{}'.format() }}
{{ '{a}'.format(b=1) }}
{{ '{'.format(1) }}
{{ '{:d}'.format('x') }}
{{ text.split() }}{{ csv.split(',') }}{{ csv.split(',', 1) }}{{ csv.rsplit(',', 1) }}{{ text.split(none, 1) }}{{ text.rsplit(none, 2) }}{{ '  a  b '.split() }}{{ ''.split() }}{{ ''.split(',') }}{{ text.split('quick')[1] }}{{ text.split(sep=' ', maxsplit=2) }}{{ 'a--b'.split('-') }}{{ ' a b '.split(' ') }}
{{ text.split('') }}
{{ lines.splitlines() }}{{ lines.splitlines(true) }}{{ 'a\x0bb\x0cc\u2028d\x85e'.splitlines() }}{{ ''.splitlines() }}
{{ text.startswith('The') }}{{ text.startswith(('x', 'The')) }}{{ text.endswith('fox') }}{{ text.endswith(('x',)) }}{{ text.startswith('quick', 4) }}{{ text.endswith('quick', 0, 9) }}{{ text.startswith('') }}
{{ text.startswith(1) }}
{{ text.find('q') }}{{ text.find('zz') }}{{ text.rfind('o') }}{{ text.index('q') }}{{ text.count('o') }}{{ text.find('o', 13) }}{{ uni.find('ß') }}{{ uni.index('日') }}{{ text.count('') }}{{ text.find('', 100) }}{{ text.rfind('') }}{{ 'aaaa'.count('aa') }}
{{ text.index('zz') }}
{{ '-'.join(words) }}{{ ''.join(['a', 'b']) }}{{ ', '.join(d) }}{{ 'x'.join('abc') }}
{{ '-'.join(xs) }}
{{ '12'.isdigit() }}{{ 'a1'.isalnum() }}{{ 'ab'.isalpha() }}{{ ' \t'.isspace() }}{{ 'AB'.isupper() }}{{ 'ab1'.islower() }}{{ 'Ab Cd'.istitle() }}{{ ''.isdigit() }}{{ '²'.isdigit() }}{{ '½'.isnumeric() }}{{ 'é'.isalpha() }}{{ '日本'.isalpha() }}{{ '٣'.isdecimal() }}{{ 'abc'.isascii() }}{{ 'a b'.isidentifier() }}{{ 'x\n'.isprintable() }}{{ 'ª'.islower() }}{{ 'ⅷ'.islower() }}
{{ 'prefix-x'.removeprefix('prefix-') }}{{ 'x.txt'.removesuffix('.txt') }}{{ 'abc'.removeprefix('z') }}{{ '7'.zfill(3) }}{{ '-7'.zfill(4) }}{{ 'a'.ljust(4, '.') }}{{ 'a'.rjust(4) }}{{ 'ab'.center(5, '*') }}{{ 'a\tb'.expandtabs(4) }}{{ 'aB'.swapcase() }}{{ 'k=v=w'.partition('=') }}{{ 'k=v=w'.rpartition('=') }}{{ 'kv'.partition('=') }}{{ 'kv'.rpartition('=') }}
{{ xs.index(2) }}{{ xs.count(3) }}{{ (1, 2).index(2) }}{{ xs.copy() }}
{{ xs.index(99) }}
{{ 1 is number }}{{ true is number }}{{ 1 is integer }}{{ true is integer }}{{ 1.0 is float }}{{ 'a' is string }}{{ d is mapping }}{{ xs is sequence }}{{ 'a' is sequence }}{{ d is sequence }}{{ 1 is sequence }}{{ xs is iterable }}{{ 1 is iterable }}{{ none is none }}{{ true is boolean }}{{ 1 is boolean }}{{ true is true }}{{ 1 is true }}{{ false is false }}{{ range is callable }}{{ n is callable }}{{ text.upper is callable }}
{{ 3 is odd }}{{ 3 is even }}{{ 9 is divisibleby 3 }}{{ 9 is divisibleby(2) }}{{ 'ab' is lower }}{{ 'AB' is upper }}{{ n is sameas n }}{{ none is sameas none }}{{ 1 is eq 1 }}{{ 1 is ne 1 }}{{ 1 is lt 2 }}{{ 1 is ge 2 }}{{ 1 is in [1] }}{{ 2 is not in [1] }}{{ 'upper' is filter }}{{ 'nope' is filter }}{{ 'odd' is test }}{{ 1 is not none }}{{ undefined_x is sequence }}{{ undefined_x is iterable }}{{ undefined_x is mapping }}{{ undefined_x is string }}{{ undefined_x is not defined and true }}
{{ d.items() is sequence }}{{ range(3) is sequence }}{{ d.keys() is iterable }}{{ (1,) is sequence }}{{ none is iterable }}{{ undefined_x is none }}
{{ 1 is string is defined }}
{{ dict(a=1, b=[2]) }}{{ dict([('x', 1)], y=2) }}{{ dict(d) == d }}{{ dict() }}{{ dict(d, b=9).b }}
{{ namespace(a=1) }}{% set ns = namespace(a=1, b='x') %}{{ ns.a }}{{ ns['b'] }}{{ ns.c is defined }}{{ ns.c }}|{% set ns.c = 3 %}{{ ns.c }}{{ ns }}{% set ns2 = namespace({'k': 1}) %}{{ ns2.k }}
{% set n.x = 1 %}
{% set c = cycler('a', 'b', 'c') %}{{ c.next() }}{{ c.next() }}{{ c.current }}{{ c.next() }}{{ c.next() }}{{ c.reset() }}{{ c.current }}
{% set j = joiner() %}{% for x in xs %}{{ j() }}{{ x }}{% endfor %}{% set k = joiner('|') %}{{ k() }}a{{ k() }}b
{{ strftime_now('%Y')|length }}{{ strftime_now('%Y-%m-%d')|length }}{{ strftime_now('%d %b %Y') == strftime_now('%d ' ~ '%b %Y') }}{{ strftime_now('') }}
{% for x in xs %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.depth }}{{ loop.depth0 }};{% endfor %}
{% for x in xs %}{{ loop.previtem }},{{ loop.nextitem }},{{ loop.cycle('a', 'b') }},{{ loop.changed(x) }}{{ loop.previtem is defined }};{% endfor %}
{% for x in xs if x > 1 %}{{ x }}{{ loop.index }}{{ loop.last }}{{ loop.length }} {% else %}none{% endfor %}{% for x in xs if x > 9 %}{{ x }}{% else %}none{% endfor %}
{% for k, v in d.items() %}{{ k }}={{ v }},{% endfor %}{% for k in d %}{{ k }}{% endfor %}{% for c in 'héy' %}[{{ c }}]{% endfor %}{% for a, b in [(1, 2), [3, 4]] %}{{ a + b }}{% endfor %}{% for (a, b), c in [((1, 2), 3)] %}{{ a }}{{ b }}{{ c }}{% endfor %}
{% for a, b in [(1, 2, 3)] %}{{ a }}{% endfor %}
{% for a, b in [(1,)] %}{{ a }}{% endfor %}
{% for a in 5 %}{{ a }}{% endfor %}
{% for x in range(10) %}{% if x == 2 %}{% continue %}{% endif %}{% if x == 5 %}{% break %}{% endif %}{{ x }}{% else %}else{% endfor %}
{% for x in [1] %}{% continue %}{% else %}else ran{% endfor %}{% for x in [1, 2] %}{% if x == 2 %}{% break %}{% endif %}{% else %}no{% endfor %}
{% for x in xs %}{% for y in 'ab' %}{{ loop.index }}{{ y }}{% if y == 'a' %}{% continue %}{% endif %}{{ x }}{% endfor %}{{ loop.index }}|{% endfor %}
{% for x in xs %}{% set outer = loop %}{% for y in [1, 2] %}{{ outer.index }}.{{ loop.index }} {% endfor %}{% endfor %}
{% for item in [[1, [2, [3]]], [4]] recursive %}{{ loop.depth }}{% if item is iterable %}({{ loop(item) }}){% else %}{{ item }}{% endif %}{% endfor %}
{% for x in [1] %}{{ loop([2]) }}{% endfor %}
{% break %}
{% for x in xs %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}
{% set x = 1 %}{% for i in [1, 2] %}{{ x }}{% set x = x + i %}{{ x }};{% endfor %}{{ x }}
{% for i in [1, 2] %}{{ y is defined }}{% set y = i %}{{ y }}{% endfor %}{{ y is defined }}
{% if yes %}{% set q = 5 %}{% endif %}{{ q }}{% if no %}{% set r = 5 %}{% endif %}{{ r is defined }}
{% if no %}{% set text = 'changed' %}{% endif %}{{ text }}{% for i in [1] %}{{ text }}{% if yes %}{% set text = 'inner' %}{% endif %}{{ text }}{% endfor %}{{ text }}
{% for i in [1] %}{{ text }}{% endfor %}{% set text = 'later' %}{{ text }}
{{ text }}{% for i in [1] %}{{ text }}{% endfor %}{% set text = 'later' %}{{ text }}
{% set text %}[{{ text }}]{% endset %}{{ text }}
{% macro f() %}{{ text }}{{ late }}{% endmacro %}{{ f() }}{% set late = 1 %}{{ f() }}
{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set (c, d2) = [3, 4] %}{{ c }}{{ d2 }}{% set t = 1, %}{{ t }}{% set ns = namespace(p=0) %}{% set ns.p, z = 5, 6 %}{{ ns.p }}{{ z }}
{% set a, b = 1 %}
{% set a = 1 %}{% set a = a + 1 %}{{ a }}{% set u = u_undefined %}{{ u is defined }}
{% set x %}block {{ n }} {% if yes %}y{% endif %}{% endset %}{{ x }}|{{ x|length }}{% set y | upper | replace('A', '4') %}abc{{ n }}{% endset %}{{ y }}
{% set ns = namespace(v='') %}{% for x in words %}{% set ns.v = ns.v ~ x[0] %}{% endfor %}{{ ns.v }}{% set ns.b %}blk{% endset %}{{ ns.b }}
{% set ns = namespace(seen=[]) %}{% for x in [1, 2, 1, 3, 2] if x not in ns.seen %}{{ x }}{% set ns.seen = ns.seen + [x] %}{% endfor %}
{% macro m(a, b='B', c=none) %}[{{ a }}{{ b }}{{ c }}]{% endmacro %}{{ m(1) }}{{ m(1, 2) }}{{ m(1, c=3) }}{{ m(b=2, a=1) }}{{ m() }}{{ m(1)|length }}{{ m('x') ~ 'y' }}
{% macro m(a) %}{{ a }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, 3, k=4) }}{{ m() }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, z=2) }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, a=2) }}
{% macro m(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}{{ m.name }}{{ m.arguments }}{{ m.catch_kwargs }}{{ m.caller }}
{% macro fact(k) %}{% if k > 1 %}{{ k }}*{{ fact(k - 1) }}{% else %}1{% endif %}{% endmacro %}{{ fact(5) }}
{% macro walk(t, depth=0) %}{% for x in t %}{% if x is iterable %}{{ walk(x, depth + 1) }}{% else %}{{ depth }}:{{ x }} {% endif %}{% endfor %}{% endmacro %}{{ walk(nested) }}
{% macro outer() %}<{{ caller() }}>{% endmacro %}{% call outer() %}body {{ n }}{% endcall %}
{% macro each(xs) %}{% for x in xs %}{{ caller(x, loop.index) }}{% endfor %}{% endmacro %}{% call(x, i) each(words) %}{{ i }}={{ x }};{% endcall %}
{% macro nocaller() %}x{% endmacro %}{% call nocaller() %}y{% endcall %}
{% macro mayber() %}{% if caller %}{{ caller() }}{% else %}none{% endif %}{% endmacro %}{{ mayber() }}
{% macro scoped() %}{% set inner_x = 1 %}{{ inner_x }}{% endmacro %}{{ scoped() }}{{ inner_x is defined }}
{% set fs = namespace() %}{% for x in [1, 2] %}{% macro g() %}{{ x }}{% endmacro %}{{ g() }}{% endfor %}{{ g is defined }}
{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}B{% endmacro %}{{ a() }}
{% filter upper %}abc {{ n }} def{% endfilter %}{% filter replace('a', 'b')|trim %} aaa {% endfilter %}{% filter indent(2) %}x
{% with a = 1, b = 2 %}{{ a + b }}{% endwith %}{{ a is defined }}{% with %}{% set z = 1 %}{{ z }}{% endwith %}{{ z is defined }}{% with n = n + 1 %}{{ n }}{% endwith %}{{ n }}
{% block title %}T{{ n }}{% endblock %}{% block other scoped %}x{% endblock other %}
{% generation %}gen {{ n }}{% set gx = 1 %}{{ gx }}{% endgeneration %}{{ gx is defined }}
{% for x in xs %}{% generation %}{{ x }}{{ loop.index }}{% endgeneration %}{% endfor %}
{% raw %}{{ not }} {% rendered %} {# at all #}{% endraw %}|{%- raw -%}  kept? {% endraw -%}  x
{# comment #}a{#- trimmed -#} b {# {{ x }} {% y %} #}c
  {%- if yes %}  a  {%- endif %}  b {{- n -}}  c  {{ n }} d
{%+ if yes +%} kept {%+ endif +%} end
{% if yes %}a{% elif no %}b{% else %}c{% endif %}{% if no %}a{% elif yes %}b{% else %}c{% endif %}{% if no %}a{% elif no %}b{% else %}c{% endif %}{% if xs %}t{% endif %}{% if not [] %}f{% endif %}{% if none %}{% endif %}
{% if 1, 2 %}tuple{% endif %}{% if yes: %}colon{% endif %}{% print n, text %}
{{ "esc \n \t \\ \" \' \x41 \u00e9 \U0001F600 \101 \q" }}{{ 'a' 'b' "c" }}{{ 'multi
{{ '\x4' }}
{{ 'open }}
{{ n
{% if yes %}
{% endif %}
{% unknown %}
{{ }}
{{ n + }}
{{ (n }}
{{ n ) }}
{{ [1, 2,] }}{{ (1, 2,) }}{{ {'a': 1,} }}{{ range(3,)|list }}
{{ [1 2] }}
{{ {'a' 1} }}
{{ n n }}
{{ 1a }}
{{ a.1b }}
{{ n is }}
{{ n | }}
{{ f(a=1, 2) }}
{{ f(a=1, a=2) }}
{% for %}{% endfor %}
{% for x in xs %}
{% set 5 = 1 %}
{% set true = 1 %}
{% for loop in xs %}{% endfor %}
{% macro m(a=1, b) %}{% endmacro %}
{# open comment
{% raw %} open raw
{{ n }}{{ $ }}
{{ "a" if }}
{{ not }}
{% else %}
{{ x is defined and x.y.z or 'safe' }}{{ (d.zz or {}).k }}|{{ d.zz and d.zz.k }}
{{ [x for x in xs] }}
{{ xs|join(sep=',') }}
{{ xs|first(1) }}
{{ text.upper(1) }}
{{ d.get() }}
{{ {'a': 1}['a'] }}{{ {'a': {'b': 2}}.a.b }}{{ [10, 20][1] }}{{ 'abc'[1] }}{{ (1, 2)[0] }}{{ ('a' ~ 'b').upper() }}{{ -xs[0] }}{{ xs[0] - -1 }}{{ 'a,b'.split(',')[1]|upper }}
{{ *xs }}
{{ range(*[1, 4])|list }}{{ dict(**{'a': 1}) }}{{ '{}-{}'.format(*['x', 'y']) }}{{ '{k}'.format(**{'k': 'v'}) }}
{{ n|attr('real') is defined }}{{ d|attr('a') is defined }}{{ d|attr('items') is defined }}
{{ 5|filesizeformat }}{{ 1|filesizeformat }}{{ 1500|filesizeformat }}{{ 1500000|filesizeformat }}{{ 2048|filesizeformat(true) }}{{ 1e25|filesizeformat }}
{{ 9007199254740993 / 1 }} {{ 9007199254740993 == 9007199254740992.0 }} {{ 123456789012345680.0 }} {{ 1e15 }} {{ 1e16 }} {{ 0.0001 }} {{ 0.00001 }} {{ -0.0 }} {{ 100000000000000000000.0 }}
{{ 1.5|string }}{{ 1e5|int }}{{ (7 / 2)|int }}{{ 7 // 2.0 }}{{ 2 ** 62 }}{{ true ** 2 }}{{ 10 % 3.5 }}
'''

# In these the text goes over several lines, which is what they are about.
BLOCKS = [
    "{% filter indent(2) %}x\ny\n\nz{% endfilter %}|{% filter indent(width=3, first=true) %}x\ny{% endfilter %}",
    "a\n  {% if yes %}\n  b\n  {% endif %}\nc\n",
    "a\n  {%- if yes %}\n  b\n  {%- endif %}\nc\n\n",
    "a\n  {% if yes -%}\n  b\n  {% endif -%}\n\n  c\n",
    "{% for x in xs %}\n  {{ x }}\n{% endfor %}\nend\n",
    "{% for x in xs -%}\n  {{ x }}\n{%- endfor %}\nend\n",
    "{%+ if yes %}\n  x\n {%+ endif %}\n y",
    "  {# comment #}\nx {# comment #}\ny\n   {#- c -#}\n   z",
    "  {% set a = 1 %}  \n  b {% set c = 2 %}\n",
    "\n\n{{ n }}\n\n",
    "{{ n }}\n",
    "{{ n }}\r\nx\ry\r\n",
    "x {% if yes %} y {% endif %} z",
    "\t{% if yes %}\tA\n\t{% endif %}\tB",
    "   {{ n }}   {% if yes %}   \n   {{ n }}\n   {% endif %}   ",
    "{% raw %}\n  {{ x }}\n{% endraw %}\n  after",
    "  {% raw -%}  \n  {{ x }}\n  {%- endraw %}  \n  after",
    "{{ 'multi\nline' }}{{ 'a\\\nb' }}",
    "{{\n  n\n  +\n  1\n}}\n{%\n  if\n  yes\n%}t{%\nendif\n%}",
    "{% set x %}\n  a\n  {{ n }}\n{% endset %}\n[{{ x }}]",
    "{% macro m(x) %}\n  <{{ x }}>\n{% endmacro %}\n{{ m(1) }}\n{{ m(2) -}}\n{{ m(3) }}",
    "a {%- raw %} b {% endraw -%} c",
    "{%- for x in xs -%}\n{{- x -}}\n{%- endfor -%}\n",
    "\ufeff\u3000{%- if yes %} x{% endif %}",
    "日本 {#- コメント -#} 語\u3000{{- n }}",
    "{% if yes %}{% for x in xs %}{% if x == 1 %}{% for y in xs %}{{ x }}{{ y }}\n{% endfor %}{% endif %}{% endfor %}{% endif %}",
    "{{ '{{' }} {{ '}}' }} {{ '{%' }} {{ {'a': {'b': 1}} }}",
    "{#\n multi\n line\n#}\nx{# a #}{# b #}\n",
    "{% if yes\n%}{{ n }}{% endif %}\n{{ boom",
    "",
    "\n",
    "{",
    "{ { n } } {% if yes %}{%endif%}{{n}}{ %",
]


def templates():
    """(name, source) of every snippet."""
    # A line may end where its template goes on; the pieces then are templates, often broken ones, in their own right.
    lines = [line for line in ONE_LINERS.split("\n") if line]
    return [(f"line {i}: {line[:60]}", line) for i, line in enumerate(lines)] + \
           [(f"block {i}: {source[:60]!r}", source) for i, source in enumerate(BLOCKS)]
