/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Reads BTF, the kernel's own description of its types and functions
 * (Documentation/bpf/btf.rst): where a member of a struct lies, what a
 * function takes. The kernel exports no function that tells names of members.
 *
 * Pure logic, no kernel calls. Broken data is an error, or nothing is found:
 * every access is within it.
 */
#ifndef _VB_CORE_BTF_H
#define _VB_CORE_BTF_H

#include <linux/btf.h>
#ifndef __KERNEL__
#include <stdio.h>
#include <string.h>
#endif
#include "vbtypes.h"

/* One blob: the kernel's own, or a module's, whose ids and strings follow. */
struct vb_btf {
	const struct vb_btf *base;	/* NULL: the kernel's own */
	const u8 *types;
	const char *strings;
	u32 types_len, strings_len;
	u32 first_string;	/* offset of our first one */
	u32 first_id, end_id;	/* ids of our types */
	u32 *index;		/* where each of them begins in types */
};

/* Since 7.1; the bits above the first 16 were unused before. */
#define VB_BTF_VLEN(info)	((info) & 0xffffff)
#define VB_BTF_KIND(info)	((info) >> 24 & 0x1f)

/* Bytes behind struct btf_type; -1: a kind that is not known. */
static inline s64 vb_btf_more(u32 info)
{
	static const struct {
		s8 fixed, each;
	} size[] = {
		[BTF_KIND_INT] = { 4, 0 },
		[BTF_KIND_PTR] = { 0, 0 },
		[BTF_KIND_ARRAY] = { sizeof(struct btf_array), 0 },
		[BTF_KIND_STRUCT] = { 0, sizeof(struct btf_member) },
		[BTF_KIND_UNION] = { 0, sizeof(struct btf_member) },
		[BTF_KIND_ENUM] = { 0, sizeof(struct btf_enum) },
		[BTF_KIND_FWD ... BTF_KIND_FUNC] = { 0, 0 },
		[BTF_KIND_FUNC_PROTO] = { 0, sizeof(struct btf_param) },
		[BTF_KIND_VAR] = { 4, 0 },
		[BTF_KIND_DATASEC] = { 0, sizeof(struct btf_var_secinfo) },
		[BTF_KIND_FLOAT] = { 0, 0 },
		[BTF_KIND_DECL_TAG] = { 4, 0 },
		[BTF_KIND_TYPE_TAG] = { 0, 0 },
		[BTF_KIND_ENUM64] = { 0, 12 },
	};
	u32 kind = VB_BTF_KIND(info);

	if (!kind || kind >= sizeof(size) / sizeof(size[0]))
		return -1;
	return size[kind].fixed + (s64)size[kind].each * VB_BTF_VLEN(info);
}

/* Room that an index needs, in entries: no type is shorter. */
static inline u32 vb_btf_index_max(u32 size)
{
	return size / sizeof(struct btf_type);
}

/**
 * vb_btf_open() - look at a blob
 * @b: filled; refers to what follows
 * @data: 4-byte aligned
 * @size: of it
 * @base: the kernel's own if this is a module's, else NULL
 * @index: vb_btf_index_max() entries
 * Return: 0, or -1: no BTF, or not of a kind that is understood.
 */
static inline int vb_btf_open(struct vb_btf *b, const void *data, u32 size,
			      const struct vb_btf *base, u32 *index)
{
	const struct btf_header *h = data;
	u64 types, strings;
	u32 at = 0;

	if (size < sizeof(*h) || h->magic != BTF_MAGIC ||
	    h->version != BTF_VERSION)
		return -1;
	types = (u64)h->hdr_len + h->type_off;
	strings = (u64)h->hdr_len + h->str_off;
	if (types % 4 || types + h->type_len > size || !h->str_len ||
	    strings + h->str_len > size)
		return -1;
	*b = (struct vb_btf){
		.base = base,
		.types = (const u8 *)data + types,
		.types_len = h->type_len,
		.strings = (const char *)data + strings,
		.strings_len = h->str_len,
		.first_string = base ? base->first_string + base->strings_len : 0,
		.first_id = base ? base->end_id : 1,
		.index = index,
	};
	/* Every string ends somewhere. */
	if (b->strings[b->strings_len - 1])
		return -1;
	b->end_id = b->first_id;
	while (at < b->types_len) {
		const struct btf_type *t = (const void *)(b->types + at);
		s64 more;

		if (at % 4 || b->types_len - at < sizeof(*t))
			return -1;
		more = vb_btf_more(t->info);
		if (more < 0 || more > (s64)(b->types_len - at - sizeof(*t)))
			return -1;
		index[b->end_id++ - b->first_id] = at;
		at += sizeof(*t) + more;
	}
	return 0;
}

static inline const char *vb_btf_string(const struct vb_btf *b, u32 offset)
{
	if (b->base && offset < b->first_string)
		b = b->base;
	offset -= b->first_string;
	return offset < b->strings_len ? b->strings + offset : "";
}

/* NULL: void, or no such type. */
static inline const struct btf_type *vb_btf_type(const struct vb_btf *b, u32 id)
{
	if (b->base && id < b->first_id)
		b = b->base;
	if (id < b->first_id || id >= b->end_id)
		return NULL;
	return (const void *)(b->types + b->index[id - b->first_id]);
}

static inline u32 vb_btf_kind(const struct btf_type *t)
{
	return t ? VB_BTF_KIND(t->info) : BTF_KIND_UNKN;
}

static inline bool vb_btf_is_struct(const struct btf_type *t)
{
	return vb_btf_kind(t) == BTF_KIND_STRUCT ||
	       vb_btf_kind(t) == BTF_KIND_UNION;
}

