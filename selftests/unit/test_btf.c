// SPDX-License-Identifier: GPL-2.0
/*
 * core/btf.h, core/facts.h: against small blobs written here by the format's
 * description (Documentation/bpf/btf.rst), doctored in every way that matters,
 * and against this kernel's own where there is one.
 */
#include <stddef.h>
#include <stdlib.h>

#define sizeof_field(type, member)	sizeof(((type *)0)->member)

#include "core/facts.h"

#include "ktap.h"
#include "prng.h"

/* ---- writing BTF ---- */

struct blob {
	u32 types[1024];
	char strings[4096];
	u32 nr_types, type_words, string_bytes;	/* so far */
	u32 first_id, first_string;
	void *data;
	u32 size, *index;
};

static void blob_begin(struct blob *w, const struct blob *base)
{
	memset(w, 0, sizeof(*w));
	w->first_id = base ? base->first_id + base->nr_types : 1;
	w->first_string = base ? base->first_string + base->string_bytes : 0;
	/* The first string of all is the empty one. */
	w->string_bytes = base ? 0 : 1;
}

static u32 blob_string(struct blob *w, const char *s)
{
	u32 at = w->string_bytes;

	if (!*s)
		return 0;
	strcpy(w->strings + at, s);
	w->string_bytes += strlen(s) + 1;
	return w->first_string + at;
}

static void blob_word(struct blob *w, u32 word)
{
	w->types[w->type_words++] = word;
}

#define BITFIELDS	(1U << 31)

/* Its own words follow by blob_word() or blob_entry(). Return: its id. */
static u32 blob_type(struct blob *w, u32 kind, const char *name, u32 vlen,
		     u32 size)
{
	blob_word(w, blob_string(w, name));
	blob_word(w, (kind & BITFIELDS) | (kind & 0x1f) << 24 | vlen);
	blob_word(w, size);
	return w->first_id + w->nr_types++;
}

static void blob_entry(struct blob *w, const char *name, u32 a)
{
	blob_word(w, blob_string(w, name));
	blob_word(w, a);
}

static void blob_member(struct blob *w, const char *name, u32 type, u32 bit)
{
	blob_entry(w, name, type);
	blob_word(w, bit);
}

/* @gap: bytes between what a header of today has and the types */
static void blob_end(struct blob *w, u32 gap)
{
	struct btf_header h = {
		.magic = BTF_MAGIC,
		.version = BTF_VERSION,
		.hdr_len = offsetof(struct btf_header, str_len) + 4 + gap,
		.type_len = w->type_words * 4,
		.str_off = w->type_words * 4,
		.str_len = w->string_bytes,
	};

	w->size = h.hdr_len + h.type_len + h.str_len;
	w->data = calloc(1, w->size);
	memcpy(w->data, &h, offsetof(struct btf_header, str_len) + 4);
	memcpy((char *)w->data + h.hdr_len, w->types, h.type_len);
	memcpy((char *)w->data + h.hdr_len + h.str_off, w->strings, h.str_len);
	w->index = calloc(vb_btf_index_max(w->size) + 1, sizeof(u32));
}

static void blob_free(struct blob *w)
{
	free(w->data);
	free(w->index);
}

static int blob_open(struct vb_btf *b, const struct blob *w,
		     const struct vb_btf *base)
{
	return vb_btf_open(b, w->data, w->size, base, w->index);
}

/* ---- a kernel of a few types ---- */

struct inner {
	u32 x;
	u64 y[3];
};

struct outer {
	struct inner *next;
	u8 flag;
	union {
		struct {
			u32 deep;
			struct inner in;
		};
		u64 other;
	};
};

struct argument {
	u8 byte;
};

enum { GROUP_A, GROUP_B };

/* What no declaration here is of. */
#define MEMBER_AT(what, offset, size)					\
	{ what, VB_FACT_MEMBER, 0, offset, size, NULL, false, false }
#define SIZE_OF(what, size)						\
	{ what, VB_FACT_SIZE, 0, 0, size, NULL, false, false }

