package filter

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/symfilter/symfilter/internal/judge"
	"github.com/symfilter/symfilter/internal/report"
	"github.com/symfilter/symfilter/symbolize"
)

func TestReasonsOfUnresolvedAddressesHaveAResult(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want Result
	}{
		{nil, ResultNoSymbol},
		{symbolize.ErrNoSymbol, ResultNoSymbol},
		{symbolize.ErrPending, ResultPending},
		{&symbolize.NotFoundError{Err: errors.New("a server is away")}, ResultNoFile},
		{fs.ErrNotExist, ResultNoFile},
		{report.ErrNoFile, ResultNoFile},
		{judge.ErrKernel, ResultNoFile},
		{report.ErrDeleted, ResultNoFile},
		{fmt.Errorf("a: %w", &symbolize.FaultError{Path: "a", Err: errors.New("broken")}), ResultFault},
		{judge.ErrNoBias, ResultNoModule}, // in a raw backtrace
	} {
		if got := resultOf(tt.err, ResultNoModule); got != tt.want {
			t.Errorf("%v: got %v, want %v", tt.err, got, tt.want)
		}
	}
}
