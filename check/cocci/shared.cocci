// SPDX-License-Identifier: GPL-2.0
// Memory that the other side of the ABI writes is read and written in one
// access that the compiler can neither repeat nor split: READ_ONCE(),
// WRITE_ONCE(), acquire, release and atomic operations (by address), bit
// operations. Who checks a value and then reads it again has checked nothing.

virtual report

@fine@
{struct vb_header, struct vb_vcpu_host, struct vb_vcpu_guest, struct vb_redirect, struct vb_pending} *s;
identifier member;
expression i, j, value;
position p;
@@
(
READ_ONCE(s->member@p)
|
READ_ONCE(s->member@p[i])
|
READ_ONCE(s[i].member@p)
|
READ_ONCE(s[i].member@p[j])
|
WRITE_ONCE(s->member@p, value)
|
WRITE_ONCE(s->member@p[i], value)
|
WRITE_ONCE(s[i].member@p, value)
|
WRITE_ONCE(s[i].member@p[j], value)
|
  &s->member@p
|
  &s->member@p[i]
|
  &s[i].member@p
|
  &s[i].member@p[j]
|
  (unsigned long *)s->member@p
|
  (unsigned long *)s[i].member@p
|
sizeof(s->member@p)
)

@filled@
{struct vb_header, struct vb_vcpu_host, struct vb_vcpu_guest, struct vb_redirect, struct vb_pending} *s;
identifier member;
position p;
@@
memset(s->member@p, ...)

@bare@
{struct vb_header, struct vb_vcpu_host, struct vb_vcpu_guest, struct vb_redirect, struct vb_pending} *s;
identifier member;
expression i;
position p != {fine.p, filled.p};
@@
(
s->member@p
|
s[i].member@p
)

@script:python depends on report@
member << bare.member;
p << bare.p;
@@
coccilib.report.print_report(p[0], f"{member} is shared with the other side: use READ_ONCE(), WRITE_ONCE() or an atomic operation")