#define FACTS(outer_func, enum_value)					\
	VB_MEMBER(GROUP_A, outer, next),				\
	VB_MEMBER(GROUP_A, outer, flag),				\
	VB_MEMBER(GROUP_A, outer, deep),				\
	VB_MEMBER(GROUP_A, outer, in.x),				\
	VB_MEMBER(GROUP_B, outer, in.y),				\
	VB_SIZE(GROUP_B, argument),					\
	VB_FUNC(GROUP_A, work, outer_func),				\
	VB_TRACE(GROUP_B, happened, "0(*,4,outer*"),			\
	VB_ENUM(GROUP_B, FLAG_X, enum_value)

static const struct vb_fact facts[] = {
	FACTS("4(outer*,argument*,1)", 0x200)
};

#define NR	ARRAY_SIZE(facts)
#define AT(n)	(facts[n].what)

/* What is different from the above in a blob. */
struct twist {
	u32 flag_bit, deep_bit, x_bit, y_elems, argument_size, value;
	bool bitfield, no_deep, int_arg, more_args, trace_args;
	const char *func;
};

static const struct twist straight = {
	.flag_bit = offsetof(struct outer, flag) * 8,
	.deep_bit = 0,
	.x_bit = 0,
	.y_elems = 3,
	.argument_size = 1,
	.value = 0x200,
	.func = "work",
};

static void write_types(struct blob *w, const struct twist *t)
{
	u32 u8_, u32_, u64_, array, inner, p_inner, anon, uni, outer, arg;
	u32 p_outer, c_arg, p_arg, proto, alias, p_void, trace;
	bool bits = t->bitfield;

	u8_ = blob_type(w, BTF_KIND_INT, "unsigned char", 0, 1);
	blob_word(w, 8);
	u32_ = blob_type(w, BTF_KIND_INT, "unsigned int", 0, 4);
	blob_word(w, 32);
	u64_ = blob_type(w, BTF_KIND_INT, "unsigned long", 0, 8);
	blob_word(w, 64);
	alias = blob_type(w, BTF_KIND_TYPEDEF, "u64", 0, u64_);
	array = blob_type(w, BTF_KIND_ARRAY, "", 0, 0);
	blob_word(w, alias);
	blob_word(w, u32_);
	blob_word(w, t->y_elems);
	inner = blob_type(w, BTF_KIND_STRUCT, "inner", 2, sizeof(struct inner));
	blob_member(w, "x", u32_, t->x_bit);
	blob_member(w, "y", array, offsetof(struct inner, y) * 8);
	p_inner = blob_type(w, BTF_KIND_PTR, "", 0, inner);
	anon = blob_type(w, BTF_KIND_STRUCT, "", 2, 40);
	blob_member(w, t->no_deep ? "shallow" : "deep", u32_, t->deep_bit);
	blob_member(w, "in", inner, 64);
	uni = blob_type(w, BTF_KIND_UNION, "", 2, 40);
	blob_member(w, "", anon, 0);
	blob_member(w, "other", alias, 0);
	outer = blob_type(w, BTF_KIND_STRUCT | (bits ? BITFIELDS : 0), "outer",
			  3, sizeof(struct outer));
	blob_member(w, "next", p_inner, 0);
	blob_member(w, "flag", u8_, t->flag_bit | (bits ? 1 << 24 : 0));
	blob_member(w, "", uni, offsetof(struct outer, deep) * 8);
	arg = blob_type(w, BTF_KIND_STRUCT, "argument", 1, t->argument_size);
	blob_member(w, "byte", u8_, 0);
	p_outer = blob_type(w, BTF_KIND_PTR, "", 0, outer);
	c_arg = blob_type(w, BTF_KIND_CONST, "", 0, arg);
	p_arg = blob_type(w, BTF_KIND_PTR, "", 0, c_arg);
	proto = blob_type(w, BTF_KIND_FUNC_PROTO, "", 3 + t->more_args, u32_);
	blob_entry(w, "o", p_outer);
	blob_entry(w, "a", t->int_arg ? u64_ : p_arg);
	blob_entry(w, "b", u8_);
	if (t->more_args)
		blob_entry(w, "c", u8_);
	blob_type(w, BTF_KIND_FUNC, t->func, 1, proto);
	p_void = blob_type(w, BTF_KIND_PTR, "", 0, 0);
	trace = blob_type(w, BTF_KIND_FUNC_PROTO, "", 3, 0);
	blob_entry(w, "", p_void);
	blob_entry(w, "", t->trace_args ? p_outer : u32_);
	blob_entry(w, "", t->trace_args ? u32_ : p_outer);
	trace = blob_type(w, BTF_KIND_PTR, "", 0, trace);
	blob_type(w, BTF_KIND_TYPEDEF, "btf_trace_happened", 0, trace);
	blob_type(w, BTF_KIND_ENUM, "", 2, 4);
	blob_entry(w, "FLAG_W", 0x100);
	blob_entry(w, "FLAG_X", t->value);
}