/* No kernel has chains that long; a broken blob can have circles. */
#define VB_BTF_DEPTH	32

/* Without typedef, const, volatile and so on. */
static inline const struct btf_type *vb_btf_resolve(const struct vb_btf *b,
						    u32 id)
{
	const struct btf_type *t = vb_btf_type(b, id);
	int n;

	for (n = 0; n < VB_BTF_DEPTH; n++) {
		switch (vb_btf_kind(t)) {
		case BTF_KIND_TYPEDEF:
		case BTF_KIND_VOLATILE:
		case BTF_KIND_CONST:
		case BTF_KIND_RESTRICT:
		case BTF_KIND_TYPE_TAG:
			t = vb_btf_type(b, t->type);
			break;
		default:
			return t;
		}
	}
	return NULL;
}

/* sizeof(); 0: has none. */
static inline u64 vb_btf_size(const struct vb_btf *b, u32 id)
{
	const struct btf_type *t = vb_btf_resolve(b, id);
	u64 nr = 1;
	int n;

	for (n = 0; n < VB_BTF_DEPTH; n++) {
		switch (vb_btf_kind(t)) {
		case BTF_KIND_ARRAY: {
			const struct btf_array *a = (const void *)(t + 1);

			nr *= a->nelems;
			t = vb_btf_resolve(b, a->type);
			break;
		}
		case BTF_KIND_PTR:
			return nr * sizeof(u64);
		case BTF_KIND_INT:
		case BTF_KIND_STRUCT:
		case BTF_KIND_UNION:
		case BTF_KIND_ENUM:
		case BTF_KIND_FLOAT:
		case BTF_KIND_ENUM64:
			return nr * t->size;
		default:
			return 0;
		}
	}
	return 0;
}

struct vb_btf_place {
	u32 type;
	u64 bit;		/* from the begin of the outermost struct */
	bool bitfield;
};

/* Is @name the first @len characters of @s, and all of them? */
static inline bool vb_btf_is_name(const char *name, const char *s, size_t len)
{
	return !strncmp(name, s, len) && !name[len];
}

/* Also in members without a name. */
static inline bool vb_btf_find_member(const struct vb_btf *b,
				      const struct btf_type *t,
				      const char *name, size_t len, int depth,
				      struct vb_btf_place *p)
{
	const struct btf_member *m;
	u64 start = p->bit;
	u32 n;

	if (!vb_btf_is_struct(t) || depth > 4)
		return false;
	m = (const void *)(t + 1);
	for (n = 0; n < VB_BTF_VLEN(t->info); n++, m++) {
		const char *its = vb_btf_string(b, m->name_off);
		bool split = t->info >> 31;	/* offset: size << 24 | bit */

		p->bit = start + (split ? m->offset & 0xffffff : m->offset);
		p->bitfield = split && m->offset >> 24;
		p->type = m->type;
		if (*its ? vb_btf_is_name(its, name, len) :
		    vb_btf_find_member(b, vb_btf_resolve(b, m->type), name,
				       len, depth + 1, p))
			return true;
	}
	return false;
}

/**
 * vb_btf_member() - where a member lies
 * @b: BTF
 * @t: struct or union
 * @path: "member", or "member.member.member"
 * @p: filled
 * Return: there is such a member.
 */
static inline bool vb_btf_member(const struct vb_btf *b,
				 const struct btf_type *t, const char *path,
				 struct vb_btf_place *p)
{
	*p = (struct vb_btf_place){ 0 };
	for (;;) {
		size_t len = strcspn(path, ".");

		if (!vb_btf_find_member(b, t, path, len, 0, p))
			return false;
		if (!path[len])
			return true;
		path += len + 1;
		t = vb_btf_resolve(b, p->type);
	}
}

/* A parameter: "task_struct*", "*" (to something else), "8" (bytes), "0". */
static inline int vb_btf_write_param(const struct vb_btf *b, u32 id, char *s,
				     size_t room)
{
	const struct btf_type *t = vb_btf_resolve(b, id);
	const char *name = "";

	if (vb_btf_kind(t) != BTF_KIND_PTR)
		return snprintf(s, room, "%u", (u32)vb_btf_size(b, id));
	t = vb_btf_resolve(b, t->type);
	if (vb_btf_is_struct(t) || vb_btf_kind(t) == BTF_KIND_FWD)
		name = vb_btf_string(b, t->name_off);
	return snprintf(s, room, "%s*", name);
}

/**
 * vb_btf_proto() - write what a function takes and gives, in few words
 * @b: BTF
 * @t: BTF_KIND_FUNC_PROTO
 * @s: where; what is too long is cut off
 * @room: bytes there
 *
 * For int f(struct task_struct *p, bool b): "4(task_struct*,1)".
 * Return: it is a function.
 */
static inline bool vb_btf_proto(const struct vb_btf *b,
				const struct btf_type *t, char *s, size_t room)
{
	const struct btf_param *p;
	size_t at;
	u32 n;

	if (vb_btf_kind(t) != BTF_KIND_FUNC_PROTO)
		return false;
	p = (const void *)(t + 1);
	at = vb_btf_write_param(b, t->type, s, room);
	for (n = 0; n < VB_BTF_VLEN(t->info) && at < room; n++, p++) {
		at += snprintf(s + at, room - at, n ? "," : "(");
		if (at < room)
			at += vb_btf_write_param(b, p->type, s + at, room - at);
	}
	if (at < room)
		snprintf(s + at, room - at, n ? ")" : "()");
	return true;
}

#endif /* _VB_CORE_BTF_H */
