package dwarf

// Limits. Those without another reason are far above anything compilers are known to emit, and low enough to bound time and memory.
const (
	maxWork        = 1 << 28 // steps of one lookup (a DIE, an attribute, a range, a line opcode): 1-2 s, hundreds of times what a large unit takes
	maxUnitBytes   = 1<<32 - 1
	maxDIEs        = 4 << 20  // DIEs visited in one walk over a unit
	maxDepth       = 256      // DIEs nested in each other below a function
	maxFrames      = 128      // frames returned for one address
	maxChain       = 16       // DW_AT_abstract_origin and DW_AT_specification references followed for one name
	maxAbbrevs     = 1 << 16  // declarations in one abbreviation table; the largest seen have some 3,000
	maxSpecs       = 1 << 10  // attributes of one declaration; the largest seen have some 40
	maxRanges      = 4 << 20  // address ranges kept for one unit, or for all unit roots together: 96 MiB
	maxRows        = 16 << 20 // line rows of one unit: 192 MiB
	maxFormats     = 32       // fields described for an entry of a version 5 file table; DWARF defines 5
	maxPathBytes   = 64 << 10 // length of a file's whole path; PATH_MAX is 4 KiB
	maxScratchKept = 4 << 20  // bytes of scratch space kept from one lookup to the next
)

// Thresholds between the cold tier, which builds nothing, and the warm one.
const (
	coldLookups     = 64 // linear looks at .debug_aranges before it is sorted: one costs 30 µs for a kernel, sorting it 2 ms
	coldUnitLookups = 3  // linear looks at a unit's functions before they are sorted
	coldLineLookups = 1  // runs of a unit's line program that keep no rows; a run that keeps them costs two to three of these when its memory is new
)
