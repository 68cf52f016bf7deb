package markup

import "github.com/symfilter/symfilter/internal/access"

func init() {
	access.MayBecomeElement = func(tail []byte) bool { return mayBecomeElement(tail) }
	access.UnfinishedSGR = func(b []byte) int { return unfinishedSGR(b) }
}