/* Return: whether that is BTF. */
static bool open_types(struct vb_btf *b, struct blob *w, const struct twist *t)
{
	blob_begin(w, NULL);
	write_types(w, t);
	blob_end(w, 0);
	return !blob_open(b, w, NULL);
}

/* Which facts differ, as bits; all ones: no BTF. */
static unsigned int differing(const struct twist *t, struct vb_finding *r)
{
	struct vb_finding mine[NR];
	unsigned int bits = 0, n;
	struct vb_btf b;
	struct blob w;

	r = r ?: mine;
	memset(r, 0, sizeof(mine));
	if (!open_types(&b, &w, t)) {
		blob_free(&w);
		return ~0U;
	}
	vb_facts_look(&b, facts, r, NR);
	for (n = 0; n < NR; n++)
		bits |= (r[n].state != VB_FACT_SAME) << n;
	blob_free(&w);
	return bits;
}

static void test_same(void)
{
	CHECK_EQ(differing(&straight, NULL), 0, "nothing is different");
}

static void test_doctored(void)
{
	struct vb_finding r[NR];
	struct twist t;

#define DOCTORED(change, bits, n, text) do {				\
		t = straight;						\
		change;							\
		CHECK_EQ(differing(&t, r), bits, #change);		\
		CHECK(!strcmp(r[n].found, text), "%s: '%s', not '%s'",	\
		      AT(n), r[n].found, text);				\
	} while (0)

	DOCTORED(t.flag_bit += 8, 1 << 1, 1, "offset 9, size 1");
	DOCTORED(t.flag_bit += 1, 1 << 1, 1, "offset 8, size 1");
	DOCTORED(t.bitfield = true, 1 << 1, 1, "offset 8, size 0");
	DOCTORED(t.deep_bit = 32, 1 << 2, 2, "offset 20, size 4");
	DOCTORED(t.no_deep = true, 1 << 2, 2, "no such member");
	DOCTORED(t.x_bit = 32, 1 << 3, 3, "offset 28, size 4");
	DOCTORED(t.y_elems = 4, 1 << 4, 4, "offset 32, size 32");
	DOCTORED(t.argument_size = 2, 1 << 5, 5, "offset 0, size 2");
	DOCTORED(t.int_arg = true, 1 << 6, 6, "4(outer*,8,1)");
	DOCTORED(t.more_args = true, 1 << 6, 6, "4(outer*,argument*,1,1)");
	DOCTORED(t.trace_args = true, 1 << 7, 7, "0(*,outer*,4)");
	DOCTORED(t.value = 0x400, 1 << 8, 8, "1024");
#undef DOCTORED
}

static void test_absent(void)
{
	struct vb_finding r[NR];
	struct twist t = straight;

	t.func = "work.isra.0";
	CHECK_EQ(differing(&t, r), 1 << 6, "a function of another name");
	CHECK_EQ(r[6].state, VB_FACT_ABSENT, "not there");
}

static void test_open_end(void)
{
	static const struct vb_fact open[] = {
		VB_FUNC(GROUP_A, work, "4(outer*,argument*,"),
		VB_FUNC(GROUP_A, work, "4(outer*,argument*,1,1,1)"),
	};
	struct vb_finding r[2] = { 0 };
	struct twist t = straight;
	struct vb_btf b;
	struct blob w;

	t.more_args = true;
	CHECK(open_types(&b, &w, &t), "BTF");
	vb_facts_look(&b, open, r, 2);
	CHECK_EQ(r[0].state, VB_FACT_SAME, "others may follow");
	CHECK_EQ(r[1].state, VB_FACT_DIFFERS, "one is missing");
	blob_free(&w);
}

