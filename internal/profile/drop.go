package profile

import (
	"regexp"
	"slices"
	"strings"

	"github.com/symfilter/symfilter/internal/stacks"
)

// Expressions for functions whose frames pprof viewers remove, with the frames that they call.
// github.com/google/pprof/profile sets them for profiles of gperftools. keptRuntimeFrames has the
// exceptions. All match whole names, without arguments.
const (
	allocatorFrames = `calloc|cfree|malloc|free|memalign|do_memalign|(__)?posix_memalign|aligned_alloc|pvalloc|valloc|realloc|` +
		`tcmalloc::.*|tc_calloc|tc_cfree|tc_malloc|tc_free|tc_memalign|tc_posix_memalign|tc_pvalloc|tc_valloc|tc_realloc|` +
		`tc_new|tc_delete|tc_newarray|tc_deletearray|tc_new_nothrow|tc_newarray_nothrow|` +
		`malloc_zone_malloc|malloc_zone_calloc|malloc_zone_valloc|malloc_zone_realloc|malloc_zone_memalign|malloc_zone_free|` +
		`runtime\..*|` +
		`BaseArena::.*|(::)?do_malloc_no_errno|(::)?do_malloc_pages|(::)?do_malloc|DoSampledAllocation|` +
		`MallocedMemBlock::MallocedMemBlock|_M_allocate|__builtin_(vec_)?delete|__builtin_(vec_)?new|` +
		`__gnu_cxx::new_allocator::allocate|__libc_malloc|__malloc_alloc_template::allocate|allocate|cpp_alloc|operator new(\[\])?`

	keptRuntimeFrames = `runtime\.panic|runtime\.reflectcall|runtime\.call[0-9]*`

	profilerFrames = `ProfileData::Add|ProfileData::prof_handler|CpuProfiler::prof_handler|__pthread_sighandler|__restore`

	// jemallocFrames matches the functions of a jemalloc linked into the program. Their names
	// may have a prefix.
	jemallocFrames = `_?(_rjem_|je_|_rjem_je_)?(prof_backtrace|prof_backtrace_impl|prof_tctx_create|prof_alloc_prep|imalloc.*|` +
		`mallocx|rallocx|xallocx|sdallocx|dallocx)|(je|_rjem)_.*|(void\* )?(fallback_impl|newImpl|handleOOM).*|` + allocatorFrames
)

// maxExpression bounds the bytes of DropFrames, and of KeepFrames.
const maxExpression = 64 << 10

// withoutDropped returns p as pprof viewers show it. It removes the frames that match p.DropFrames
// but not p.KeepFrames, and all frames that a removed frame called. Matching frames at the root
// remain, up to the first frame that does not match. An expression that is too long or invalid
// matches nothing. Except for stacks and lines, the result shares its parts with p.
func withoutDropped(p *stacks.Profile) *stacks.Profile {
	drop := expression(p.DropFrames)
	if drop == nil {
		return p
	}
	p = &stacks.Profile{
		Values: p.Values, Default: p.Default, Mappings: p.Mappings, Functions: p.Functions,
		Locations: slices.Clone(p.Locations), Samples: slices.Clone(p.Samples), KeepFrames: p.KeepFrames, PeriodType: p.PeriodType, Period: p.Period,
	}
	keep := expression(p.KeepFrames)
	dropped := make([]bool, len(p.Functions))
	for i := range p.Functions {
		name := simpleName(p.Functions[i].Name)
		dropped[i] = name != "" && drop.MatchString(name) && (keep == nil || !keep.MatchString(name))
	}
	const whole, inner = 1, 2 // the whole location is dropped, or only its inner lines
	what := make([]byte, len(p.Locations))
	for i := range p.Locations {
		l := &p.Locations[i]
		for n := len(l.Lines) - 1; n >= 0; n-- {
			if f := l.Lines[n].Function; f == 0 || !dropped[f-1] {
				continue
			}
			if what[i] = whole; n < len(l.Lines)-1 {
				what[i], l.Lines = inner, l.Lines[n+1:]
			}
			break
		}
	}
	for i := range p.Samples {
		s := &p.Samples[i]
		found := false // a frame that does not match
		for n := len(s.Stack) - 1; n >= 0; n-- {
			w := what[s.Stack[n]-1]
			if w == 0 {
				found = true
			} else if found {
				if w == whole {
					n++
				}
				s.Stack = s.Stack[n:]
				break
			}
		}
	}
	return p
}

// withLeaves returns p with a frame "[empty stack]" in each empty stack, as in folded stacks.
// The profiler could not unwind these stacks, but their values count. p is not changed.
func withLeaves(p *stacks.Profile) *stacks.Profile {
	if !slices.ContainsFunc(p.Samples, func(s stacks.Sample) bool { return len(s.Stack) == 0 }) {
		return p
	}
	p = &stacks.Profile{
		Values: p.Values, Default: p.Default, Mappings: p.Mappings, PeriodType: p.PeriodType, Period: p.Period, Samples: slices.Clone(p.Samples),
		Functions: append(slices.Clip(p.Functions), stacks.Function{Name: "[empty stack]"}),
		Locations: append(slices.Clip(p.Locations), stacks.Location{Lines: []stacks.Line{{Function: uint32(len(p.Functions) + 1)}}}),
	}
	for i := range p.Samples {
		if s := &p.Samples[i]; len(s.Stack) == 0 {
			s.Stack = []uint32{uint32(len(p.Locations))}
		}
	}
	return p
}

// expression compiles an expression for whole names. It returns nil if s is empty, too long or
// invalid.
func expression(s string) *regexp.Regexp {
	if s == "" || len(s) > maxExpression {
		return nil
	}
	re, err := regexp.Compile("^(" + s + ")$")
	if err != nil {
		return nil
	}
	return re
}

// simpleName returns a name as the expressions expect it: without arguments, and without
// PowerPC's leading dot.
func simpleName(name string) string {
	name = strings.TrimPrefix(name, ".")
	for at := 0; ; {
		i := strings.IndexByte(name[at:], '(')
		if i < 0 {
			return name
		}
		i += at
		switch rest := name[i:]; {
		case strings.HasPrefix(rest, "(anonymous namespace)"):
			at = i + len("(anonymous namespace)")
		case strings.HasSuffix(name[:i], "operator") && strings.HasPrefix(rest, "()"):
			at = i + len("()")
		default:
			return name[:i]
		}
	}
}
