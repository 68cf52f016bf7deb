package dwarf

import (
	"cmp"
	"debug/dwarf"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	gopath "path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-delve/delve/pkg/dwarf/godwarf"
	gocmp "github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/internal/fuzztest"
)

// The readers of the standard library and of delve are independent of this package and of LLVM,
// which this package follows. For files of compilers that these readers support, the answers must
// be equal. For other files, these readers hang or run out of memory.

// A peerUnit is a unit as the other readers parse it.
type peerUnit struct {
	funcs []peerFunc // functions with code
	rows  [][]dwarf.LineEntry
	files []*dwarf.LineFile
}

// A peerFunc is a function. ranges holds the function's own ranges. Its Tree also covers the code
// of lambdas in the function, which is elsewhere.
type peerFunc struct {
	*godwarf.Tree
	ranges [][2]uint64
}

// peers reads all units of a file.
func peers(t *testing.T, prog string) (*dwarf.Data, []*peerUnit) {
	t.Helper()
	f, err := elf.Open(prog)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	dw, err := f.DWARF()
	if err != nil {
		t.Fatal(err)
	}
	var units []*peerUnit
	var u *peerUnit
	for r := dw.Reader(); ; {
		e, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if e == nil {
			return dw, units
		}
		switch e.Tag {
		case dwarf.TagCompileUnit:
			u = &peerUnit{}
			units = append(units, u)
			u.readLines(t, dw, e)
		case dwarf.TagSubprogram:
			if ranges, err := dw.Ranges(e); err == nil && len(ranges) > 0 {
				tree, err := godwarf.LoadTree(e.Offset, dw, 0)
				if err != nil {
					t.Fatal(err)
				}
				u.funcs = append(u.funcs, peerFunc{tree, ranges})
			}
		}
	}
}

func (u *peerUnit) readLines(t *testing.T, dw *dwarf.Data, e *dwarf.Entry) {
	t.Helper()
	lr, err := dw.LineReader(e)
	if err != nil {
		t.Fatal(err)
	}
	if lr == nil {
		return
	}
	var seq []dwarf.LineEntry
	for {
		var row dwarf.LineEntry
		if err := lr.Next(&row); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if seq = append(seq, row); row.EndSequence {
			u.rows = append(u.rows, seq)
			seq = nil
		}
	}
	u.files = lr.Files()
}

// row returns the last row not above addr in the sequence that covers addr.
func (u *peerUnit) row(addr uint64) (row dwarf.LineEntry, ok bool) {
	for _, seq := range u.rows {
		if addr < seq[0].Address || addr >= seq[len(seq)-1].Address {
			continue
		}
		i, _ := slices.BinarySearchFunc(seq, addr, func(r dwarf.LineEntry, a uint64) int {
			return cmp.Or(cmp.Compare(r.Address, a), -1) // after all rows at a
		})
		return seq[i-1], true
	}
	return row, false
}

// inlineStack returns the calls inlined at pc, innermost first. It is a copy of delve's
// reader.InlineStack, which cannot be imported.
func inlineStack(stack []*godwarf.Tree, n *godwarf.Tree, pc uint64) []*godwarf.Tree {
	switch n.Tag {
	case dwarf.TagSubprogram, dwarf.TagInlinedSubroutine, dwarf.TagLexDwarfBlock:
		if n.ContainsPC(pc) {
			for _, child := range n.Children {
				stack = inlineStack(stack, child, pc)
			}
			if n.Tag == dwarf.TagInlinedSubroutine {
				stack = append(stack, n)
			}
		}
	}
	return stack
}

// A peerFrame has the parts of a frame that all three readers provide.
type peerFrame struct {
	Name, File   string
	Line, Column int
}

func peerName(n *godwarf.Tree) string {
	for _, attr := range []dwarf.Attr{dwarf.AttrLinkageName, attrMIPSLinkageName, dwarf.AttrName} {
		if s, ok := n.Val(attr).(string); ok {
			return s
		}
	}
	return ""
}

// peerFrames returns the frames at addr according to the other readers.
func peerFrames(units []*peerUnit, addr uint64) []peerFrame {
	for _, u := range units {
		for _, fn := range u.funcs {
			if !slices.ContainsFunc(fn.ranges, func(r [2]uint64) bool { return r[0] <= addr && addr < r[1] }) {
				continue
			}
			tree := fn.Tree
			var all []peerFrame
			f := peerFrame{}
			if row, ok := u.row(addr); ok {
				f = peerFrame{File: row.File.Name, Line: row.Line, Column: row.Column}
			}
			for _, n := range append(inlineStack(nil, tree, addr), tree) {
				f.Name = peerName(n)
				all = append(all, f)
				f = peerFrame{}
				if i, ok := n.Val(dwarf.AttrCallFile).(int64); ok && n != tree {
					f.File = u.files[i].Name
				}
				if line, ok := n.Val(dwarf.AttrCallLine).(int64); ok {
					f.Line = int(line)
				}
				if column, ok := n.Val(dwarf.AttrCallColumn).(int64); ok {
					f.Column = int(column)
				}
			}
			return all
		}
	}
	return nil
}

// peerAddresses is the number of addresses looked up in each program.
const peerAddresses = 2000

