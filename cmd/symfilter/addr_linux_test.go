package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/internal/fuzztest"
	"github.com/symfilter/symfilter/internal/testenv"
)

// Each line must be answered before the next line arrives, since a client may wait for the answer.
func TestALineOfAddressesIsAnsweredAtOnce(t *testing.T) {
	p := startCommand(t, exec.Command(os.Args[0], "addr", "-q", "../../internal/object/testdata/big.elf"))
	for _, line := range [][2]string{
		{"0x18\n", "0x18: twice at /src/small.c:11:10\n"},
		{"\n", ": ?? (there is no address)\n"},
		{"0x0\n0x18\n", "0x0: run at /src/small.c:10\n0x18: twice at /src/small.c:11:10\n"},
	} {
		p.write(t, line[0])
		p.expect(t, line[1])
	}
	p.in.Close()
	if rest, code := p.end(t); rest != "" || code != exitOK {
		t.Errorf("got %q and exit code %d; %s", rest, code, p.stderr.String())
	}
}

// Ten times the lines (1,000,000 with TEST_LONG) may take at most 16 MiB more.
func TestLinesOfAddressesTakeNoMemory(t *testing.T) {
	fuzztest.WithoutRace(t)
	const mostGrowth = 16 << 20
	n := fuzztest.LongOr(1_000_000, 200_000)
	few, many := memoryOfAddresses(t, n/10), memoryOfAddresses(t, n)
	if many > few+mostGrowth {
		t.Errorf("%d lines take %d KiB, and %d lines %d KiB", n/10, few>>10, n, many>>10)
	}
}

// memoryOfAddresses returns the peak memory of symfilter addr for n lines, in bytes. It is read
// while the command waits for further lines.
func memoryOfAddresses(t *testing.T, n int) int64 {
	t.Helper()
	p := startCommand(t, exec.Command(os.Args[0], "addr", "../../internal/object/testdata/big.elf"))
	go func() {
		in := bufio.NewWriter(p.in)
		for i := range n {
			switch i % 5 {
			case 0:
				fmt.Fprintf(in, "/nowhere/%d+0x10\n", i)
			case 1:
				fmt.Fprintf(in, "nobody%d+0x10\n", i)
			case 2:
				fmt.Fprintf(in, "0xzz%d\n", i)
			case 3:
				fmt.Fprintf(in, "0x%x\n", 0x7f0000000000+i)
			default:
				fmt.Fprintf(in, "0x%x\n", i%0x40)
			}
		}
		fmt.Fprintln(in, "last+0x10")
		in.Flush()
	}()
	for line := ""; !strings.HasPrefix(line, "last+0x10: "); {
		var err error
		if line, err = p.out.ReadString('\n'); err != nil {
			t.Fatalf("before the last answer: %v; %s", err, p.stderr.String())
		}
	}
	return testenv.PeakMemory(t, p.Process.Pid)
}
