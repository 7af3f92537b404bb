/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a module takes for granted of a kernel that it links to nothing of:
 * compared with what the running kernel says of itself (core/btf.h).
 *
 * Pure logic, no kernel calls.
 */
#ifndef _VB_CORE_FACTS_H
#define _VB_CORE_FACTS_H

#include "btf.h"

enum vb_fact_kind {
	VB_FACT_MEMBER,
	VB_FACT_BIT,		/* a bit field */
	VB_FACT_SIZE,		/* of a struct */
	VB_FACT_FUNC,
	VB_FACT_TRACE,		/* a tracepoint's callback */
	VB_FACT_ENUM,		/* a constant */
};

struct vb_fact {
	/* "kvm_vcpu.arch.cr0", "kvm_lapic_irq", "set_user_nice" */
	const char *what;
	enum vb_fact_kind kind;
	int group;		/* of whoever asks */
	u32 offset, size;	/* bytes; offset: or a bit's number, a constant's value */
	const char *proto;	/* vb_btf_proto(), or its beginning */
	bool optional;		/* not every kernel has it */
	bool hidden;		/* no header declares it */
};

#define VB_MEMBER(group, type, member)				\
	{ #type "." #member, VB_FACT_MEMBER, group,		\
	  offsetof(struct type, member), sizeof_field(struct type, member), \
	  NULL, false, false }
