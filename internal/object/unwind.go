package object

func (f *File) unwindSeparates(start, addr uint64) bool { return false }