static void test_expected(void)
{
	static const struct {
		struct vb_fact f;
		const char *text;
	} of[] = {
		{ VB_MEMBER(0, outer, flag), "offset 8, size 1" },
		{ VB_SIZE(0, argument), "offset 0, size 1" },
		{ VB_BIT(0, outer, flag, 65), "bit 65" },
		{ VB_ENUM(0, FLAG_X, 0x200), "512" },
		{ VB_FUNC(0, work, "4(outer*,"), "4(outer*," },
	};
	char text[120];
	unsigned int n;

	for (n = 0; n < ARRAY_SIZE(of); n++) {
		vb_fact_expected(&of[n].f, text, sizeof(text));
		CHECK(!strcmp(text, of[n].text), "%s: '%s', not '%s'",
		      of[n].f.what, text, of[n].text);
	}
}

/* By its number. */
static void test_bits(void)
{
	static const struct vb_fact f[] = {
		VB_BIT(0, outer, flag, offsetof(struct outer, flag) * 8),
		VB_BIT(0, outer, flag, offsetof(struct outer, flag) * 8 + 1),
	};
	struct twist t = straight;
	int bits;

	for (bits = 1; bits >= 0; bits--) {
		struct vb_finding r[2] = { 0 };
		struct vb_btf b;
		struct blob w;

		t.bitfield = bits;
		CHECK(open_types(&b, &w, &t), "BTF");
		vb_facts_look(&b, f, r, 2);
		CHECK_EQ(r[0].state, bits ? VB_FACT_SAME : VB_FACT_DIFFERS,
			 "one of %d", bits);
		CHECK_EQ(r[1].state, VB_FACT_DIFFERS, "the one before it");
		CHECK(!strcmp(r[1].found, bits ? "bit 64" : "offset 8, size 1"),
		      "'%s'", r[1].found);
		blob_free(&w);
	}
}

/* What looks like what is meant, but is not. */
static void test_similar(void)
{
	static const struct vb_fact f[] = {
		/* Only the struct in a member with a name has it. */
		MEMBER_AT("outer.x", 16, 4),
		MEMBER_AT("outer.y", 32, 24),
		/* There are two beginnings of this, and a longer one. */
		MEMBER_AT("cube.edges", 4, 24),
		SIZE_OF("cube", 32),
		VB_FUNC(0, idle, "4()"),
		VB_FUNC(0, idle, "4("),
		VB_FUNC(0, idle, "4)"),
		VB_FUNC(0, opaque, "0(hidden*)"),
		/* More than there is room for. */
		VB_FUNC(0, crowded, "0(4,4,4,4,"),
	};
	static const enum vb_fact_state want[] = {
		VB_FACT_DIFFERS, VB_FACT_DIFFERS, VB_FACT_SAME, VB_FACT_SAME,
		VB_FACT_SAME, VB_FACT_SAME, VB_FACT_DIFFERS, VB_FACT_SAME,
		VB_FACT_SAME,
	};
	struct vb_finding r[ARRAY_SIZE(f)] = { 0 };
	u32 n, u32_, row, all, proto;
	struct vb_btf b;
	struct blob w;

	blob_begin(&w, NULL);
	write_types(&w, &straight);
	u32_ = 2;
	row = blob_type(&w, BTF_KIND_ARRAY, "", 0, 0);
	blob_word(&w, u32_);
	blob_word(&w, u32_);
	blob_word(&w, 3);
	all = blob_type(&w, BTF_KIND_ARRAY, "", 0, 0);
	blob_word(&w, row);
	blob_word(&w, u32_);
	blob_word(&w, 2);
	blob_type(&w, BTF_KIND_STRUCT, "cubes", 0, 5);
	blob_type(&w, BTF_KIND_STRUCT, "cub", 0, 5);
	blob_type(&w, BTF_KIND_STRUCT, "cube", 3, 32);
	blob_member(&w, "edge", u32_, 0);
	blob_member(&w, "edges_", u32_, 28 * 8);
	blob_member(&w, "edges", all, 4 * 8);
	proto = blob_type(&w, BTF_KIND_FUNC_PROTO, "", 0, u32_);
	blob_type(&w, BTF_KIND_FUNC, "idle", 1, proto);
	n = blob_type(&w, BTF_KIND_FWD, "hidden", 0, 0);
	n = blob_type(&w, BTF_KIND_PTR, "", 0, n);
	proto = blob_type(&w, BTF_KIND_FUNC_PROTO, "", 1, 0);
	blob_entry(&w, "h", n);
	blob_type(&w, BTF_KIND_FUNC, "opaque", 1, proto);
	proto = blob_type(&w, BTF_KIND_FUNC_PROTO, "", 150, 0);
	for (n = 0; n < 150; n++)
		blob_entry(&w, "", u32_);
	blob_type(&w, BTF_KIND_FUNC, "crowded", 1, proto);
	blob_end(&w, 0);
	CHECK(!blob_open(&b, &w, NULL), "BTF");
	vb_facts_look(&b, f, r, ARRAY_SIZE(f));
	for (n = 0; n < ARRAY_SIZE(f); n++)
		CHECK_EQ(r[n].state, want[n], "%s: %s", f[n].what, r[n].found);
	blob_free(&w);
}