/* A bit field, whose place no compiler tells: so @bit says it. */
#define VB_BIT(group, type, member, bit)			\
	{ #type "." #member, VB_FACT_BIT, group, bit, 0, NULL, false, false }
/* Of a structure that is in no header, by a declaration of ours. */
#define VB_MEMBER_AS(group, type, member, ours)			\
	{ #type "." #member, VB_FACT_MEMBER, group,		\
	  offsetof(struct ours, member), sizeof_field(struct ours, member), \
	  NULL, false, true }
#define VB_SIZE(group, type)					\
	{ #type, VB_FACT_SIZE, group, 0, sizeof(struct type), NULL, false, \
	  false }
#define VB_FUNC(group, name, proto)				\
	{ #name, VB_FACT_FUNC, group, 0, 0, proto, false, false }
#define VB_HIDDEN_FUNC(group, name, proto)			\
	{ #name, VB_FACT_FUNC, group, 0, 0, proto, false, true }
/* Whoever asks looks whether it is there. */
#define VB_HIDDEN_FUNC_IF_ANY(group, name, proto)		\
	{ #name, VB_FACT_FUNC, group, 0, 0, proto, true, true }
#define VB_TRACE(group, name, proto)				\
	{ #name, VB_FACT_TRACE, group, 0, 0, proto, false, false }
#define VB_CONSTANT(group, name)				\
	{ #name, VB_FACT_ENUM, group, name, 0, NULL, false, false }
/* Of a header that the kernel keeps to itself. */
#define VB_ENUM(group, name, value)				\
	{ #name, VB_FACT_ENUM, group, value, 0, NULL, false, true }

enum vb_fact_state {
	VB_FACT_ABSENT,		/* nothing of that name */
	VB_FACT_SAME,
	VB_FACT_DIFFERS,
};

struct vb_finding {
	enum vb_fact_state state;
	bool done;		/* found in a blob that was looked at before */
	char found[120];	/* what is there instead */
};

static inline void vb_fact_write(const struct vb_fact *f, char *s, size_t room,
				 u64 bit, u64 size)
{
	if (f->kind == VB_FACT_BIT && !size)
		snprintf(s, room, "bit %llu", (unsigned long long)bit);
	else if (f->kind == VB_FACT_ENUM)
		snprintf(s, room, "%llu", (unsigned long long)bit / 8);
	else
		snprintf(s, room, "offset %llu, size %llu",
			 (unsigned long long)bit / 8, (unsigned long long)size);
}

/* Of a structure's size it is 0. */
static inline u64 vb_fact_bit(const struct vb_fact *f)
{
	return f->kind == VB_FACT_BIT ? f->offset : (u64)f->offset * 8;
}

/* What the fact says, in the words of vb_finding.found. */
static inline void vb_fact_expected(const struct vb_fact *f, char *s,
				    size_t room)
{
	if (f->proto)
		snprintf(s, room, "%s", f->proto);
	else
		vb_fact_write(f, s, room, vb_fact_bit(f), f->size);
}

static inline void vb_fact_note(bool same, struct vb_finding *r)
{
	/* Several of one name: none may differ. */
	if (!same)
		r->state = VB_FACT_DIFFERS;
	else if (r->state == VB_FACT_ABSENT)
		r->state = VB_FACT_SAME;
}

static inline void vb_fact_note_place(const struct vb_fact *f, u64 bit,
				      u64 size, struct vb_finding *r)
{
	bool same = bit == vb_fact_bit(f) && size == f->size;

	if (!same)
		vb_fact_write(f, r->found, sizeof(r->found), bit, size);
	vb_fact_note(same, r);
}

static inline void vb_fact_see_struct(const struct vb_btf *b,
				      const struct btf_type *t,
				      const struct vb_fact *f,
				      struct vb_finding *r)
{
	size_t len = strcspn(f->what, ".");
	struct vb_btf_place p;

	if (!vb_btf_is_name(vb_btf_string(b, t->name_off), f->what, len))
		return;
	if (!f->what[len]) {
		vb_fact_note_place(f, 0, t->size, r);
	} else if (vb_btf_member(b, t, f->what + len + 1, &p)) {
		vb_fact_note_place(f, p.bit, p.bitfield ? 0 :
				   vb_btf_size(b, p.type), r);
	} else {
		snprintf(r->found, sizeof(r->found), "no such member");
		vb_fact_note(false, r);
	}
}

/* Of the typedef that tells what a tracepoint's callback takes. */
static const char vb_fact_prefix[] = "btf_trace_";

static inline void vb_fact_see_func(const struct vb_btf *b,
				    const struct btf_type *t,
				    const struct vb_fact *f,
				    struct vb_finding *r)
{
	const char *name = vb_btf_string(b, t->name_off);
	const struct btf_type *proto;
	char s[sizeof(r->found)];
	bool same;

	if (f->kind == VB_FACT_TRACE) {
		if (strncmp(name, vb_fact_prefix, sizeof(vb_fact_prefix) - 1))
			return;
		name += sizeof(vb_fact_prefix) - 1;
	}
	if (strcmp(name, f->what))
		return;
	proto = vb_btf_resolve(b, t->type);
	if (vb_btf_kind(proto) == BTF_KIND_PTR)
		proto = vb_btf_resolve(b, proto->type);
	if (!vb_btf_proto(b, proto, s, sizeof(s)))
		return;
	same = !strncmp(s, f->proto, strlen(f->proto));
	if (!same)
		memcpy(r->found, s, sizeof(s));
	vb_fact_note(same, r);
}

static inline void vb_fact_see_enum(const struct vb_btf *b,
				    const struct btf_type *t,
				    const struct vb_fact *f,
				    struct vb_finding *r)
{
	const struct btf_enum *e = (const void *)(t + 1);
	u32 n;

	for (n = 0; n < VB_BTF_VLEN(t->info); n++)
		if (!strcmp(vb_btf_string(b, e[n].name_off), f->what))
			vb_fact_note_place(f, (u64)(u32)e[n].val * 8, 0, r);
}

static inline bool vb_fact_is_about(const struct vb_fact *f, u32 kind)
{
	switch (f->kind) {
	case VB_FACT_MEMBER:
	case VB_FACT_BIT:
	case VB_FACT_SIZE:
		return kind == BTF_KIND_STRUCT;
	case VB_FACT_FUNC:
		return kind == BTF_KIND_FUNC;
	case VB_FACT_TRACE:
		return kind == BTF_KIND_TYPEDEF;
	case VB_FACT_ENUM:
		return kind == BTF_KIND_ENUM;
	}
	return false;
}

/*
 * Nearly all of a kernel's 100,000 names are in no fact. Hashes tell that of
 * most of them, so that it takes milliseconds, not a tenth of a second.
 */
#define VB_FACT_HASHES	2048

struct vb_fact_names {
	u64 bits[VB_FACT_HASHES / 64];
};

/* Of a name, or of the first one in a path. @h: of what comes before it. */
static inline u32 vb_fact_hash(u32 h, const char *name)
{
	for (; *name && *name != '.'; name++)
		h = h * 31 + (u8)*name;
	return h;
}

static inline void vb_fact_add_name(const struct vb_fact *f,
				    struct vb_fact_names *names)
{
	u32 h = f->kind == VB_FACT_TRACE ? vb_fact_hash(0, vb_fact_prefix) : 0;

	h = vb_fact_hash(h, f->what) % VB_FACT_HASHES;
	names->bits[h / 64] |= 1ULL << h % 64;
}

/* Can a fact be about this type? */
static inline bool vb_fact_of_any(const struct vb_fact_names *names,
				  const struct vb_btf *b,
				  const struct btf_type *t)
{
	u32 h;

	switch (vb_btf_kind(t)) {
	case BTF_KIND_ENUM:	/* its constants have the names */
		return true;
	case BTF_KIND_STRUCT:
	case BTF_KIND_FUNC:
	case BTF_KIND_TYPEDEF:
		h = vb_fact_hash(0, vb_btf_string(b, t->name_off)) %
		    VB_FACT_HASHES;
		return names->bits[h / 64] >> h % 64 & 1;
	default:
		return false;
	}
}

/**
 * vb_facts_look() - compare facts with the types of a blob (not of its base)
 * @b: BTF
 * @f: facts
 * @r: their findings, zeroed; those that another blob had are left alone
 * @nr: how many
 */
static inline void vb_facts_look(const struct vb_btf *b,
				 const struct vb_fact *f, struct vb_finding *r,
				 int nr)
{
	struct vb_fact_names names = { };
	u32 id;
	int n;

	for (n = 0; n < nr; n++) {
		r[n].done = r[n].state != VB_FACT_ABSENT;
		if (!r[n].done)
			vb_fact_add_name(&f[n], &names);
	}
	for (id = b->first_id; id < b->end_id; id++) {
		const struct btf_type *t = vb_btf_type(b, id);
		u32 kind = vb_btf_kind(t);

		if (!vb_fact_of_any(&names, b, t))
			continue;
		for (n = 0; n < nr; n++) {
			if (r[n].done || !vb_fact_is_about(&f[n], kind))
				continue;
			if (kind == BTF_KIND_STRUCT)
				vb_fact_see_struct(b, t, &f[n], &r[n]);
			else if (kind == BTF_KIND_ENUM)
				vb_fact_see_enum(b, t, &f[n], &r[n]);
			else
				vb_fact_see_func(b, t, &f[n], &r[n]);
		}
	}
}

#endif /* _VB_CORE_FACTS_H */
