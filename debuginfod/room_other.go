//go:build !linux && !darwin

package debuginfod

import "os"

func room(*os.File) (free, all int64, ok bool) { return 0, 0, false }