/* A module's types refer to the kernel's types and strings, and their own. */
static void test_references(void)
{
	static const struct vb_fact f[] = {
		MEMBER_AT("holder.in.y", 16, 24),
		MEMBER_AT("holder.own.z", 40, 4),
		/* Its name is one of the kernel's strings. */
		MEMBER_AT("deep.own", 0, 4),
		VB_FUNC(0, hold, "4(inner*,holder*)"),
	};
	struct vb_finding r[ARRAY_SIZE(f)] = { 0 };
	u32 n, own, holder, proto, u32_ = 2, inner = 6;
	struct vb_btf kernel, module;
	struct blob wk, wm;

	blob_begin(&wk, NULL);
	write_types(&wk, &straight);
	blob_end(&wk, 0);
	blob_begin(&wm, &wk);
	own = blob_type(&wm, BTF_KIND_STRUCT, "own", 1, 4);
	blob_member(&wm, "z", u32_, 0);
	holder = blob_type(&wm, BTF_KIND_STRUCT, "holder", 2, 48);
	blob_member(&wm, "in", inner, 8 * 8);
	blob_member(&wm, "own", own, 40 * 8);
	blob_type(&wm, BTF_KIND_STRUCT, "", 1, 4);
	for (n = 1; strcmp(wk.strings + n, "deep"); n++)
		;
	wm.types[wm.type_words - 3] = n;
	blob_member(&wm, "own", own, 0);
	n = blob_type(&wm, BTF_KIND_PTR, "", 0, inner);
	holder = blob_type(&wm, BTF_KIND_PTR, "", 0, holder);
	proto = blob_type(&wm, BTF_KIND_FUNC_PROTO, "", 2, u32_);
	blob_entry(&wm, "a", n);
	blob_entry(&wm, "b", holder);
	blob_type(&wm, BTF_KIND_FUNC, "hold", 1, proto);
	blob_end(&wm, 0);
	CHECK(!blob_open(&kernel, &wk, NULL), "kernel");
	CHECK(!blob_open(&module, &wm, &kernel), "module");
	vb_facts_look(&module, f, r, ARRAY_SIZE(f));
	for (n = 0; n < ARRAY_SIZE(f); n++)
		CHECK_EQ(r[n].state, VB_FACT_SAME, "%s: %s", f[n].what,
			 r[n].found);
	CHECK(!vb_btf_type(&module, module.end_id), "no type behind the last");
	CHECK(!vb_btf_type(&module, 0), "void");
	CHECK(!*vb_btf_string(&module, ~0U), "no string behind the last");
	blob_free(&wk);
	blob_free(&wm);
}

