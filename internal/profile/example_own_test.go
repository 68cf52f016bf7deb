package profile_test

import (
	"log"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/access"
	"github.com/symfilter/symfilter/internal/profile"
	"github.com/symfilter/symfilter/internal/report"
	"github.com/symfilter/symfilter/symbolize"
	"github.com/symfilter/symfilter/valgrind"
)

// DHAT has written the file for a stripped program. The output is as DHAT writes it for a program
// with debug information. Here the program and its debug files are below testdata. Usually the
// program is at the path in the file, and its debug files in the system's folder.
func Example_own() {
	sysroot, err := filepath.Abs("../../valgrind/testdata/recorded")
	if err != nil {
		log.Fatal(err)
	}
	s := symbolize.New(symbolize.Options{
		Finders: []symbolize.Finder{buildid.NewTree(filepath.Join(sysroot, "debug"))},
		Names:   symbolize.ValgrindNames,
	})
	defer s.Close()
	o := report.Options{Symbolizer: s, Sysroot: sysroot, Wait: time.Minute}
	p, err := profile.Read(strings.NewReader(dhat), profile.Options{
		Options: o,
		Places: func(program string) profile.Places {
			o := valgrind.Options{ReportOptions: symbolize.ReportOptions(o)}
			return access.Valgrind(&o).(interface{ NewPlaces(string) any }).NewPlaces(program).(profile.Places)
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer p.Close()
	if err := p.Write(os.Stdout, profile.Own, profile.View{}); err != nil {
		log.Fatal(err)
	}
	// Output:
	// {"dhatFileVersion":2
	// ,"cmd":"/srv/app/lines"
	// ,"pps":
	//  [{"tb":400,"fs":[1]}
	//  ]
	// ,"ftbl":
	//  ["[root]"
	//  ,"0x108768: main (lines.c:12)"
	//  ]
	// }
}

const dhat = `{"dhatFileVersion":2
,"cmd":"/srv/app/lines"
,"pps":
 [{"tb":400,"fs":[1]}
 ]
,"ftbl":
 ["[root]"
 ,"0x108768: ??? (in /srv/app/lines)"
 ]
}
`