func TestFramesAreThoseOfDelve(t *testing.T) {
	fuzztest.WithoutRace(t)
	for _, f := range []fixture{
		{name: "gcc dwarf5 O2", cc: "gcc", cxx: "g++", flags: "-gdwarf-5 -O2"},
		{long: true, name: "gcc dwarf4 O1", cc: "gcc", cxx: "g++", flags: "-gdwarf-4 -O1"},
		{name: "gcc dwarf2 O0", cc: "gcc", cxx: "g++", flags: "-gdwarf-2 -O0"},
		{long: true, name: "clang dwarf5 O2", cc: "clang-19", cxx: "clang-19 -x c++", flags: "-gdwarf-5 -O2"},
		{name: "clang dwarf4 O1", cc: "clang-19", cxx: "clang-19 -x c++", flags: "-gdwarf-4 -O1"},
	} {
		if f.long && !long() {
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			prog := f.build(t)
			o := openObject(t, prog)
			d := linksOf(t, prog).open(t, o)
			_, units := peers(t, prog)
			frames, inlined := 0, 0
			for _, addr := range codeAddresses(t, o, peerAddresses) {
				want := peerFrames(units, addr)
				if want == nil {
					continue
				}
				found, err := d.Lookup(nil, addr)
				if err != nil {
					t.Fatal(err)
				}
				var got []peerFrame
				for _, f := range found {
					got = append(got, peerFrame{string(f.Name), f.File, int(f.Line), int(f.Column)})
				}
				for _, all := range [][]peerFrame{got, want} {
					for i := range all {
						if all[i].File = gopath.Clean(all[i].File); all[i].File == "." {
							all[i].File = ""
						}
						// debug/dwarf joins absolute names of version 5 to the directory
						all[i].File = strings.TrimPrefix(all[i].File, filepath.Dir(prog))
					}
				}
				if diff := gocmp.Diff(got, want); diff != "" {
					t.Errorf("%#x (-got +want):\n%s", addr, diff)
				}
				frames += len(want)
				inlined += len(want) - 1
			}
			t.Logf("%d frames, %d of them inlined", frames, inlined)
			if frames < peerAddresses/2 {
				t.Errorf("%d frames say little", frames)
			}
		})
	}
}

// delveParts appends the parts of a type according to delve.
func delveParts(all []gdbPart, t godwarf.Type, path string, at uint64) []gdbPart {
	part := gdbPart{off: at, size: uint64(t.Size()), path: path}
	switch t := t.(type) {
	case *godwarf.TypedefType:
		return delveParts(all, t.Type, path, at)
	case *godwarf.QualType:
		return delveParts(all, t.Type, path, at)
	case *godwarf.StructType:
		all = append(all, part)
		for _, f := range t.Field {
			name := path
			if f.Name != "" {
				name += "." + f.Name
			}
			if f.BitSize == 0 {
				all = delveParts(all, f.Type, name, at+uint64(f.ByteOffset))
			}
		}
	case *godwarf.ArrayType:
		all = append(all, part)
		for i := range uint64(max(t.Count, 0)) {
			all = delveParts(all, t.Type, fmt.Sprintf("%s[%d]", path, i), at+i*uint64(t.Type.Size()))
		}
	default:
		part.leaf = true
		all = append(all, part)
	}
	return all
}

// TestTypesAreThoseOfDelve compares the answers at each scalar that delve finds in the variables of
// C programs. Delve does not support bit-fields.
func TestTypesAreThoseOfDelve(t *testing.T) {
	for _, b := range memberBuilds {
		switch b.name {
		case "gcc dwarf5", "gcc dwarf2", "clang dwarf5", "clang dwarf3":
		default:
			continue
		}
		t.Run(b.name, func(t *testing.T) {
			prog := buildMembers(t, b.source, b.command, b.after)
			d := linksOf(t, prog).open(t, openObject(t, prog))
			dw, _ := peers(t, prog)
			types := make(map[string]godwarf.Type)
			cache := make(map[dwarf.Offset]godwarf.Type)
			for r := dw.Reader(); ; {
				e, err := r.Next()
				if err != nil {
					t.Fatal(err)
				}
				if e == nil {
					break
				}
				name, _ := e.Val(dwarf.AttrName).(string)
				if off, ok := e.Val(dwarf.AttrType).(dwarf.Offset); ok && e.Tag == dwarf.TagVariable && e.Val(dwarf.AttrLocation) != nil {
					if types[name], err = godwarf.ReadType(dw, 0, off, cache); err != nil {
						t.Fatal(err)
					}
				}
			}
			leaves := 0
			for _, s := range objects(t, prog) {
				typ := types[s.Name]
				switch {
				case typ == nil,
					s.Name == "complex_value",            // two floats, for delve
					s.Name == "cube" || s.Name == "rows": // delve takes [2][3][4] for [2][4][3], and loses the size of arrays of a const typedef: see gdb
					continue
				}
				parts := delveParts(nil, typ, "", 0)
				for _, p := range parts {
					if !p.leaf || p.off == 0 || p.size == 0 {
						continue
					}
					leaves++
					v, _, err := d.Variable(s.Value+p.off, Extent{[]byte(s.Name), s.Value, s.Size})
					if err != nil {
						t.Fatal(err)
					}
					if want := wanted(parts, p.off); !slices.Contains(want, v.Member) {
						t.Errorf("%s+%#x: got %q, want one of %q", s.Name, p.off, v.Member, want)
					}
				}
			}
			t.Logf("%d scalars", leaves)
			if leaves < 500 {
				t.Errorf("%d scalars say little", leaves)
			}
		})
	}
}
