# Writes what gdb knows of the static variables of the unit that has main: after a line "symbol ADDRESS NAME", for each part "KIND OFFSET SIZE PATH". KIND is leaf
# for a scalar or bit-field, node for an array or struct.
import gdb


def parts(t, path, bit):
    t = t.strip_typedefs()
    if t.code in (gdb.TYPE_CODE_STRUCT, gdb.TYPE_CODE_UNION):
        if path:
            print("node", bit // 8, t.sizeof, path)
        for f in t.fields():
            try:
                at = bit + f.bitpos
            except (AttributeError, TypeError):
                continue  # a static member, or a virtual base
            p = path if f.is_base_class or not f.name else path + "." + f.name
            if f.bitsize:
                if f.name:
                    print("leaf", at // 8, (at + f.bitsize - 1) // 8 - at // 8 + 1, p)
            else:
                parts(f.type, p, at)
    elif t.code == gdb.TYPE_CODE_ARRAY:
        if path:
            print("node", bit // 8, t.sizeof, path)
        e = t.target()
        lo, hi = t.range()
        for i in range(lo, hi + 1) if e.sizeof else ():
            parts(e, "%s[%d]" % (path, i), bit + 8 * (i - lo) * e.sizeof)
    elif path:
        print("leaf", bit // 8, t.sizeof, path)


def block(b, seen):
    for s in b:
        if s.addr_class == gdb.SYMBOL_LOC_BLOCK:
            start = s.value().address
            inner = gdb.block_for_pc(int(start))
            if inner is not None and inner.start not in seen:
                seen.add(inner.start)
                block(inner, seen)
        elif s.addr_class == gdb.SYMBOL_LOC_STATIC:
            try:
                addr = int(s.value().address)
            except gdb.error:
                continue
            print("symbol", "%#x" % addr, s.linkage_name)
            parts(s.type, "", 0)


unit = gdb.lookup_global_symbol("main").symtab
seen = set()
block(unit.global_block(), seen)
block(unit.static_block(), seen)
