// SPDX-License-Identifier: GPL-2.0
// Every definition of a function, and every call with the function that it is
// in. Not a rule itself: contexts.json says who must not get to whom.

virtual report

@def@
identifier f;
position p;
@@
f@p(...) { ... }

@script:python@
f << def.f;
p << def.p;
@@
print("\t".join(("def", p[0].file, p[0].line, f)))

@call@
identifier g;
expression list args;
position p;
@@
g@p(args)

@script:python@
g << call.g;
args << call.args;
p << call.p;
@@
print("\t".join(("call", p[0].file, p[0].line, p[0].current_element, g,
                 " ".join(str(args).split()))))
