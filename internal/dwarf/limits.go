package dwarf

// Limits. Limits without a stated reason are far above the output of known compilers, and low
// enough to bound time and memory.
const (
	// steps of one lookup: 0.1 to 0.3 s, since a step takes 3 to 10 ns. The largest known units
	// need a thirtieth of these steps
	maxWork      = 1 << 25
	maxUnitBytes = 1<<32 - 1 // entries are identified by 32-bit offsets in their unit
	arangeCost   = 1 << 7    // bytes of .debug_aranges that count as a step
	// units of a file: 32 MiB of offsets. A browser with type units has a million units
	maxUnits  = 4 << 20
	maxDIEs   = 4 << 20 // entries visited in one walk over a unit
	maxDepth  = 256     // entries nested in each other below a function
	maxFrames = 128     // frames returned for one address
	// DW_AT_abstract_origin and DW_AT_specification references followed for one name
	maxChain = 16
	// declarations in one abbreviation table; the largest seen have about 3,000 declarations
	maxAbbrevs = 1 << 16
	maxSpecs   = 1 << 10 // attributes of one declaration; the largest seen have about 40
	// address ranges of a unit's functions and of the calls inlined into them: 12 MiB
	maxRanges = 1 << 19
	maxCalls  = 1 << 20 // inlined calls kept for one unit: 32 MiB
	// address ranges kept for all units: 24 MiB. A browser of 30,000 units has about 700,000 ranges
	maxUnitRanges = 1 << 20
	// line rows kept for one unit: 48 MiB. For a table with more rows, lineStops are kept
	maxRows      = 4 << 20
	manyRowBytes = 4 << 20 // bytes of rows above which lookups call the function passed to Afford
	// rows between two stops: a lookup runs the program over at most that many rows, in 20 µs
	stopRows = 1 << 12
	maxStops = 1 << 19 // stops kept for one unit: 16 MiB
	// bytes of a line program between two stops; a table with a longer gap is not used
	maxStopBytes = 1 << 20
	maxFiles     = 1 << 20 // files, or directories, of one unit: 40 MiB
	// fields described for an entry of a version 5 file table; DWARF defines 5
	maxFormats = 32
	// bytes of a name; longer names are unknown. The demangler's limit is far below
	maxNameBytes = 1 << 20
	maxPathBytes = 64 << 10 // length of a file's whole path; PATH_MAX is 4 KiB
	// .dwo files of one program open at a time: each takes a mapping, and nearby lines of a log
	// need few
	maxSplitFiles = 64
	// slots read in the index of a package for one unit; a table at the highest allowed load needs
	// a few
	maxProbes = 1 << 16
	openCost  = 1 << 14 // steps charged for opening a file: 0.1 ms
	// bytes that each list of a scratch may keep between lookups; larger lists are dropped
	maxScratchKept = 4 << 20
)

// numbers of lookups before tables are built
const (
	// scans of .debug_aranges before it is sorted: a scan costs 30 µs for a kernel, sorting 2 ms
	coldLookups     = 64
	coldUnitLookups = 3 // scans of a unit's functions before they are sorted
	// runs of a unit's line program that keep no rows; a run that keeps rows costs two to three
	// times as much
	coldLineLookups = 1
	// lookups in a file after which a line program of at least bigProgram bytes keeps its rows in
	// its first run already
	warmLookups = 64
	bigProgram  = 32 << 10 // bytes of the line program of a unit that has much of the file's code
)

// limits of the search for variables
const (
	// bytes of .debug_info and .debug_addr scanned for variables: 0.25 s
	maxStaticScan = 1 << 30
	// bytes inflated only for variables: 0.2 s. Otherwise one variable in a log would cost seconds
	maxStaticInflate = 64 << 20
	maxStatics       = 1 << 20 // addresses of variables kept: 16 MiB. A kernel has about 53,000
	// units, and entries, read for one address: one variable may have copies in many units
	maxAliases       = 32
	maxVariableWork  = 1 << 22 // steps of one lookup, without the scan of the whole file: 30 ms
	scanCost         = 1 << 7  // bytes of the scan that count as a step
	maxUnitVariables = 1 << 18 // variables of one unit: 4 MiB
	maxVariableName  = 1 << 10 // bytes of one name in a member path
	maxMemberPath    = 4 << 10 // bytes of a whole member path; a longer path is left out
	maxTypeDepth     = 64      // types nested in each other, with typedefs and qualifiers
	maxDimensions    = 16      // dimensions of an array
	// steps to find a member: 15 ms. The last of 1,000 members takes about 30,000 steps
	maxTypeWork       = 1 << 18
	maxTypeUnits      = 1 << 20  // type units that can be found by their signature: 24 MiB
	maxTypeUnitsKept  = 1 << 10  // units of .debug_types kept parsed at a time
	maxDefinitionScan = 64 << 20 // bytes of .debug_info read for definitions, entry by entry: 0.1 s
	maxDefinitions    = 1 << 18  // types that can be found by name: 6 MiB
)
