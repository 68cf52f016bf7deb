package buildid

import (
	"errors"
	"os"
	"testing"
)

// A device must not even be opened: that can have an effect, although nothing is read.
func TestDevicesAreNotOpened(t *testing.T) {
	opened := false
	_, _, err := openRegularBy("/dev/null", os.Stat, func(string, int, os.FileMode) (*os.File, error) {
		opened = true
		return nil, os.ErrPermission
	})
	if opened || !errors.Is(err, errNotRegular) {
		t.Errorf("opened: %v, %v; want %v", opened, err, errNotRegular)
	}
}
