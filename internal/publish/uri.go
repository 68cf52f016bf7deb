package publish

import "strings"

// uri returns the percent-encoded reference to a file, relative to the root of the repository.
// Outside of the root, it has the scheme file.
func (r *Result) uri(name string) string {
	name, inside := r.path(name)
	switch {
	case inside:
		return encoded(name)
	case isDrive(name):
		return "file:///" + name[:2] + encoded(name[2:])
	}
	return "file://" + encoded("/"+strings.TrimLeft(name, "/"))
}

// maxURI bounds the bytes of a file's name in a reference; systems allow 4,096.
const maxURI = 4096

// encoded percent-encodes the bytes of a path that RFC 3986 does not allow in a segment of a
// relative reference (3.3, 4.2). It also encodes colons: the text before a colon would be a scheme.
// It cuts the path to maxURI bytes.
func encoded(name string) string {
	const hex = "0123456789ABCDEF"
	name = name[:min(len(name), maxURI)]
	var b strings.Builder
	for i := 0; i < len(name); i++ {
		c := name[i]
		switch {
		case 'a' <= c|0x20 && c|0x20 <= 'z', '0' <= c && c <= '9', strings.IndexByte("/-._~!$&'()*+,;=@", c) >= 0:
			b.WriteByte(c)
		default:
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		}
	}
	return b.String()
}