/* A header that says what is not so. */
static void test_header(void)
{
	struct btf_header *h;
	struct vb_btf b;
	struct blob w;

#define BROKEN(change) do {						\
		blob_begin(&w, NULL);					\
		write_types(&w, &straight);				\
		blob_end(&w, 0);					\
		h = w.data;						\
		CHECK(!blob_open(&b, &w, NULL), "before: " #change);	\
		change;							\
		CHECK(blob_open(&b, &w, NULL), #change);		\
		blob_free(&w);						\
	} while (0)

	BROKEN(h->magic = 0x9feb);
	BROKEN(h->version = 2);
	BROKEN(h->hdr_len += 2);
	BROKEN(h->type_off += 2);
	BROKEN(h->type_len += h->str_len + 1);
	BROKEN(h->type_len = ~0U);
	BROKEN(h->type_len -= 2);
	BROKEN(h->type_len -= 8);
	BROKEN(h->type_len -= 16);
	BROKEN(h->str_len = 0);
	BROKEN(h->str_len -= 1);
	BROKEN(h->str_len += 1);
	BROKEN(h->str_off += 4);
	BROKEN(h->str_off = ~0U);
	BROKEN(w.size = sizeof(*h) - 1);
	BROKEN(w.size = 0);
#undef BROKEN
}

/* A module's types come first. */
static void test_module(void)
{
	struct vb_finding r[NR] = { 0 };
	struct twist t = straight;
	struct vb_btf kernel, module;
	struct blob wk, wm;
	u32 n, u8_;

	t.argument_size = 7;
	t.value = 9;
	blob_begin(&wk, NULL);
	write_types(&wk, &t);
	blob_end(&wk, 0);
	blob_begin(&wm, &wk);
	blob_type(&wm, BTF_KIND_STRUCT, "argument", 1, 1);
	u8_ = 1;	/* of the kernel */
	blob_member(&wm, "byte", u8_, 0);
	blob_end(&wm, 0);
	CHECK(!blob_open(&kernel, &wk, NULL), "kernel");
	CHECK(!blob_open(&module, &wm, &kernel), "module");
	vb_facts_look(&module, facts, r, NR);
	for (n = 0; n < NR; n++)
		CHECK_EQ(r[n].state, n == 5 ? VB_FACT_SAME : VB_FACT_ABSENT,
			 "%s in the module", AT(n));
	vb_facts_look(&kernel, facts, r, NR);
	for (n = 0; n < NR; n++)
		CHECK_EQ(r[n].state, n == 8 ? VB_FACT_DIFFERS : VB_FACT_SAME,
			 "%s in both", AT(n));
	blob_free(&wk);
	blob_free(&wm);
}

/* Two of one name: none may differ, whichever comes first. */
static void test_twice(void)
{
	static const struct vb_fact one[] = { VB_SIZE(0, argument) };
	int order;

	for (order = 0; order < 2; order++) {
		struct vb_finding r = { 0 };
		struct vb_btf b;
		struct blob w;

		blob_begin(&w, NULL);
		blob_type(&w, BTF_KIND_STRUCT, "argument", 0, 1 + order);
		blob_type(&w, BTF_KIND_STRUCT, "argument", 0, 2 - order);
		blob_end(&w, 0);
		CHECK(!blob_open(&b, &w, NULL), "BTF");
		vb_facts_look(&b, one, &r, 1);
		CHECK_EQ(r.state, VB_FACT_DIFFERS, "order %d", order);
		blob_free(&w);
	}
}

/* A header that has grown (as in 7.1), and kinds that are not known. */
static void test_newer(void)
{
	struct vb_btf b;
	struct blob w;
	u32 kind;

	blob_begin(&w, NULL);
	write_types(&w, &straight);
	blob_end(&w, 8);
	CHECK(!blob_open(&b, &w, NULL), "longer header");
	blob_free(&w);
	for (kind = 0; kind < 32; kind++) {
		blob_begin(&w, NULL);
		blob_type(&w, kind, "x", 0, 0);
		/* What some kinds have. */
		blob_word(&w, 0);
		if (kind == BTF_KIND_ARRAY) {
			blob_word(&w, 0);
			blob_word(&w, 0);
		}
		if (kind != BTF_KIND_INT && kind != BTF_KIND_VAR &&
		    kind != BTF_KIND_DECL_TAG && kind != BTF_KIND_ARRAY)
			w.type_words--;
		blob_end(&w, 0);
		CHECK_EQ(!blob_open(&b, &w, NULL),
			 kind > 0 && kind <= BTF_KIND_ENUM64, "kind %u", kind);
		blob_free(&w);
	}
}

/* Whatever is in it: an error or some answer, and no access outside. */
static void test_broken(void)
{
	u32 round, n, opened = 0;
	struct vb_btf b;
	struct blob w;

	prng_seed(0x76427202);
	for (round = 0; round < 20000; round++) {
		struct vb_finding r[NR] = { 0 };
		u32 size;
		u8 *data;

		blob_begin(&w, NULL);
		write_types(&w, &straight);
		blob_end(&w, 0);
		/* A copy of just its size: the sanitizer sees its end. */
		size = round % 3 ? w.size : prng_below(w.size + 1);
		data = malloc(size ?: 1);
		memcpy(data, w.data, size);
		for (n = prng_below(4) + 1; size && n; n--)
			data[prng_below(size)] = prng_below(256);
		if (!vb_btf_open(&b, data, size, NULL, w.index)) {
			vb_facts_look(&b, facts, r, NR);
			opened++;
		}
		free(data);
		blob_free(&w);
	}
	CHECK(opened > 1000 && opened < 19000, "%u of %u opened", opened,
	      round);
}

/* Types that are their own parts must not keep it for ever. */
static void test_circles(void)
{
	static const struct vb_fact f[] = {
		MEMBER_AT("loop.x", 0, 4),
		MEMBER_AT("alias.x", 0, 4),
		VB_TRACE(0, circle, "0()"),
	};
	struct vb_finding r[ARRAY_SIZE(f)] = { 0 };
	struct vb_btf b;
	struct blob w;

	blob_begin(&w, NULL);
	blob_type(&w, BTF_KIND_STRUCT, "loop", 1, 4);
	blob_member(&w, "", 1, 0);
	blob_type(&w, BTF_KIND_STRUCT, "alias", 1, 4);
	blob_member(&w, "x", 3, 0);
	blob_type(&w, BTF_KIND_TYPEDEF, "btf_trace_circle", 0, 4);
	blob_type(&w, BTF_KIND_CONST, "", 0, 3);
	blob_type(&w, BTF_KIND_ARRAY, "", 0, 0);
	blob_word(&w, 5);
	blob_word(&w, 5);
	blob_word(&w, 2);
	blob_end(&w, 0);
	CHECK(!blob_open(&b, &w, NULL), "BTF");
	vb_facts_look(&b, f, r, ARRAY_SIZE(f));
	CHECK_EQ(r[0].state, VB_FACT_DIFFERS, "%s", f[0].what);
	CHECK_EQ(r[1].state, VB_FACT_DIFFERS, "%s", f[1].what);
	CHECK_EQ(r[2].state, VB_FACT_ABSENT, "%s", f[2].what);
	CHECK_EQ(vb_btf_size(&b, 5), 0, "an array of itself");
	blob_free(&w);
}

/* A real one, with types whose layout is for ever the same. */
static void test_real(void)
{
	struct real { u64 tv_sec; long tv_nsec; };
	static const struct vb_fact f[] = {
		MEMBER_AT("timespec64.tv_nsec", offsetof(struct real, tv_nsec), 8),
		SIZE_OF("timespec64", sizeof(struct real)),
		VB_FUNC(0, kfree, "0(*)"),
		MEMBER_AT("timespec64.tv_sec", 8, 8),
	};
	struct vb_finding r[ARRAY_SIZE(f)] = { 0 };
	static char data[64 << 20];
	struct vb_btf b;
	u32 *index;
	size_t size;
	FILE *file = fopen("/sys/kernel/btf/vmlinux", "rb");

	if (!file) {
		ktap_skip("this kernel has no BTF");
		return;
	}
	size = fread(data, 1, sizeof(data), file);
	fclose(file);
	index = calloc(vb_btf_index_max(size) + 1, sizeof(u32));
	CHECK(!vb_btf_open(&b, data, size, NULL, index), "BTF");
	vb_facts_look(&b, f, r, ARRAY_SIZE(f));
	CHECK_EQ(r[0].state, VB_FACT_SAME, "%s: %s", f[0].what, r[0].found);
	CHECK_EQ(r[1].state, VB_FACT_SAME, "%s: %s", f[1].what, r[1].found);
	CHECK_EQ(r[2].state, VB_FACT_SAME, "%s: %s", f[2].what, r[2].found);
	CHECK_EQ(r[3].state, VB_FACT_DIFFERS, "%s", f[3].what);
	free(index);
}

static const struct ktap_test tests[] = {
	{ "a kernel that fits", test_same },
	{ "every kind of difference is seen, and only that", test_doctored },
	{ "what is not there", test_absent },
	{ "parameters that do not matter", test_open_end },
	{ "a bit", test_bits },
	{ "what is expected", test_expected },
	{ "similar names and types", test_similar },
	{ "a module's types and the kernel's", test_module },
	{ "references between them", test_references },
	{ "broken headers", test_header },
	{ "two types of one name", test_twice },
	{ "newer formats", test_newer },
	{ "broken data", test_broken },
	{ "circles", test_circles },
	{ "this kernel", test_real },
};

int main(void)
{
	return ktap_main("btf", tests, ARRAY_SIZE(tests));
}
